//! Which of two ops of one block comes first, while ops are moved about.
//!
//! Every op of a block gets a number, with gaps; an op that is moved takes the middle of the gap it
//! moves to. A gap that is used up has its block numbered anew. Queries cost O(1), moves O(1)
//! amortised unless all go to the same place.

use crate::index::{BlockId, Id, OpId};
use crate::ir::Program;
use rustc_hash::FxHashSet;

/// Numbers of ops, made when first asked for.
#[derive(Debug, Default)]
pub(super) struct BlockOrder {
    numbers: Vec<u64>,
    numbered: FxHashSet<BlockId>,
}

/// The distance of neighbours in a block just numbered.
const GAP: u64 = 1 << 32;

impl BlockOrder {
    /// Whether `a` comes before `b`, which is in the same block.
    pub(super) fn is_before(&mut self, program: &Program, a: OpId, b: OpId) -> bool {
        let block = program.ops[a].parent;
        debug_assert_eq!(block, program.ops[b].parent);
        if !self.numbered.contains(&block) {
            self.number(program, block);
        }
        self.numbers[a.index()] < self.numbers[b.index()]
    }
    /// Says that `op` has just been moved or added to where it is.
    pub(super) fn moved(&mut self, program: &Program, op: OpId) {
        let block = program.ops[op].parent;
        if !self.numbered.contains(&block) {
            return;
        }
        let number = |neighbour: OpId| neighbour.get().map(|op| self.numbers[op.index()]);
        let low = number(program.ops[op].prev).unwrap_or(0);
        let high = number(program.ops[op].next).unwrap_or(low.saturating_add(2 * GAP));
        if high - low < 2 {
            self.numbered.remove(&block);
            return;
        }
        self.reserve(op);
        self.numbers[op.index()] = low + (high - low) / 2;
    }
    fn number(&mut self, program: &Program, block: BlockId) {
        for (index, op) in program.block_ops(block).enumerate() {
            self.reserve(op);
            self.numbers[op.index()] = (index as u64 + 1) * GAP;
        }
        self.numbered.insert(block);
    }
    fn reserve(&mut self, op: OpId) {
        if self.numbers.len() <= op.index() {
            self.numbers.resize(op.index() + 1, 0);
        }
    }
}
