//! Rejects what a version of Shardy does not support in a program that was parsed for another
//! version.

use crate::attribute::too_new;
use crate::error::Diagnostic;
use crate::index::{OpId, ShardingId};
use crate::ir::Program;
use crate::sharding::{ReductionOp, TensorSharding};
use crate::shardy::{Change, Version};

/// The error that `shardy` does not support something in `program`.
pub fn too_new_for(program: &Program, shardy: Version) -> Option<Diagnostic> {
    let change = Change::ReductionOps;
    if shardy.has(change) {
        return None;
    }
    let (op, other) = other_reduction(program, |_| false)?;
    let what = format!("the reduction '{}' over unreduced axes", other.keyword());
    Some(too_new(&what, change, shardy)?.at_op(program, op))
}

/// The first op of `program` with another reduction over unreduced axes than the sum, and that
/// reduction. Collectives for which `done` holds are not considered.
pub fn other_reduction(
    program: &Program,
    done: impl Fn(OpId) -> bool,
) -> Option<(OpId, ReductionOp)> {
    if !program.shardy().has(Change::ReductionOps) {
        return None;
    }
    let has_reduction = |sharding: &TensorSharding| {
        sharding.reduction_op != ReductionOp::Sum && !sharding.unreduced.is_empty()
    };
    let shardings = program.shardings();
    let is_new = |id: ShardingId| shardings.get(id).is_some_and(has_reduction);
    let are_all_old = !shardings.ids().any(is_new);
    for op in program.pre_order(program.module_op()) {
        let mut reduction_op = program.payload(op).map(crate::ir::Payload::reduction_op);
        if !are_all_old {
            let mut ids: Vec<ShardingId> =
                program.op_results(op).map(|value| program.sharding(value)).collect();
            for region in program.op_regions(op) {
                let args = program.region_blocks(region).flat_map(|b| program.block_args(b));
                ids.extend(args.map(|value| program.sharding(value)));
            }
            ids.extend(program.no_result_shardings(op).unwrap_or_default());
            if let Some(func) = program.function_of(op).get() {
                let ports = program.func_args(func).iter().chain(program.func_results(func));
                ids.extend(ports.map(|port| port.sharding));
            }
            let found = ids.into_iter().find(|&id| is_new(id));
            reduction_op = found.map(|id| shardings[id].reduction_op).or(reduction_op);
        }
        let other = reduction_op.filter(|&found| found != ReductionOp::Sum);
        if let Some(other) = other.filter(|_| !done(op)) {
            return Some((op, other));
        }
    }
    None
}
