//! Inserts all-reduces after ops that reduce over sharded factors.

use super::tensors::sharding_or_closed;
use crate::axis::{any_overlap, sort_and_merge, AxisRef};
use crate::error::{Code, Diagnostic, Result};
use crate::index::{MeshId, OpId, ShardingId, ValueId};
use crate::ir::Program;
use crate::partition::axis_sets::difference;
use crate::sharding::ReductionOp;
use crate::shardy::Change;

/// The sharding and the axes, over one mesh, of the all-reduce of `result`, sharded as `sharding`,
/// over `axes` of `mesh`. If `sharding` is over another mesh, axes are looked up by name. If that
/// mesh lacks some of them, no op can express the reduction, and `result` becomes replicated over
/// `mesh`.
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

/// Whether the shardings of results that are still to be reduced have unreduced axes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PartialResults {
    /// They have the shardings of the results after the reduction.
    Unmarked,
    /// They are unreduced over the axes of the all-reduces.
    Marked,
}

/// The reduction of all-reduces after `op`; `None` if no all-reduce has the reduction of its body.
fn reduction_of(program: &Program, op: OpId) -> Option<ReductionOp> {
    let name = program.op_name(op);
    let reduces = matches!(name, "stablehlo.reduce" | "stablehlo.scatter");
    if !reduces || !program.shardy().has(Change::ReductionOpOfBodies) {
        return Some(ReductionOp::Sum);
    }
    let terminator = program.region_terminator(op, 0)?;
    let of_value = |value| {
        let made_by = program.defining_op(value)?;
        match program.op_name(made_by) {
            "stablehlo.add" => Some(ReductionOp::Sum),
            "stablehlo.maximum" => Some(ReductionOp::Max),
            "stablehlo.minimum" => Some(ReductionOp::Min),
            _ => None,
        }
    };
    let mut reductions = program.operands(terminator).map(of_value);
    let first = reductions.next()?;
    if program.num_results(op) == 1 && name == "stablehlo.reduce" {
        return Some(first.unwrap_or(ReductionOp::Sum));
    }
    first.filter(|_| reductions.all(|other| other == first))
}

/// Inserts all-reduces of the results of `op` over the `axes` that are not unreduced in them.
pub(super) fn reduce_results(
    program: &mut Program,
    op: OpId,
    axes: &[AxisRef],
    mesh: MeshId,
    partial: PartialResults,
) -> Result<()> {
    if axes.is_empty() || program.num_results(op) == 0 {
        return Ok(());
    }
    let first = program.sharding_of(program.result(op, 0));
    let mut axes = difference(axes, program.unreduced_axes(first), program.mesh(mesh));
    if axes.is_empty() {
        return Ok(());
    }
    let Some(reduction_op) = reduction_of(program, op) else { return Ok(()) };
    sort_and_merge(&mut axes, program.mesh(mesh));
    let place = program.place_after(op);
    for index in 0..program.num_results(op) {
        let result = program.result(op, index);
        let sharding = sharding_or_closed(program, result, mesh);
        let (sharding, axes) = over_one_mesh(program, result, sharding, &axes, mesh);
        if partial == PartialResults::Marked {
            mark(program, op, (result, sharding), &axes, reduction_op)?;
        }
        let reduced = program.create_all_reduce_by(reduction_op, result, axes, sharding, place);
        if let Some(user) = program.defining_op(reduced) {
            program.replace_all_uses_except(result, reduced, user);
        }
    }
    Ok(())
}

/// Adds `axes` to the unreduced axes of `result` of `op`, whose sharding is `sharding`.
fn mark(
    program: &mut Program,
    op: OpId,
    (result, sharding): (ValueId, ShardingId),
    axes: &[AxisRef],
    reduction_op: ReductionOp,
) -> Result<()> {
    let mut marked = program.shardings()[sharding].clone();
    let refusal = |program: &Program, message: String| {
        Err(Diagnostic::new(Code::InvalidSharding, message).at_op(program, op).into())
    };
    if !marked.unreduced.is_empty() && marked.reduction_op != reduction_op {
        let message = format!(
            "'sdy.all_reduce' op cannot change the reduction operator of kept unreduced axes from \
             {} to {}.",
            reduction_op.keyword(),
            marked.reduction_op.keyword()
        );
        return refusal(program, message);
    }
    if any_overlap(axes, &marked.replicated) {
        let message = "a result is replicated over axes over which it has yet to be reduced";
        return refusal(program, message.to_owned());
    }
    marked.unreduced.extend_from_slice(axes);
    sort_and_merge(&mut marked.unreduced, program.mesh(marked.mesh));
    marked.reduction_op = reduction_op;
    let marked = program.intern_sharding(marked);
    program.set_result_sharding(result, marked);
    Ok(())
}
