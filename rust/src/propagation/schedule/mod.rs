//! The order of visits.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`queue`] | the worklist of MLIR's greedy driver: marks and places in the queue |
//! | [`network`] | the state and the queue in step: who depends on a change is marked or queued |
//! | [`budget`] | how many visits a greedy run may make |
//! | [`dead_ops`] | ops that the driver erases as it takes them |
//! | [`func_results`] | what propagates before and after each greedy run |
//! | [`user_priority`] | from which user priority on a dim takes part |

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
