//! Notifications: which ops a change of the sharding of a value marks or queues.
//!
//! Two things follow from a change. Every op whose visit reads the sharding is marked. And the ops that
//! the reference notifies are queued, in its order, for that order is part of the result: the users of the
//! other targets of an edge, the defining op, the users of the value, with edges in the place of ops that
//! only let values flow. Of users the one added last comes first.
//!
//! Ops of many tensors, and functions of many results, are also told which of their tensors has changed
//! ([`readers`]).

mod dependents;
mod notice;
pub mod readers;
mod walk;

pub use dependents::list;
pub use notice::{Action, Notice};
