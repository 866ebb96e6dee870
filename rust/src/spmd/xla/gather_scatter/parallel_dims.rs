//! The order of devices along the parallel (batch) dims of a gather or scatter.
//!
//! Source: `GatherScatterOperandsShardedAcrossParallelDims`.

use super::super::super::digits::{total_size, Digit};
use super::super::super::strategy::FactorDigits;
use super::super::tiles::deal;
use super::model::{Groups, Indexed};

impl Indexed {
    /// `digits`, of a tensor, within groups along `taken`. If they are among those, its shards are assigned to the devices of a
    /// group in the order of the `leader`.
    pub(super) fn dealt_as(
        &self,
        groups: &Groups,
        (tensor, digits): (usize, &FactorDigits),
        (leader, led): (usize, &FactorDigits),
        taken: &[Digit],
    ) -> FactorDigits {
        let mut dealt = vec![Vec::new(); digits.len()];
        if !digits.iter().flatten().any(|digit| taken.contains(digit)) {
            dealt.clone_from_slice(digits);
            return dealt;
        }
        let is_left = |digit: &Digit| !taken.contains(digit);
        let own = self.tensors[leader].dims.iter().flatten().flat_map(|&factor| &led[factor]);
        let mut order: Vec<Digit> = own.copied().filter(is_left).collect();
        let mut copies = self.devices_left(groups);
        copies.retain(|digit| is_left(digit) && !order.contains(digit));
        order.extend(copies);
        let factors: Vec<usize> = self.tensors[tensor].dims.iter().flatten().copied().collect();
        let counts: Vec<i64> = factors.iter().map(|&factor| total_size(&digits[factor])).collect();
        if let Some((parts, _)) = deal(&order, &counts) {
            for (factor, part) in factors.into_iter().zip(parts) {
                dealt[factor] = part;
            }
        }
        dealt
    }
}
