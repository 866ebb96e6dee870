//! Dims that change between numbers of shards for which they are padded to different sizes.
//!
//! Collectives that change the number of shards of such a dim would not keep the padding at its end.
//! What is wanted in these dims is set aside at first: axes move out of them all at once, or are gathered, and what
//! is wanted is sliced from the whole dim afterwards. From `[{"x", "y"}, {}]` to `[{"x"}, {"z"}]`, of 10 rows on
//! axes of size 2:
//!
//! | | |
//! | --- | --- |
//! | all-slice of `z` | `[{"x", "y"}, {"z"}]` |
//! | all-gather of `x`, `y` | `[{}, {"z"}]` |
//! | all-slice of `x` | `[{"x"}, {"z"}]` |

use super::state::State;
use crate::ir::Type;

impl State<'_> {
    /// Makes the collectives after which no dim is uneven; false if none is.
    pub fn even_out(&mut self) -> bool {
        for dim in 0..self.rank() {
            if self.is_uneven(dim) {
                self.set_aside[dim] = Some(std::mem::take(&mut self.outgoing[dim]));
                let kept = self.kept[dim].clone();
                for &axis in &kept {
                    self.add_incoming(axis);
                }
                self.incoming[dim].splice(0..0, kept);
            }
        }
        if self.set_aside.iter().all(Option::is_none) {
            return false;
        }
        self.index_outgoing();
        self.try_slice();
        for out_of_order in [false, true] {
            for source in 0..self.rank() {
                self.move_evenly(source, out_of_order);
            }
        }
        self.try_gather_last();
        for dim in 0..self.rank() {
            self.want_again(dim);
        }
        true
    }
    /// Wants what was set aside of `dim`, which is not sharded any more.
    fn want_again(&mut self, dim: usize) {
        if let Some(outgoing) = self.set_aside[dim].take() {
            self.outgoing[dim].clone_from(&self.kept[dim]);
            self.outgoing[dim].extend(outgoing);
            self.index_outgoing();
        }
    }
    /// Whether `dim` is padded to another size for its current number of shards than for the wanted one, neither of
    /// which is 1.
    fn is_uneven(&self, dim: usize) -> bool {
        let size = match self.program.value_type(self.value) {
            Type::RankedTensor { shape, .. } => shape.get(dim).copied().flatten(),
            _ => None,
        };
        let Some(size) = size else { return false };
        let now = self.size(&self.current[dim]);
        let then = self.size(&self.kept[dim]) * self.size(&self.outgoing[dim]);
        let padded = |shards: i64| (size / shards + i64::from(size % shards != 0)) * shards;
        now != 1 && then != 1 && padded(now) != padded(then)
    }
    /// Makes the all-to-alls from `source`; only one of all its axes if it is uneven, after which it is not.
    fn move_evenly(&mut self, source: usize, out_of_order: bool) {
        loop {
            let moves_all = self.set_aside[source].is_some();
            if !self.try_all_to_all(source, out_of_order, moves_all) {
                return;
            }
            self.want_again(source);
        }
    }
}
