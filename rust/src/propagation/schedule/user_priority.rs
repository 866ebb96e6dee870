//! User priorities: dims with a priority take part only from its turn on.
//!
//! At first every dim whose priority is not 0 is empty and closed, and its axes are kept free as
//! replicated ones. At the turn of a priority its dims get back what they had.
//!
//! Source: Shardy's propagation document, "User-defined priorities".

use super::queue::NOBODY;
use crate::index::{FuncId, ShardingId, ValueId};
use crate::ir::{OpKind, Program};
use crate::propagation::engine::{sharding, Engine};
use crate::propagation::plan::edges::Holder;
use crate::sharding::{DimSharding, TensorSharding};
use std::collections::BTreeMap;

/// Something that has a sharding.
#[derive(Clone, Copy)]
enum Slot {
    Value(ValueId),
    FuncResult(FuncId, usize),
}

/// For each priority but 0 who has dims of that priority, and the sharding they had at first.
pub type Priorities = BTreeMap<i64, Vec<Reference>>;

/// A slot and the sharding it had at first.
#[derive(Clone, Copy)]
pub struct Reference {
    slot: Slot,
    original: ShardingId,
}

impl Engine<'_> {
    /// Closes all dims of priorities but 0, and returns who has them.
    pub fn initialise_priorities(&mut self) -> Priorities {
        let mut priorities = Priorities::new();
        let ids = self.program.shardings.ids();
        let has_priority = |dim: &DimSharding| dim.priority.is_some();
        let table = &self.program.shardings;
        if !ids.into_iter().any(|id| table[id].dims.iter().any(has_priority)) {
            return priorities;
        }
        for slot in self.slots() {
            let original = match slot {
                Slot::Value(value) => self.program.sharding(value),
                Slot::FuncResult(func, index) => self.program.func_results(func)[index].sharding,
            };
            let Some(sharding) = self.program.shardings.get(original) else { continue };
            if !sharding.dims.iter().any(has_priority) {
                continue;
            }
            for priority in own_priorities(sharding) {
                let references = priorities.entry(priority).or_default();
                references.push(Reference { slot, original });
            }
            let first = initial_sharding(self.program, original);
            match slot {
                // As it is written: manual axes included.
                Slot::Value(value) => {
                    self.set_kept(value, first);
                    self.notify(value, NOBODY, false);
                }
                Slot::FuncResult(func, index) => self.set_func_result(func, index, first),
            }
        }
        priorities
    }

    /// Gives the dims of `priority` back what they had.
    pub fn start_priority(&mut self, priority: i64, references: &[Reference]) {
        for &Reference { slot, original } in references {
            let current = match slot {
                Slot::Value(value) => sharding(self.program, &self.plan.edges, value),
                Slot::FuncResult(func, index) => self.program.func_results(func)[index].sharding,
            };
            let table = &self.program.shardings;
            let (Some(current), Some(original)) = (table.get(current), table.get(original)) else {
                continue;
            };
            let new = sharding_at_priority(current, original, priority);
            let new = self.program.shardings.intern(new);
            self.replace(slot, new);
        }
    }

    fn replace(&mut self, slot: Slot, sharding: ShardingId) {
        match slot {
            Slot::Value(value) => {
                if let Some(kept) = self.set(value, sharding) {
                    self.notify(kept, NOBODY, false);
                }
            }
            Slot::FuncResult(func, index) => self.set_func_result(func, index, sharding),
        }
    }

    /// Everything that can have a sharding of its own, in program order: owners of data-flow edges
    /// are left out, for the edge op has their sharding.
    fn slots(&self) -> Vec<Slot> {
        let program = &*self.program;
        let mut slots = Vec::new();
        let keeps = |&value: &ValueId| {
            let is_own = match self.plan.edges.holder(value) {
                Holder::Value(kept) | Holder::ManualArg(_, kept) => kept == value,
                Holder::None => false,
            };
            is_own && program.sharding(value).is_some()
        };
        for &op in self.plan.order() {
            match program.kind(op) {
                OpKind::Func => {
                    let func = program.function_of(op);
                    let function = &program.functions[func];
                    if let Some(body) = function.body.get() {
                        slots.extend(program.block_args(body).filter(keeps).map(Slot::Value));
                    }
                    let results = 0..program.func_results(func).len();
                    slots.extend(results.map(|index| Slot::FuncResult(func, index)));
                    continue;
                }
                OpKind::ManualComputation | OpKind::NamedComputation => {
                    let body = program.op_regions(op).next();
                    let block = body.and_then(|body| program.region_entry(body).get());
                    if let Some(block) = block {
                        slots.extend(program.block_args(block).filter(keeps).map(Slot::Value));
                    }
                }
                _ => {}
            }
            slots.extend(program.op_results(op).filter(keeps).map(Slot::Value));
        }
        slots
    }
}

/// The priorities but 0 in `sharding`, each once.
fn own_priorities(sharding: &TensorSharding) -> Vec<i64> {
    let mut priorities: Vec<i64> =
        sharding.dims.iter().map(DimSharding::priority_or_default).filter(|&p| p > 0).collect();
    priorities.sort_unstable();
    priorities.dedup();
    priorities
}

/// What `original` is while only priority 0 propagates.
fn initial_sharding(program: &mut Program, original: ShardingId) -> ShardingId {
    let mut sharding = program.shardings[original].clone();
    for dim in &mut sharding.dims {
        if dim.priority_or_default() == 0 {
            dim.priority = None;
        } else {
            sharding.replicated.append(&mut dim.axes);
            *dim = DimSharding::empty(true);
        }
    }
    let mesh = program.mesh(sharding.mesh);
    sharding.replicated.sort_by_key(|axis| axis.mesh_order(mesh));
    program.shardings.intern(sharding)
}

/// `current` with the dims that have `priority` in `original` as they are there.
fn sharding_at_priority(
    current: &TensorSharding,
    original: &TensorSharding,
    priority: i64,
) -> TensorSharding {
    let mut sharding = current.clone();
    for (dim, original) in sharding.dims.iter_mut().zip(&original.dims) {
        if original.priority_or_default() == priority {
            *dim = original.without_priority();
            sharding.replicated.retain(|axis| !original.axes.contains(axis));
        }
    }
    sharding
}
