//! Where shardings came from: which input of the user put an axis on a value, and through which ops
//! it got there.
//!
//! Two things are recorded while propagation runs, each if it is wanted:
//!
//! - the *origin* of each axis of each value: the function argument or result, the constraint, or
//!   the argument or result of a manual computation, whose sharding had the axis at first;
//! - the *flows* through each op: in which step which operand or result passed which axis on to
//!   which other one. Steps count the visits that changed something, over the whole program.
//!
//! A visit that changes nothing leaves no trace, and a visit that changes something is looked at once
//! more, without its memo. So recording costs nothing where it is off, and where it is on as much as
//! there are changes.
//!
//! Source: Shardy's `SourceShardingHandler`.

mod attributes;
mod compare;
mod initial;
mod observe;
mod origin;
mod record;

pub(crate) use compare::arrivals;
pub(super) use observe::{record_arrivals, record_visit, Arrivals};
pub use origin::{Flow, NamedAxis, Origin, Origins, Settings};
pub(crate) use record::{Recorder, Subject, Visited};
