//! Inserts ops one after the other at one place of the program.

use crate::axis::AxisRef;
use crate::index::{OpId, ShardingId, ValueId};
use crate::ir::{InsertPoint, OpKind, Payload, Place, Program};
use crate::sharding::ReductionOp;

impl Program {
    /// Makes an op of `kind`, an `sdy` op with one operand and a result of the same type.
    pub fn create_sdy_op(
        &mut self,
        kind: OpKind,
        input: ValueId,
        sharding: ShardingId,
        payload: Option<Payload>,
        at: InsertPoint,
    ) -> ValueId {
        let op = self.build_unary(kind, input, sharding, at);
        if let Some(payload) = payload {
            self.set_payload(op, payload);
        }
        self.result(op, 0)
    }
    /// Records `op` as the cause of the reshard or collective that defines `value`.
    pub fn note_cause(&mut self, value: ValueId, op: OpId) {
        if let Some(made_by) = self.defining_op(value) {
            self.set_cause(made_by, op);
        }
    }
    /// Makes an `sdy.all_reduce` of `input` over `axes`, with the reduction of `sharding`.
    pub fn create_all_reduce(
        &mut self,
        input: ValueId,
        axes: Vec<AxisRef>,
        sharding: ShardingId,
        place: Place,
    ) -> ValueId {
        let reduction_op = self.shardings()[sharding].reduction_op;
        self.create_all_reduce_by(reduction_op, input, axes, sharding, place)
    }
    /// Makes an `sdy.all_reduce` of `input` over `axes`, with the reduction `reduction_op`.
    pub fn create_all_reduce_by(
        &mut self,
        reduction_op: ReductionOp,
        input: ValueId,
        axes: Vec<AxisRef>,
        sharding: ShardingId,
        place: Place,
    ) -> ValueId {
        let at = InsertPoint { place, loc: self.value_loc(input) };
        let payload = Some(Payload::Axes(axes, reduction_op));
        self.create_sdy_op(OpKind::AllReduce, input, sharding, payload, at)
    }
    /// The reduction of `op`, a collective.
    pub fn reduction_op(&self, op: OpId) -> ReductionOp {
        self.payload(op).map_or(ReductionOp::Sum, Payload::reduction_op)
    }
    /// The axes over which `sharding` is unreduced.
    pub fn unreduced_axes(&self, sharding: ShardingId) -> &[AxisRef] {
        self.shardings().get(sharding).map_or(&[], |sharding| &sharding.unreduced)
    }
    /// Whether two shardings are equivalent; absent ones count as replicated.
    pub fn are_equivalent(&self, first: ShardingId, second: ShardingId) -> bool {
        match self.shardings().get(first) {
            Some(first) => first.is_equivalent(self.shardings().get(second), self.shardy()),
            None => self.is_fully_replicated(second),
        }
    }
    /// Whether `sharding` is absent or shards no dim.
    pub fn is_fully_replicated(&self, sharding: ShardingId) -> bool {
        self.shardings()
            .get(sharding)
            .is_none_or(crate::sharding::TensorSharding::is_fully_replicated)
    }
}
