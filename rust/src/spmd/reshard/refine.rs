//! Reshards between numbers of shards that do not nest, such as 6 elements on 4 and on 8 devices: devices slice their shard out of
//! parts that they gather or exchange.

use super::super::digits::{total_size, Digit};
use super::super::movement::{refined, Rounds, Windows};
use super::super::placement::Placement;
use super::steps::{nests, Moved, Position, Reached, Step};
use crate::layout::ceil_div;

/// The most shards that fetch from each other.
const MAX_SHARDS: i64 = 64;

impl Position<'_> {
    /// The split of `dim` by unused `digits`, where shards do not nest.
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
    /// The all-gather of the last `count` digits of `dim` where shards do not nest: devices fetch the elements that the remaining
    /// shards lack.
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
    /// The all-to-all that leads to `placement` where shards do not nest: devices fetch the elements that shards lack.
    pub(super) fn exchange_across(
        &self,
        moved: &[Moved],
        placement: &Placement,
    ) -> Option<Reached> {
        let is_long = |placement: &Placement| {
            (0..placement.dims.len()).any(|dim| placement.num_shards(dim) > MAX_SHARDS)
        };
        if is_long(self.at) || is_long(placement) {
            return None;
        }
        let digits: Vec<Digit> = moved.iter().flat_map(|one| one.digits.clone()).collect();
        let mut sent = self.exchanged(placement, &digits);
        let mut local = self.at.local_shape(self.shape);
        for gap in cut_apart(self.at, placement, self.shape) {
            sent = sent.saturating_add(gap.sent(local[gap.dim], self.product(&local)));
            local[gap.dim] = gap.windows.size;
        }
        local = held_after(self.at, placement, self.shape);
        for gap in grown_apart(self.at, placement, self.shape) {
            sent = sent.saturating_add(gap.sent(local[gap.dim], self.product(&local)));
            local[gap.dim] = gap.windows.size;
        }
        let step = Step::AllToAll { moved: moved.to_vec() };
        Some(Reached { step, placement: placement.clone(), sent })
    }
}

/// A dim along which devices lack elements, and the windows of it that they fetch.
pub(super) struct Gap {
    pub dim: usize,
    pub windows: Windows,
}

impl Gap {
    /// The elements that a device sends, which holds `elements`, `held` of them along the dim.
    fn sent(&self, held: i64, elements: i64) -> i64 {
        let sent = self.windows.schedule(held, Rounds::Fewest).sent();
        sent.saturating_mul(elements / held.max(1))
    }
}

/// The dims that an all-to-all splits into parts that do not nest in the shards: before it, devices fetch elements to complete the
/// parts.
pub(super) fn cut_apart(from: &Placement, to: &Placement, shape: &[i64]) -> Vec<Gap> {
    let gap = |(dim, &size): (usize, &i64)| {
        let (own, wanted) = (from.num_shards(dim), to.num_shards(dim));
        let is_apart = own < wanted && !nests(size, own, wanted);
        let windows = || windows(size, own, ceil_div(size, wanted) * (wanted / own));
        is_apart.then(|| Gap { dim, windows: windows() })
    };
    shape.iter().enumerate().filter_map(gap).collect()
}

/// The dims in whose new shards the parts that an all-to-all joins do not nest: after it, devices fetch the elements that they
/// lack.
pub(super) fn grown_apart(from: &Placement, to: &Placement, shape: &[i64]) -> Vec<Gap> {
    let gap = |(dim, &size): (usize, &i64)| {
        let (own, wanted) = (from.num_shards(dim), to.num_shards(dim));
        let is_apart = own > wanted && !nests(size, wanted, own);
        is_apart.then(|| Gap { dim, windows: coarser(size, wanted) })
    };
    shape.iter().enumerate().filter_map(gap).collect()
}

/// The sizes that a device holds right after an all-to-all: along dims that grow, several whole shards of the placement before.
fn held_after(from: &Placement, to: &Placement, shape: &[i64]) -> Vec<i64> {
    let held = |(dim, &size): (usize, &i64)| {
        let (own, wanted) = (from.num_shards(dim), to.num_shards(dim));
        ceil_div(size, own.max(wanted)) * (own / wanted).max(1)
    };
    shape.iter().enumerate().map(held).collect()
}

/// The windows that are the shards of a dim of `size` elements over `count` devices.
pub(super) fn coarser(size: i64, count: i64) -> Windows {
    windows(size, count, ceil_div(size, count))
}

/// Windows of `len` elements in a row, of a dim of `size` elements over `count` devices.
fn windows(size: i64, count: i64, len: i64) -> Windows {
    let starts = (0..count).map(|number| number * len).collect();
    Windows::of_elements(size, starts, len, size)
}
