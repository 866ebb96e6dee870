//! The table of the sums that [`super::sharded_sums`] makes.

use crate::index::BlockId;
use crate::spmd::lower::emission::local_value::{LocalValue, Shard};
use rustc_hash::FxHashMap;

/// The reduce-scattered sums of a program.
#[derive(Default)]
pub(in crate::spmd::lower) struct KnownSums {
    /// For the result of each reduce-scatter its block and the partial value.
    pub terms: FxHashMap<Shard, (BlockId, LocalValue)>,
    /// Shards that are to be sliced out of sums instead: the shard and the sum.
    pub cut: Vec<(LocalValue, LocalValue)>,
}
