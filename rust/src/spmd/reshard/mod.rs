//! Resharding: from one placement of a tensor to another.

mod kept_dims;
mod known;
mod lower;
mod moves;
mod search;

pub use known::{KnownPlans, PlanKey};
pub use lower::{shard_elements, Traveller};
pub use moves::{Position, Reached, Step};
pub use search::{plan, Plan};
