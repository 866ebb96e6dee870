//! Notifications: which ops are marked or queued when the sharding of a value changes.
//!
//! A change has two effects. Every op whose visit reads the sharding is marked. And the ops that
//! the reference notifies are queued, in its order, since that order affects the result: the users
//! of the other targets of an edge, the defining op, the users of the value; an op that only
//! forwards values is replaced by its edge. Among users, the most recently added comes first.
//!
//! Ops with many tensors, and functions with many results, also get a list of the tensors that
//! changed ([`readers`]).

mod dependents;
mod notice;
pub mod readers;
mod walk;

pub use dependents::list;
pub use notice::{Action, Notice};
