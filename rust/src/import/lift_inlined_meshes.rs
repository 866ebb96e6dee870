//! `sdy-lift-inlined-meshes`: gives every inlined mesh a name, and keeps one name only for equal
//! meshes.
//!
//! New names are `mesh` (or `mesh_0`, ... where taken), `maximal_mesh_<device>` and `empty_mesh`. Every
//! mesh also gets a `stablehlo.mesh` attribute that says the same in StableHLO's words.

use super::map_shardings;
use crate::context::Context;
use crate::error::Result;
use crate::index::{FuncId, Id, MeshId, OpId};
use crate::ir::{OpKind, Payload, Place, Program, ProgramMesh, SymbolTable};
use crate::mesh::Mesh;
use crate::sharding::TensorSharding;
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// Runs the pass.
pub fn run(program: &mut Program, _: &mut Context<'_>) -> Result<()> {
    let mut named: FxHashMap<Mesh, MeshId> = FxHashMap::default();
    let mut last_op = OpId::NONE;
    let mut has_duplicates = false;
    for (op, mesh) in mesh_ops(program) {
        if named.contains_key(program.mesh(mesh)) {
            has_duplicates = true;
            program.erase_op(op);
        } else {
            named.insert(program.mesh(mesh).clone(), mesh);
            last_op = op;
        }
    }
    if has_duplicates || program.meshes.iter().any(|mesh| mesh.symbol.is_none()) {
        name_meshes(program, named, last_op);
    }
    for (op, mesh) in mesh_ops(program) {
        if program.attr(op, "stablehlo.mesh").is_none() {
            let text = stablehlo_mesh(program.mesh(mesh));
            program.set_attr(op, "stablehlo.mesh", &text);
        }
    }
    Ok(())
}

/// The `sdy.mesh` ops in order.
pub(super) fn mesh_ops(program: &Program) -> Vec<(OpId, MeshId)> {
    let ops = program.block_ops(program.module_block());
    let mesh_of = |op| match program.payload(op) {
        Some(&Payload::Mesh(mesh)) if program.kind(op) == OpKind::Mesh => Some((op, mesh)),
        _ => None,
    };
    ops.filter_map(mesh_of).collect()
}

/// Puts the shardings over the meshes in `named`; those that are not there yet get an op after
/// `last_op`.
fn name_meshes(program: &mut Program, mut named: FxHashMap<Mesh, MeshId>, mut last_op: OpId) {
    let mut symbols = SymbolTable::new(program);
    map_shardings(program, |program, id| {
        let old = &program.shardings[id];
        let known = named.get(program.mesh(old.mesh)).copied();
        let mesh = known.unwrap_or_else(|| {
            let mesh = program.mesh(program.shardings[id].mesh).clone();
            let (op, new) = create_mesh_op(program, &mut symbols, mesh.clone());
            let start = Place::Start(program.module_block());
            program.insert_op(op, last_op.get().map_or(start, Place::After));
            last_op = op;
            named.insert(mesh, new);
            new
        });
        let old = &program.shardings[id];
        if mesh == old.mesh {
            return id;
        }
        let new = TensorSharding { mesh, ..old.clone() };
        program.shardings.intern(new)
    });
}

/// A new `sdy.mesh`, in no block yet.
fn create_mesh_op(program: &mut Program, symbols: &mut SymbolTable, mesh: Mesh) -> (OpId, MeshId) {
    let wanted = if mesh.is_maximal() {
        format!("maximal_mesh_{}", mesh.device_ids[0])
    } else if mesh.axes.is_empty() && mesh.device_ids.is_empty() {
        "empty_mesh".to_owned()
    } else {
        "mesh".to_owned()
    };
    let wanted = program.strings.intern(&wanted);
    let symbol = symbols.reserve(program, wanted, FuncId::NONE);
    let id = program.meshes.push(ProgramMesh { symbol: Some(symbol), mesh });
    let op = program.create_op("sdy.mesh", &[], &[]);
    program.set_payload(op, Payload::Mesh(id));
    (op, id)
}

/// The dictionary that describes `mesh` in StableHLO's words.
fn stablehlo_mesh(mesh: &Mesh) -> String {
    let mut text = String::from("{axes = [");
    for (index, axis) in mesh.axes.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        let _ = write!(text, "{separator}{{name = \"{}\", size = {} : i64}}", axis.name, axis.size);
    }
    text.push(']');
    if !mesh.device_ids.is_empty() {
        let ids: Vec<String> = mesh.device_ids.iter().map(i64::to_string).collect();
        let count = ids.len();
        let all_equal = mesh.device_ids.iter().all(|&id| id == mesh.device_ids[0]);
        let elements = if all_equal { ids[0].clone() } else { format!("[{}]", ids.join(", ")) };
        let _ = write!(text, ", device_ids = dense<{elements}> : tensor<{count}xi64>");
    }
    text.push('}');
    text
}

/// The inlined mesh equal to `mesh`, new if there is none.
pub(super) fn inlined_mesh(program: &mut Program, mesh: &Mesh) -> MeshId {
    let is_same = |row: &ProgramMesh| row.symbol.is_none() && row.mesh == *mesh;
    match program.meshes.iter().position(is_same) {
        Some(index) => MeshId::from_index(index),
        None => program.meshes.push(ProgramMesh { symbol: None, mesh: mesh.clone() }),
    }
}
