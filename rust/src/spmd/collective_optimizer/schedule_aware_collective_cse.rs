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
use rustc_hash::FxHashSet;

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
    gathers.retain(|&op| !program.has_one_use(program.result(op, 0)));
    let mut collectives: Option<Collectives> = None;
    let mut heights = Heights::default();
    for gather in gathers {
        let result = program.result(gather, 0);
        let block = program.parent_block(gather);
        heights.note(program, block);
        for (at, uses) in far_uses(program, block, result, &heights) {
            let collectives = collectives
                .get_or_insert_with(|| Collectives::after(last_channel(program, program.op_ids())));
            let copy = copy_before(program, gather, at, collectives);
            heights.set(copy, heights.of(at) + 1);
            for slot in uses {
                program.set_operand(slot, program.result(copy, 0));
            }
        }
    }
    Ok(())
}

/// The longest path from each op to the end of its block.
#[derive(Default)]
struct Heights {
    heights: Vec<u32>,
    /// The blocks whose ops have heights.
    known: FxHashSet<BlockId>,
}

impl Heights {
    fn of(&self, op: OpId) -> u32 {
        self.heights.get(op.index()).copied().unwrap_or(0)
    }
    fn set(&mut self, op: OpId, height: u32) {
        if self.heights.len() <= op.index() {
            self.heights.resize(op.index() + 1, 0);
        }
        self.heights[op.index()] = height;
    }
    /// Finds those of the ops of `block`.
    fn note(&mut self, program: &Program, block: BlockId) {
        if !self.known.insert(block) {
            return;
        }
        let ops: Vec<OpId> = program.block_ops(block).collect();
        for &op in ops.iter().rev() {
            let mut height = 0;
            for value in program.op_results(op) {
                for user in program.users(value) {
                    let user = program.ancestor_in(user, block);
                    height = user.map_or(height, |user| height.max(self.of(user) + 1));
                }
            }
            self.set(op, height);
        }
    }
}

/// The ops of `block` that use `result` far from the first one, each with its uses.
fn far_uses(
    program: &Program,
    block: BlockId,
    result: ValueId,
    heights: &Heights,
) -> Vec<(OpId, Vec<UseId>)> {
    let at = |slot| Some((program.ancestor_in(program.user(slot), block)?, slot));
    let mut uses: Vec<(OpId, UseId)> = program.uses(result).filter_map(at).collect();
    // In the order of the program, as far as heights tell it.
    uses.sort_by_key(|&(user, _)| (std::cmp::Reverse(heights.of(user)), user.index()));
    let mut lowest = uses.first().map_or(0, |&(user, _)| heights.of(user));
    let mut far: Vec<(OpId, Vec<UseId>)> = Vec::new();
    for users in uses.chunk_by(|one, other| one.0 == other.0) {
        let (user, height) = (users[0].0, heights.of(users[0].0));
        if lowest > height + 1 + DISTANCE {
            far.push((user, users.iter().map(|&(_, slot)| slot).collect()));
        } else {
            lowest = height;
        }
    }
    far
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
