//! The table of the sums that [`super::sharded_sums`] makes.

use crate::index::BlockId;
use crate::spmd::lower::emission::local_value::{LocalValue, Shard};
use rustc_hash::FxHashMap;

/// The sums of a program of which devices keep their shards.
#[derive(Default)]
pub(in crate::spmd::lower) struct KnownSums {
    /// For shards that a reduce-scatter made its block and the terms.
    pub terms: FxHashMap<Shard, (BlockId, LocalValue)>,
    /// Shards to cut out of sums instead: the shard and the sum.
    pub cut: Vec<(LocalValue, LocalValue)>,
}
