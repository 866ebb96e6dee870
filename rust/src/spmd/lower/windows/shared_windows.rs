//! The keys of halo exchanges that were emitted, so that later ops that need the same windows reuse them.

use crate::index::TypeId;
use crate::spmd::digits::Digit;
use crate::spmd::movement::{Rounds, Windows};

/// The key of the ops that take a window of a value: everything that they depend on.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(in crate::spmd::lower) struct Taken {
    pub windows: Windows,
    pub thinned: Option<Thinned>,
    /// The digits that number shards, and their order of devices.
    pub digits: (u32, Vec<Digit>),
    pub dim: usize,
    pub rounds: Rounds,
    /// The types of the value, and of the fill value for padding.
    pub types: (TypeId, Option<TypeId>),
}

/// Every `stride`-th element of a shard, from `phase` on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::spmd::lower) struct Thinned {
    pub phase: i64,
    pub stride: i64,
}
