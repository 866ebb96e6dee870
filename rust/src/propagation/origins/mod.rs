//! Where shardings came from: which input of the user put an axis on a value, and through which ops
//! it got there.
//!
//! Two things are recorded while propagation runs, each if the options ask for it:
//!
//! - the *origin* of each axis of each value: the function argument or result, the constraint, or
//!   the argument or result of a manual computation, whose sharding had the axis at first;
//! - the *flows* through each op: in which step which operand or result passed which axis on to
//!   which other one. Steps count the visits that changed something, over the whole program.
//!
//! A visit that changes nothing is not recorded; one that changes something is repeated for the record,
//! without the memo. Recording costs time in proportion to the number of changes, and none where it is off.
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
