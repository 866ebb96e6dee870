//! Cuts of shards into parts that they do not consist of, and gathers of shards that do not consist of what is gathered.

use super::super::digits::{total_size, Digit};
use super::super::movement::{refined, Rounds, Windows};
use super::moves::{Position, Reached, Step};
use crate::layout::ceil_div;

/// The most shards that fetch from each other.
const MAX_SHARDS: i64 = 64;

impl Position<'_> {
    /// The cut of `dim` by `digits`, which are not used, where shards do not nest.
    pub(super) fn refine(&self, dim: usize, digits: &[Digit]) -> Option<Reached> {
        let mut placement = self.at.clone();
        placement.dims[dim].extend(digits);
        let (coarse, fine) = (self.at.num_shards(dim), placement.num_shards(dim));
        if digits.is_empty() || fine > MAX_SHARDS || self.can_cut(dim, fine / coarse) {
            return None;
        }
        let size = self.shape[dim];
        let others = self.elements() / ceil_div(size, coarse).max(1);
        let sent = refined(size, coarse, fine).sent().saturating_mul(others);
        let step = Step::Refine { dim, digits: digits.to_vec() };
        Some(Reached { step, placement, sent })
    }
    /// The all-gather of the last `count` digits of `dim` where shards do not nest: what a shard of those that are left lacks is
    /// fetched from the others.
    pub(super) fn gather_across(&self, dim: usize, count: usize) -> Option<Reached> {
        let own = &self.at.dims[dim];
        let (left, digits) = own.split_at(own.len() - count);
        let (coarse, parts) = (total_size(left), total_size(digits));
        if coarse > MAX_SHARDS || self.can_gather(dim, parts) {
            return None;
        }
        let mut placement = self.at.clone();
        placement.dims[dim].truncate(left.len());
        let (size, elements) = (self.shape[dim], self.elements());
        let shard = ceil_div(size, coarse * parts).max(1);
        let fetched = coarser(size, coarse).schedule(shard * parts, Rounds::Fewest).sent();
        let fetched = fetched.saturating_mul(elements / shard);
        let sent = elements.saturating_mul(parts - 1).saturating_add(fetched);
        let step = Step::AllGather { dim, digits: digits.to_vec() };
        Some(Reached { step, placement, sent })
    }
}

/// The windows that are the shards of a dim of `size` elements over `count` devices.
pub(super) fn coarser(size: i64, count: i64) -> Windows {
    let shard = ceil_div(size, count);
    let starts = (0..count).map(|number| number * shard).collect();
    Windows::of_elements(size, starts, shard, size)
}
