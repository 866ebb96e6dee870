//! Copies of local ops: the ops that were built for one value, such as those of a reshard, are copied for another value of the same
//! type.
//!
//! The ops of a reshard's step depend only on the step, the type of the value, and values that the emitter shares within the block,
//! such as the offsets of shards. They are copied if they read nothing but the value, each other, and shared values. A shared value
//! stays shared.

use super::collectives::Collectives;
use super::emit::Emitter;
use crate::index::{BlockId, Id, IdRange, OpId, ValueId};
use crate::ir::InsertPoint;

/// The point after which ops are built that may be copied.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    op: OpId,
    value: usize,
    num_shared: usize,
}

/// Ops that were built for some inputs, to be copied for others.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    block: BlockId,
    /// The first op, and the one after the last.
    ops: (OpId, OpId),
    /// The first id of the values that they define, and the one after the last.
    values: (usize, usize),
    inputs: (ValueId, Option<ValueId>),
    output: ValueId,
}

impl Emitter<'_> {
    /// The point from which ops are built that may be copied.
    pub fn start(&self) -> Start {
        let op = OpId::from_index(self.program.num_op_ids());
        Start { op, value: self.program.num_value_ids(), num_shared: self.num_shared() }
    }
    /// The ops that were made since `start`.
    pub fn since(&self, start: Start) -> IdRange<OpId> {
        IdRange::new(start.op.index()..self.program.num_op_ids())
    }
    /// The ops that were built since `start`, which compute `output` from `inputs`. `None` if they cannot be copied, as when they
    /// include the definition of a shared value.
    pub fn made(
        &self,
        start: Start,
        inputs: (ValueId, Option<ValueId>),
        output: ValueId,
    ) -> Option<Made> {
        let end = OpId::from_index(self.program.num_op_ids());
        let is_input = |value: ValueId| value == inputs.0 || Some(value) == inputs.1;
        let is_new = |op: OpId| (start.op.index()..end.index()).contains(&op.index());
        let is_known = |value: ValueId| {
            is_input(value)
                || self.is_shared(value)
                || self.program.defining_op(value).is_some_and(is_new)
        };
        let are_apart = Some(inputs.0) != inputs.1
            && !self.is_shared(inputs.0)
            && !inputs.1.is_some_and(|input| self.is_shared(input));
        let is_outer = |op: &OpId| self.program.parent_block(*op) == self.block();
        let mut outer = self.since(start).filter(is_outer);
        let is_copied = start.num_shared == self.num_shared()
            && are_apart
            && is_known(output)
            && outer.all(|op| self.program.operands(op).all(is_known));
        let (block, ops) = (self.block(), (start.op, end));
        let values = (start.value, self.program.num_value_ids());
        is_copied.then_some(Made { block, ops, values, inputs, output })
    }
    /// The output of a copy of `made` for `inputs` of the same types; `None` if `made` is in another block.
    pub fn copy_ops(
        &mut self,
        made: &Made,
        inputs: (ValueId, Option<ValueId>),
        collectives: &mut Collectives,
    ) -> Option<ValueId> {
        if made.block != self.block() || made.inputs.1.is_some() != inputs.1.is_some() {
            return None;
        }
        let mut map = std::mem::take(&mut self.map);
        map.clear_for(made.values.0..made.values.1);
        map.insert(made.inputs.0, inputs.0);
        if let Some((own, other)) = made.inputs.1.zip(inputs.1) {
            map.insert(own, other);
        }
        let at = InsertPoint::at(self.place()).with_loc(self.loc());
        let (channel, mut cause) = (collectives.channel_name(self.program), None);
        for op in IdRange::<OpId>::new(made.ops.0.index()..made.ops.1.index()) {
            if self.program.parent_block(op) != made.block {
                continue;
            }
            let new = self.program.clone_op_at(op, &mut map, at);
            if let Some(place) = channel.and_then(|name| self.program.attr_place(op, name)) {
                self.program.set_unsigned_attr(new, place, collectives.channel());
            }
            if self.program.cause(op).is_some() {
                let cause = *cause.get_or_insert_with(|| self.cause());
                self.program.set_cause(new, cause);
            }
        }
        let output = map.get(made.output).unwrap_or(made.output);
        self.map = map;
        Some(output)
    }
}
