//! Numbers of slots: values by their ids, then the results of the main function by their indices.

use crate::index::{FuncId, Id, ShardingId, ValueId};
use crate::ir::Program;
use crate::propagation::observe::Slot;

/// The number of `slot`, if there are `num_values` values.
#[inline]
pub fn number(slot: Slot, num_values: usize) -> u32 {
    match slot {
        Slot::Value(value) => value.index() as u32,
        Slot::FuncResult(_, index) => (num_values + index) as u32,
    }
}

/// The slot with this number, if `main` is the main function.
#[inline]
pub fn slot(number: u32, num_values: usize, main: FuncId) -> Slot {
    match (number as usize).checked_sub(num_values) {
        None => Slot::Value(ValueId::from_index(number as usize)),
        Some(index) => Slot::FuncResult(main, index),
    }
}

/// The shardings of all slots, by their numbers.
pub fn shardings(program: &Program, main: FuncId) -> Vec<ShardingId> {
    let values = program.value_ids().map(|value| program.sharding(value));
    values.chain(program.func_results(main).iter().map(|result| result.sharding)).collect()
}
