//! Inserts all-reduces after ops that reduce over sharded factors.

use super::tensors::sharding_or_closed;
use crate::axis::{sort_and_merge, AxisRef};
use crate::index::{MeshId, OpId, ShardingId, ValueId};
use crate::ir::Program;
use crate::partition::axis_sets::difference;

/// The sharding and the axes, over one mesh, of the all-reduce of `result`, sharded as `sharding`, over `axes` of
/// `mesh`. Axes are looked up by name if `sharding` is over another mesh. If that does not have all of them, no
/// op can express the reduction, and `result` becomes replicated over `mesh`.
fn over_one_mesh(
    program: &mut Program,
    result: ValueId,
    sharding: ShardingId,
    axes: &[AxisRef],
    mesh: MeshId,
) -> (ShardingId, Vec<AxisRef>) {
    let own = program.mesh_of(sharding);
    if own == mesh || program.mesh(own) == program.mesh(mesh) {
        return (sharding, axes.to_vec());
    }
    let [from, to] = [mesh, own].map(|mesh| program.mesh(mesh));
    let in_own = |axis: &AxisRef| {
        let found = to.axis_by_name(from.axis_name(axis.axis))?;
        Some(AxisRef { axis: found, ..*axis })
    };
    if let Some(found) = axes.iter().map(in_own).collect() {
        return (sharding, found);
    }
    let ty = program.type_of(result);
    let replicated = program.replicated(mesh, ty, true);
    program.set_result_sharding(result, replicated);
    (replicated, axes.to_vec())
}

/// Inserts all-reduces of the results of `op` over those of `axes` that are not unreduced in them.
pub(super) fn reduce_results(program: &mut Program, op: OpId, axes: &[AxisRef], mesh: MeshId) {
    if axes.is_empty() || program.num_results(op) == 0 {
        return;
    }
    let first = program.sharding_of(program.result(op, 0));
    let mut axes = difference(axes, program.unreduced_axes(first), program.mesh(mesh));
    if axes.is_empty() {
        return;
    }
    sort_and_merge(&mut axes, program.mesh(mesh));
    let place = program.place_after(op);
    for index in 0..program.num_results(op) {
        let result = program.result(op, index);
        let sharding = sharding_or_closed(program, result, mesh);
        let (sharding, axes) = over_one_mesh(program, result, sharding, &axes, mesh);
        let reduced = program.create_all_reduce(result, axes, sharding, place);
        if let Some(user) = program.defining_op(reduced) {
            program.replace_all_uses_except(result, reduced, user);
        }
    }
}
