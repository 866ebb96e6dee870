//! Restricts the search for a reshard plan to the dims that a plan may have to shard.

use super::super::placement::Placement;
use super::steps::{Moved, Reached, Step};
use rustc_hash::FxHashMap;

/// Some dims of a tensor, by index; the other dims are sharded neither before nor after the reshard.
///
/// A plan may shard such a dim in between, but those of one size are interchangeable: of each size the first ones are kept, as many
/// as there are digits to shard them. A search over the kept dims finds the same plan as one over all dims, in less time.
pub(super) struct KeptDims {
    kept: Vec<usize>,
    rank: usize,
    /// The number of elements along all other dims.
    pub others: i64,
}

impl KeptDims {
    /// Chooses the dims for plans from `from` to `target`, for a tensor of shape `shape`.
    pub fn of(from: &Placement, target: &Placement, shape: &[i64]) -> Self {
        let most = from.digits().count() + target.digits().count();
        let mut of_size: FxHashMap<i64, usize> = FxHashMap::default();
        let (mut kept, mut others) = (Vec::new(), 1i64);
        for (dim, &size) in shape.iter().enumerate() {
            let is_sharded = !from.dims[dim].is_empty() || !target.dims[dim].is_empty();
            let alike = of_size.entry(size).or_default();
            *alike += usize::from(!is_sharded);
            if is_sharded || *alike <= most {
                kept.push(dim);
            } else {
                others = others.saturating_mul(size);
            }
        }
        Self { kept, rank: shape.len(), others }
    }
    /// The entries of `all`, which has one for each dim, for the kept dims.
    pub fn choose<T: Clone>(&self, all: &[T]) -> Vec<T> {
        self.kept.iter().map(|&dim| all[dim].clone()).collect()
    }
    /// The placement restricted to the kept dims.
    pub fn placement(&self, all: &Placement) -> Placement {
        Placement { order: all.order, dims: self.choose(&all.dims), partial: all.partial.clone() }
    }
    /// Turns steps over the kept dims into steps over all dims.
    pub fn widen(&self, steps: &mut [Reached]) {
        for reached in steps {
            match &mut reached.step {
                Step::Slice { dim, .. }
                | Step::Refine { dim, .. }
                | Step::AllGather { dim, .. }
                | Step::Spread { dim, .. }
                | Step::ReduceScatter { dim, .. } => *dim = self.kept[*dim],
                Step::AllToAll { moved } => {
                    for Moved { from, to, .. } in moved {
                        (*from, *to) = (self.kept[*from], self.kept[*to]);
                    }
                }
                Step::Permute | Step::AllReduce { .. } => {}
            }
            let digits = std::mem::take(&mut reached.placement.dims);
            reached.placement.dims.resize(self.rank, Vec::new());
            for (&dim, digits) in self.kept.iter().zip(digits) {
                reached.placement.dims[dim] = digits;
            }
        }
    }
}
