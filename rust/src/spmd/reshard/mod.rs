//! Resharding: from one placement of a tensor to another.

mod lower;
mod moves;
mod search;

pub use lower::{shard_elements, Traveller};
pub use moves::{Reached, Step};
pub use search::{plan, Plan};
