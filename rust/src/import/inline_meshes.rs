//! `sdy-inline-meshes`: replaces mesh symbols in shardings by the meshes, and erases all `sdy.mesh`
//! ops. Since [`Change::InlinedReplicaGroups`], also in replica groups by mesh axes.

use super::lift_inlined_meshes::mesh_ops;
use super::replica_group_meshes;
use crate::context::Context;
use crate::error::Result;
use crate::index::MeshId;
use crate::ir::Program;
use crate::sharding::TensorSharding;
use crate::shardy::Change;
use rustc_hash::FxHashMap;

/// Runs the pass.
pub fn run(program: &mut Program, _: &mut Context<'_>) -> Result<()> {
    let mut inlined: FxHashMap<MeshId, MeshId> = FxHashMap::default();
    program.transform_shardings(|program, id| {
        let old = program.shardings()[id].mesh;
        let mesh = *inlined.entry(old).or_insert_with(|| {
            let mesh = program.mesh(old).clone();
            program.inlined_mesh(&mesh)
        });
        let new = TensorSharding { mesh, ..program.shardings()[id].clone() };
        program.intern_sharding(new)
    });
    if program.shardy().has(Change::InlinedReplicaGroups) {
        replica_group_meshes::inline(program);
    }
    for (op, mesh) in mesh_ops(program) {
        program.erase_op(op);
        program.take_mesh_symbol(mesh);
    }
    Ok(())
}
