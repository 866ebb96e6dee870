//! Observers of changes of shardings, and the clock that counts changes.
//!
//! [`super::state::State`] is the only place where a sharding changes, and its [`Clock`] counts the changes.
//! An [`Observer`] is told of each one: the sharding before, the sharding after, and the cause. The list of
//! changes is a *trace*: going back through it restores the shardings of any time, going
//! forward makes them again. Without an observer, a change costs one comparison.
//!
//! Two features are to be built on the trace.
//!
//! - **Propagating again after an edit.** A visit is a function of the shardings of its tensors, and the
//!   queue of any time follows from the changes before it, as who is told of a change is a function of the
//!   program ([`super::notices`]). So the trace can be followed with the set of slots that differ from it: a
//!   visit none of whose tensors differs does what the trace says, any other one is made, and where it
//!   changes what the trace says, in the same order, its tensors differ no longer. Once no slot differs and
//!   the same ops are queued, the rest of the trace holds as it is (the *cutoff*). An edit of a dim of a
//!   later user priority changes nothing before the turn of that priority: [`Observer::run_starts`] gives
//!   the times to go back to.
//! - **Explaining a sharding.** The change that brought an axis to a value names the visit that did it. What
//!   the tensors of the op had before follows from the trace, and the visit made once more tells the
//!   factor, the direction and the tensor that the axis came from, as [`super::origins`] does. That tensor
//!   is looked up in turn, until a change has [`Cause::UserPriority`] or there is none: then a user wrote it.

use super::visit::Run;
use crate::index::{FuncId, OpId, ShardingId, ValueId};

/// A point in time, as the number of changes of shardings before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Clock(usize);

impl Clock {
    /// Number of changes so far.
    pub const fn num_changes(self) -> usize {
        self.0
    }
    #[inline]
    pub(super) fn tick(&mut self) {
        self.0 += 1;
    }
}

/// Something that has a sharding of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Slot {
    /// A value that holds its sharding itself.
    Value(ValueId),
    /// A result of a function, by its index.
    FuncResult(FuncId, usize),
}

/// Why a sharding changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// A visit of this op, in the greedy run that has started last. The change of one result of an op
    /// gives empty shardings to those beside it that have none; members of a sharding group change
    /// together. That has the same cause.
    Visit(OpId),
    /// Propagation between a result of the main function, by its index, and the value returned as it.
    FuncResult(usize),
    /// Dims of later user priorities are closed, or those of a priority are opened again.
    UserPriority,
}

/// A change of a sharding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// The time before it.
    pub at: Clock,
    /// What has the sharding.
    pub slot: Slot,
    /// The sharding before.
    pub old: ShardingId,
    /// The sharding after.
    pub new: ShardingId,
    /// Why it changes.
    pub cause: Cause,
    /// How many causes there were before: changes of one visit have the same number.
    pub visit: u32,
}

/// Is told of every change of a sharding while a program propagates.
///
/// Sharding groups are made equal before that, and count as part of the program as it was given.
pub trait Observer {
    /// A greedy run of this kind starts, while dims up to this user priority take part.
    fn run_starts(&mut self, _at: Clock, _priority: i64, _run: Run) {}
    /// A sharding has changed.
    fn changed(&mut self, change: Change);
    /// An op that nothing uses was erased.
    fn erased(&mut self, _at: Clock, _op: OpId) {}
}
