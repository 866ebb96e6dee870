//! Cuts of shards into parts that they do not consist of.

use super::super::digits::Digit;
use super::super::movement::refined;
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
}
