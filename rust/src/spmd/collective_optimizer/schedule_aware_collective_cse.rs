//! `schedule-aware-collective-cse`: gathers anew for ops that are far from the first one that needs the gathered array.
//!
//! XLA's partitioner for TPUs gathers an array for each op that needs it, and then merges a gather with the first equal one if
//! the ops between are few, by their heights: the longest paths to the end of the block. So a weight is gathered once for the
//! forward and once for the backward pass, and is not kept in between. Here gathers are shared, and are split.
//!
//! Source: XLA's `ScheduleAwareCollectiveOpsCSE`; the threshold is from programs compiled for TPU v5e.

use super::Names;
use crate::context::Context;
use crate::error::Result;
use crate::index::{BlockId, Id, OpId, UseId, ValueId};
use crate::ir::{InsertPoint, Place, Program, ValueMap};
use crate::spmd::collectives::{last_channel, Collectives};
use rustc_hash::FxHashMap;

const GATHER: &str = "stablehlo.all_gather";

/// The most that the heights of two ops for which an array is gathered once may differ.
const DISTANCE: u32 = 60;

/// Runs the pass on the module.
pub fn run(program: &mut Program, context: &mut Context<'_>) -> Result<()> {
    context.progress("schedule-aware-collective-cse", 0, 1)?;
    let mut gathers = Names::new(program, &[GATHER]).ops(program);
    // Those that a user wrote are not copied.
    gathers.retain(|&op| program.cause(op).is_some() && program.num_results(op) == 1);
    gathers.reverse();
    let mut collectives = Collectives::after(last_channel(program, program.op_ids()));
    let mut heights: FxHashMap<BlockId, FxHashMap<OpId, u32>> = FxHashMap::default();
    for gather in gathers {
        let result = program.result(gather, 0);
        if program.has_one_use(result) {
            continue;
        }
        let block = program.parent_block(gather);
        let heights = heights.entry(block).or_insert_with(|| heights_in(program, block));
        for (at, uses) in far_uses(program, block, result, heights) {
            let copy = copy_before(program, gather, at, &mut collectives);
            heights.insert(copy, heights.get(&at).map_or(0, |height| height + 1));
            for slot in uses {
                program.set_operand(slot, program.result(copy, 0));
            }
        }
    }
    Ok(())
}

/// The longest path from each op of `block` to the end of the block.
fn heights_in(program: &Program, block: BlockId) -> FxHashMap<OpId, u32> {
    let ops: Vec<OpId> = program.block_ops(block).collect();
    let mut heights: FxHashMap<OpId, u32> = FxHashMap::default();
    heights.reserve(ops.len());
    for &op in ops.iter().rev() {
        let users = program.op_results(op).flat_map(|value| program.users(value));
        let users = users.filter_map(|user| in_block(program, user, block));
        let height = users.filter_map(|user| heights.get(&user)).max().map_or(0, |most| most + 1);
        heights.insert(op, height);
    }
    heights
}

/// The op of `block` that is `op` or has it in its regions.
fn in_block(program: &Program, op: OpId, block: BlockId) -> Option<OpId> {
    let mut op = op;
    while program.parent_block(op) != block {
        op = program.parent_op(op)?;
    }
    Some(op)
}

/// The ops of `block` that use `result` far from the first one, each with its uses.
fn far_uses(
    program: &Program,
    block: BlockId,
    result: ValueId,
    heights: &FxHashMap<OpId, u32>,
) -> Vec<(OpId, Vec<UseId>)> {
    let mut users: Vec<(OpId, Vec<UseId>)> = Vec::new();
    for slot in program.uses(result) {
        let Some(user) = in_block(program, program.user(slot), block) else { continue };
        match users.iter_mut().find(|(known, _)| *known == user) {
            Some((_, slots)) => slots.push(slot),
            None => users.push((user, vec![slot])),
        }
    }
    // In the order of the program, as far as heights tell it.
    let height = |user: OpId| heights.get(&user).copied().unwrap_or(0);
    users.sort_by_key(|&(user, _)| (std::cmp::Reverse(height(user)), user.index()));
    let mut lowest = users.first().map_or(0, |&(user, _)| height(user));
    users.retain(|&(user, _)| {
        let is_far = lowest > height(user) + 1 + DISTANCE;
        if !is_far {
            lowest = lowest.min(height(user));
        }
        is_far
    });
    users
}

/// A copy of `gather` right before `at`, with a channel of its own.
fn copy_before(
    program: &mut Program,
    gather: OpId,
    at: OpId,
    collectives: &mut Collectives,
) -> OpId {
    let point = InsertPoint::at(Place::Before(at)).with_loc(program.loc(gather));
    let copy = program.clone_op_at(gather, &mut ValueMap::default(), point);
    let channel = collectives.channel_name(program);
    if let Some(place) = channel.and_then(|name| program.attr_place(copy, name)) {
        program.set_unsigned_attr(copy, place, collectives.channel());
    }
    program.set_cause(copy, program.cause(gather).unwrap_or(gather));
    copy
}
