//! Origins of shardings: which sharding of the user put an axis on a value, and through which ops
//! the axis propagated.
//!
//! Two things are recorded while propagation runs, each if the options ask for it:
//!
//! - the *origin* of each axis of each value: the function argument or result, the constraint, or
//!   the argument or result of a manual computation, whose sharding had the axis at first;
//! - the *flows* through each op: in which step which operand or result passed which axis on to
//!   which other one. Steps are numbered over the whole program; visits that change nothing are not
//!   counted.
//!
//! A visit that changes nothing is not recorded; one that changes something is repeated for the
//! record, without the memo. The time to record is proportional to the number of changes; it is
//! zero if nothing is recorded.
//!
//! Source: Shardy's `SourceShardingHandler`.

mod attributes;
mod compare;
mod initial;
mod observe;
mod origin;
mod record;

pub(crate) use compare::{arrivals, Arrival};
pub(super) use observe::{record_arrivals, record_visit, Arrivals};
pub use origin::{Flow, NamedAxis, Origin, Origins, Settings};
pub(crate) use record::{Recorder, Subject, Visited};
