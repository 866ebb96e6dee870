//! Observers of changes of shardings, and the clock that counts changes.
//!
//! Shardings change only in [`super::state::State`], and its [`Clock`] counts the changes. An
//! [`Observer`] is told of each change: the sharding before, the sharding after, and the cause. The
//! list of changes is a *trace*: undoing them from the end restores the shardings of any time, and
//! applying them from the start repeats the run. Without an observer, a change costs one
//! comparison.
//!
//! Two features use the trace.
//!
//! - **Replays ([`super::replay`]).** A visit is a function of the shardings of its tensors, and
//!   the queue at any time follows from the changes before it, since which ops are notified of a
//!   change depends on the program alone ([`super::notices`]). So the trace can be followed from
//!   other shardings, with the set of slots that differ from it: a visit whose tensors do not
//!   differ makes the changes of the trace, any other visit is made anew. Once no slot differs and
//!   the same ops are queued, the rest of the trace holds as it is (the *cutoff*).
//! - **Explanations ([`super::explain`]).** The change that brought an axis to a value names the
//!   visit that made it. The shardings before follow from the trace, and repeating the visit tells
//!   the factor, the direction and the tensor that the axis came from, as in [`super::origins`].
//!   That tensor is searched in turn, until a change has [`Cause::UserPriority`] or there is none:
//!   then the axis is in the user's annotation.

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

/// Something that stores a sharding.
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
    /// A visit of this op in the current greedy run. Two kinds of further changes have the same
    /// cause: the first sharding of one result of an op gives the other results open shardings, and
    /// members of a sharding group change together.
    Visit(OpId),
    /// Propagation between a result of the main function, by its index, and the value returned as
    /// it.
    FuncResult(usize),
    /// Dims of later user priorities are closed, or the dims of a priority are restored.
    UserPriority,
}

/// A change of a sharding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// The time before the change.
    pub at: Clock,
    /// The slot.
    pub slot: Slot,
    /// The sharding before.
    pub old: ShardingId,
    /// The sharding after.
    pub new: ShardingId,
    /// Why it changes.
    pub cause: Cause,
    /// The number of earlier causes: changes of one visit have equal numbers.
    pub visit: u32,
}

/// Is notified of every change of a sharding during propagation.
///
/// Sharding groups are synchronised before, which is not reported.
pub trait Observer {
    /// A greedy run of this kind starts; dims up to this user priority take part.
    fn run_starts(&mut self, _at: Clock, _priority: i64, _run: Run) {}
    /// A sharding has changed.
    fn changed(&mut self, change: Change);
    /// An unused op was erased.
    fn erased(&mut self, _at: Clock, _op: OpId) {}
}
