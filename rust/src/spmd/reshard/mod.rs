//! Resharding: from one placement of a tensor to another.

mod digit_orders;
mod gather_then_slice;
mod kept_dims;
mod lower;
mod one_permute;
mod plan_cache;
mod refine;
mod reordered;
mod search;
mod slice_steps;
mod steps;

pub use gather_then_slice::{plan, plan_between};
pub use lower::{neutral, shard_elements, Traveller};
pub use plan_cache::{PlanCache, PlanKey};
pub use search::Plan;
pub use steps::{Abilities, Position, Reached, Step};
