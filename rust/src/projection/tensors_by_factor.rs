//! The tensors that have each factor. An op may have thousands of both, while most tensors have few
//! factors.

use super::row::TensorFactorShardings;
use crate::index::{FactorId, Id};

/// For each factor the tensors that have it, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct TensorsByFactor {
    /// For each factor the end of its list, which is the start of the next one.
    ends: Vec<u32>,
    tensors: Vec<u32>,
}

impl TensorsByFactor {
    /// Lists, for each of `num_factors` factors, the tensors in `rows`.
    pub fn fill(&mut self, num_factors: usize, rows: &[TensorFactorShardings]) {
        let Self { ends, tensors } = self;
        ends.clear();
        ends.resize(num_factors + 1, 0);
        for (factor, _) in rows.iter().flat_map(|row| row.factors.iter()) {
            ends[factor.index() + 1] += 1;
        }
        for factor in 0..num_factors {
            ends[factor + 1] += ends[factor];
        }
        tensors.clear();
        tensors.resize(ends[num_factors] as usize, 0);
        // The start of a factor's list is advanced to its end while the list is filled.
        for (tensor, row) in (0..).zip(rows) {
            for (factor, _) in row.factors.iter() {
                let end = &mut ends[factor.index()];
                tensors[*end as usize] = tensor;
                *end += 1;
            }
        }
    }
    /// All factors.
    pub fn factors(&self) -> impl Iterator<Item = FactorId> {
        (0..self.ends.len().saturating_sub(1)).map(FactorId::from_index)
    }
    /// The tensors that have `factor`.
    #[inline]
    pub fn of(&self, factor: FactorId) -> &[u32] {
        let start = factor.index().checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.tensors[start as usize..self.ends[factor.index()] as usize]
    }
}
