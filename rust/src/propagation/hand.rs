//! The op in hand: its tensors and their shardings.

use super::engine::{sharding, Engine};
use super::kinds::KindId;
use super::plan::WIDE;
use crate::index::{Id, IdVec, OpId, ShardingId, ValueId};
use crate::ir::Program;

/// The tensors of the op in hand, which are at most [`WIDE`].
#[derive(Default)]
pub(super) struct Hand {
    values: [ValueId; WIDE],
    shardings: [ShardingId; WIDE],
    len: usize,
    /// Whether each tensor has its sharding on a value, as it is: then the values are those.
    pub is_plain: bool,
}

impl Hand {
    /// The values.
    #[inline]
    pub fn values(&self) -> &[ValueId] {
        &self.values[..self.len]
    }
    /// Their shardings.
    #[inline]
    pub fn shardings(&self) -> &[ShardingId] {
        &self.shardings[..self.len]
    }
    /// Whether no two values are the same.
    #[inline]
    pub fn is_distinct(&self) -> bool {
        match *self.values() {
            [a, b] => a != b,
            [a, b, c] => a != b && a != c && b != c,
            ref values => (1..values.len()).all(|index| !values[..index].contains(&values[index])),
        }
    }
    #[inline]
    fn add(&mut self, value: ValueId, sharding: ShardingId) {
        self.values[self.len] = value;
        self.shardings[self.len] = sharding;
        self.len += 1;
    }
    /// Looks at the shardings that are kept on the values.
    #[inline]
    pub fn look(&mut self, all: &IdVec<ValueId, ShardingId>) {
        for (sharding, &value) in self.shardings.iter_mut().zip(&self.values[..self.len]) {
            *sharding = all[value];
        }
    }
}

impl Engine<'_> {
    /// Takes `op` in hand.
    #[inline(always)]
    pub fn take(&mut self, op: OpId, kind: KindId) {
        let Program { operands, value_shardings, ops, .. } = &*self.program;
        let (hand, edges, row) = (&mut self.hand, &self.plan.edges, &ops[op]);
        (hand.len, hand.is_plain) = (0, true);
        let mut add = |value: ValueId| {
            let kept = edges.plainly_kept(value);
            let sharding = value_shardings.get(kept).copied();
            hand.is_plain &= sharding.is_some();
            hand.add(kept, sharding.unwrap_or_default());
        };
        if kind.is_edge() {
            for &source in edges.sources(op) {
                add(source);
            }
        } else if row.num_operands > 0 {
            let first = row.first_operand.index();
            let slots = operands.slice(first..first + row.num_operands as usize);
            for slot in slots {
                add(slot.value);
            }
        }
        self.program.op_results(op).for_each(add);
        if !self.hand.is_plain || (kind.is_edge() && edges.manual_end(op).is_some()) {
            self.take_elsewhere(op, kind);
        }
    }

    /// The same where the shardings of some tensors are kept in other places.
    #[inline(never)]
    pub fn take_elsewhere(&mut self, op: OpId, kind: KindId) {
        let (hand, edges) = (&mut self.hand, &self.plan.edges);
        (hand.len, hand.is_plain) = (0, false);
        for value in self.plan.tensors(self.program, op, kind) {
            hand.add(value, sharding(self.program, edges, value));
        }
        let end = edges.manual_end(op);
        if let (Some(end), Some(last)) = (end, hand.shardings[..hand.len].last_mut()) {
            *last = if end.is_arg {
                self.program.with_manual_axes(end.op, end.owner, *last)
            } else {
                self.program.inside_manual(end.op, *last)
            };
        }
    }
}
