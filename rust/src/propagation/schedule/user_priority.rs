//! User priorities: the dims of a priority take part in propagation from the runs of that priority
//! on.
//!
//! At first every dim with a priority other than 0 is empty and closed, and its axes are replicated
//! axes of the sharding. When the runs of a priority start, its dims get back their axes and
//! whether they are open.
//!
//! Source: Shardy's propagation document, "User-defined priorities".

use super::network::Network;
use crate::index::{ShardingId, ValueId};
use crate::ir::{OpKind, Program};
use crate::propagation::observe::{Cause, Slot};
use crate::propagation::state::State;
use crate::sharding::{DimSharding, TensorSharding};
use std::collections::BTreeMap;

/// For each priority except 0 the slots that have dims of that priority, with their initial
/// shardings.
#[derive(Default)]
pub struct UserPriorities(BTreeMap<i64, Vec<(Slot, ShardingId)>>);

impl UserPriorities {
    /// Closes all dims with priorities other than 0, and records their slots.
    pub fn initialise(network: &mut Network<'_>) -> Self {
        let mut priorities = Self::default();
        let table = network.state.program().shardings();
        let has_priority = |dim: &DimSharding| dim.priority.is_some();
        if !table.ids().into_iter().any(|id| table[id].dims.iter().any(has_priority)) {
            return priorities;
        }
        for slot in slots(&network.state) {
            let original = network.state.sharding_at(slot);
            let (program, _) = network.state.program_and_plan();
            let Some(sharding) = program.shardings().get(original) else { continue };
            if !sharding.dims.iter().any(has_priority) {
                continue;
            }
            for priority in own_priorities(sharding) {
                priorities.0.entry(priority).or_default().push((slot, original));
            }
            let first = initial_sharding(program, original);
            network.set_slot(slot, first);
        }
        priorities
    }

    /// The priorities up to `last`, in order.
    pub fn up_to(&self, last: i64) -> impl Iterator<Item = i64> + '_ {
        self.0.range(..=last).map(|(&priority, _)| priority)
    }

    /// Restores the dims of `priority`.
    pub fn start(&self, network: &mut Network<'_>, priority: i64) {
        network.state.set_cause(Cause::UserPriority);
        for &(slot, original) in self.0.get(&priority).into_iter().flatten() {
            let current = match slot {
                Slot::Value(value) => network.state.sharding(value),
                Slot::FuncResult(..) => network.state.sharding_at(slot),
            };
            let table = network.state.tables().shardings;
            let (Some(current), Some(original)) = (table.get(current), table.get(original)) else {
                continue;
            };
            let new = sharding_at_priority(current, original, priority);
            let new = table.intern(new);
            network.replace(slot, new);
        }
    }
}

/// All slots in program order, except owners of data-flow edges, whose sharding is stored by the
/// edge op.
fn slots(state: &State<'_>) -> Vec<Slot> {
    let program = state.program();
    let mut slots = Vec::new();
    let has_own = |&value: &ValueId| {
        state.plan.edges.holder_of(value) == Some(value) && program.sharding(value).is_some()
    };
    for &op in state.plan.order() {
        match program.kind(op) {
            OpKind::Func => {
                let func = program.function_of(op);
                if let Some(body) = program.func_body(func).get() {
                    slots.extend(program.block_args(body).filter(has_own).map(Slot::Value));
                }
                let results = 0..program.func_results(func).len();
                slots.extend(results.map(|index| Slot::FuncResult(func, index)));
                continue;
            }
            OpKind::ManualComputation | OpKind::NamedComputation | OpKind::Fragment => {
                let body = program.op_regions(op).next();
                let block = body.and_then(|body| program.region_entry(body).get());
                if let Some(block) = block {
                    slots.extend(program.block_args(block).filter(has_own).map(Slot::Value));
                }
            }
            _ => {}
        }
        slots.extend(program.op_results(op).filter(has_own).map(Slot::Value));
    }
    slots
}

/// The distinct priorities other than 0 in `sharding`.
fn own_priorities(sharding: &TensorSharding) -> Vec<i64> {
    let mut priorities: Vec<i64> =
        sharding.dims.iter().map(DimSharding::priority_or_default).filter(|&p| p > 0).collect();
    priorities.sort_unstable();
    priorities.dedup();
    priorities
}

/// The sharding that replaces `original` while only priority 0 propagates.
fn initial_sharding(program: &mut Program, original: ShardingId) -> ShardingId {
    let mut sharding = program.shardings()[original].clone();
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
    program.intern_sharding(sharding)
}

/// `current` with the dims that have `priority` in `original` restored.
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
