//! The order of visits.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`queue`] | the worklist of MLIR's greedy driver, and the marks of ops |
//! | [`network`] | the state with the queue: a change marks or queues the ops that depend on it |
//! | [`budget`] | how many visits a greedy run may make |
//! | [`dead_ops`] | ops that the driver erases when it takes them |
//! | [`func_results`] | what propagates before and after each greedy run |
//! | [`user_priority`] | the user priorities of dims |

mod budget;
mod dead_ops;
pub mod func_results;
mod network;
mod queue;
mod user_priority;

pub use budget::BudgetStatus;
pub use network::Network;
pub use queue::Queue;
pub use user_priority::UserPriorities;
