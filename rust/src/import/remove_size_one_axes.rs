//! `sdy-remove-size-one-axes`: removes axes of size 1 from all shardings, since they do not shard
//! anything but could conflict in propagation. Meshes keep them.

use crate::axis::AxisRef;
use crate::context::Context;
use crate::error::Result;
use crate::index::ShardingId;
use crate::ir::Program;
use crate::sharding::TensorSharding;

/// Runs the pass.
pub fn run(program: &mut Program, _: &mut Context<'_>) -> Result<()> {
    let has_size_one = |mesh: &crate::ir::ProgramMesh| {
        mesh.symbol.is_some() && mesh.mesh.axes.iter().any(|axis| axis.size == 1)
    };
    if program.meshes().iter().any(has_size_one) {
        program.transform_shardings(without_size_one_axes);
    }
    Ok(())
}

fn without_size_one_axes(program: &mut Program, id: ShardingId) -> ShardingId {
    let old = &program.shardings()[id];
    let mesh = program.mesh(old.mesh);
    let keep = |axes: &[AxisRef]| -> Vec<AxisRef> {
        axes.iter().copied().filter(|axis| axis.size(mesh) != 1).collect()
    };
    let dims = old.dims.iter().map(|dim| {
        let mut dim = dim.clone();
        dim.axes = keep(&dim.axes);
        if dim.axes.is_empty() && dim.is_closed {
            // A closed dim without axes must not have a priority.
            dim.priority = None;
        }
        dim
    });
    let new = TensorSharding {
        mesh: old.mesh,
        dims: dims.collect(),
        replicated: keep(&old.replicated),
        unreduced: keep(&old.unreduced),
        reduction_op: old.reduction_op,
    };
    let axes_before = old.axis_refs().count();
    if new.axis_refs().count() == axes_before && new.dims == old.dims {
        return id;
    }
    program.intern_sharding(new)
}
