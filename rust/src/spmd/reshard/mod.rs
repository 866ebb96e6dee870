//! Resharding: from one placement of a tensor to another.

mod apart;
mod cuts;
mod kept_dims;
mod known;
mod lower;
mod moves;
mod one_permute;
mod permuted;
mod refine;
mod reordered;
mod search;

pub use apart::{plan, plan_between};
pub use known::{KnownPlans, PlanKey};
pub use lower::{neutral, shard_elements, Traveller};
pub use moves::{Abilities, Position, Reached, Step};
pub use search::Plan;
