//! Puts ops in the order in which XLA hands them to Shardy.
//!
//! XLA converts a program to HLO, whose ops are not ordered, and back before propagation. Then ops
//! are in post-order: operands before users, from the first operand to the last, and values without
//! users before the returned ones. If shardings conflict, the order of ops and uses decides, so the
//! result may differ from that for the order in the text.
//!
//! Source: XLA's `HloComputation::MakeInstructionPostOrder`.

use crate::index::{BlockId, Id, OpId};
use crate::ir::{Place, Program, ValueDef};

/// Reorders the ops of all blocks, and the uses of all values as if the ops had been created in that order.
pub fn run(program: &mut Program) {
    let ops: Vec<OpId> = program.pre_order(program.module_op()).collect();
    let mut is_seen = vec![false; program.num_op_ids()];
    for &op in ops.iter().skip(1) {
        let regions: Vec<_> = program.op_regions(op).collect();
        let blocks = regions.into_iter().flat_map(|region| program.region_blocks(region));
        for block in blocks.collect::<Vec<_>>() {
            for op in post_order(program, block, &mut is_seen) {
                program.move_op(op, Place::End(block));
            }
        }
    }
    let ops: Vec<OpId> = program.pre_order(program.module_op()).collect();
    for op in ops {
        for slot in program.op_uses(op) {
            program.make_newest_use(slot);
        }
    }
}

/// The ops of `block` in post-order. `is_seen` has a flag for each op of the program that was
/// visited.
fn post_order(program: &Program, block: BlockId, is_seen: &mut [bool]) -> Vec<OpId> {
    let mut order = Vec::new();
    let is_unused = |&op: &OpId| program.op_results(op).all(|value| !program.has_uses(value));
    for root in program.block_ops(block).filter(is_unused) {
        let mut stack = vec![(root, needed(program, block, root))];
        is_seen[root.index()] = true;
        while let Some((op, left)) = stack.last_mut() {
            match left.pop() {
                Some(before) if is_seen[before.index()] => {}
                Some(before) => {
                    is_seen[before.index()] = true;
                    stack.push((before, needed(program, block, before)));
                }
                None => {
                    order.push(*op);
                    stack.pop();
                }
            }
        }
    }
    order
}

/// The ops of `block` whose results are used by `op` or ops inside it, the last one first.
fn needed(program: &Program, block: BlockId, op: OpId) -> Vec<OpId> {
    let mut needed: Vec<OpId> = Vec::new();
    for inner in program.pre_order(op) {
        needed.extend(program.operands(inner).filter_map(|value| match program.def(value) {
            ValueDef::Result(def) if program.parent_block(def) == block => Some(def),
            _ => None,
        }));
        if program.num_regions(op) == 0 {
            break;
        }
    }
    needed.reverse();
    needed
}
