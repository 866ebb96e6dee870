//! The sums that [`super::kept_sums`] keeps.

use super::held::{Held, Shard};
use crate::index::BlockId;
use rustc_hash::FxHashMap;

/// The sums of a program of which devices keep their shards.
#[derive(Default)]
pub(super) struct KnownSums {
    /// For shards that a reduce-scatter made its block and the terms.
    pub terms: FxHashMap<Shard, (BlockId, Held)>,
    /// Shards to cut out of sums instead: the shard and the sum.
    pub cut: Vec<(Held, Held)>,
}
