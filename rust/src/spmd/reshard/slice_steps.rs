//! Steps that split shards: slices, and reductions after which each device keeps a part.

use super::super::digits::{total_size, Digit};
use super::steps::{all_reduced, Moves, Reached, Step};

impl Moves<'_> {
    /// Adds all-reduces and reduce-scatters of partial results.
    pub(super) fn add_reductions(&self, reached: &mut Vec<Reached>) {
        let partial = &self.from.at.partial;
        if partial.is_empty() {
            return;
        }
        let devices = total_size(partial);
        let mut placement = self.from.at.clone();
        placement.partial.clear();
        let sent = all_reduced(self.from.elements(), devices);
        reached.push(Reached {
            step: Step::AllReduce { digits: partial.clone() },
            placement,
            sent,
        });
        for dim in 0..self.target.dims.len() {
            for digits in self.runs(dim, |digit| partial.contains(digit)) {
                reached.extend(self.reduce_scatter(dim, digits));
            }
        }
    }
    fn reduce_scatter(&self, dim: usize, digits: &[Digit]) -> Option<Reached> {
        let parts = total_size(digits);
        if !self.from.can_cut(dim, parts) {
            return None;
        }
        let mut placement = self.from.at.clone();
        placement.partial.retain(|digit| !digits.contains(digit));
        placement.dims[dim].extend(digits);
        let sent = self.from.elements_to_cut(dim, parts) / parts * (parts - 1);
        let step = Step::ReduceScatter { dim, digits: digits.to_vec() };
        Some(Reached { step, placement, sent })
    }
    /// Adds slices, and splits into parts that do not nest in the shards.
    pub(super) fn add_slices(&self, reached: &mut Vec<Reached>) {
        for (dim, wanted) in self.target.dims.iter().enumerate() {
            for digits in self.runs(dim, |digit| !self.is_used(*digit)) {
                reached.extend(self.from.slice(dim, digits));
            }
            let rest = wanted.strip_prefix(&self.from.at.dims[dim][..]).unwrap_or_default();
            if self.abilities.refines && rest.iter().all(|digit| !self.is_used(*digit)) {
                reached.extend(self.from.refine(dim, rest));
            }
        }
    }
    /// The digits that the target has on `dim` and that are `free`, each alone. If parts may not nest in shards, also all runs of
    /// them: 5 elements over 4 shards are 2, 2, 1 and 0, which do not nest in the 3 and 2 elements over 2 shards, but can be sliced
    /// from the whole.
    fn runs(&self, dim: usize, free: impl Fn(&Digit) -> bool) -> Vec<&[Digit]> {
        let (wanted, shards) = (&self.target.dims[dim][..], self.from.at.num_shards(dim));
        let mut runs = Vec::new();
        for start in 0..wanted.len() {
            let row = wanted[start..].iter().take_while(|digit| free(digit)).count();
            for len in 1..=row {
                let digits = &wanted[start..start + len];
                let parts = shards.saturating_mul(total_size(digits));
                if len == 1 || self.from.shape[dim] % parts != 0 {
                    runs.push(digits);
                }
            }
        }
        runs
    }
}
