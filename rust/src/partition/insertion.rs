//! Making ops one after the other at one point of the program.

use crate::axis::AxisRef;
use crate::index::{OpId, ShardingId, ValueId};
use crate::ir::{Payload, Place, Program, ValueDef};

impl Program {
    /// The point right after `op`: ops put there one by one stay in that order.
    pub fn point_after(&self, op: OpId) -> Place {
        let row = &self.ops[op];
        row.next.get().map_or(Place::End(row.parent), Place::Before)
    }
    /// The point right after `value` is defined.
    pub fn point_after_value(&self, value: ValueId) -> Place {
        match self.values[value].def() {
            ValueDef::Result(op) => self.point_after(op),
            ValueDef::Arg(block) => {
                let first = self.blocks[block].first_op.get();
                first.map_or(Place::End(block), Place::Before)
            }
        }
    }
    /// Makes an `sdy` op called `name` with one operand and result at `place`; it has the location of
    /// `loc_of`.
    pub fn create_sdy_op(
        &mut self,
        name: &str,
        input: ValueId,
        sharding: ShardingId,
        payload: Option<Payload>,
        (place, loc_of): (Place, ValueId),
    ) -> ValueId {
        let op = self.create_op(name, &[input], &[self.values[input].ty]);
        self.op_texts[op].loc = self.value_loc(loc_of);
        if let Some(payload) = payload {
            self.set_payload(op, payload);
        }
        self.insert_op(op, place);
        let result = self.result(op, 0);
        self.set_sharding(result, sharding);
        result
    }
    /// Notes that what makes `value`, a reshard or a collective, is there for the sake of `op`.
    pub fn set_cause(&mut self, value: ValueId, op: OpId) {
        if let Some(made_by) = self.defining_op(value) {
            self.causes.insert(made_by, op);
        }
    }
    /// Makes an `sdy.all_reduce` of `input` over `axes`.
    pub fn create_all_reduce(
        &mut self,
        input: ValueId,
        axes: Vec<AxisRef>,
        sharding: ShardingId,
        place: Place,
    ) -> ValueId {
        let payload = Some(Payload::Axes(axes));
        self.create_sdy_op("sdy.all_reduce", input, sharding, payload, (place, input))
    }
    /// The axes over which `sharding` is unreduced.
    pub fn unreduced_axes(&self, sharding: ShardingId) -> &[AxisRef] {
        self.shardings.get(sharding).map_or(&[], |sharding| &sharding.unreduced)
    }
    /// Whether two shardings, absent ones being replicated, place a value alike.
    pub fn are_equivalent(&self, first: ShardingId, second: ShardingId) -> bool {
        match self.shardings.get(first) {
            Some(first) => first.is_equivalent(self.shardings.get(second)),
            None => self.is_fully_replicated(second),
        }
    }
    /// Whether `sharding` is absent or shards no dim.
    pub fn is_fully_replicated(&self, sharding: ShardingId) -> bool {
        self.shardings
            .get(sharding)
            .is_none_or(crate::sharding::TensorSharding::is_fully_replicated)
    }
}
