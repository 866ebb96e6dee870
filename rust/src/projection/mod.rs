//! The factor table: the shardings of an op's tensors, seen along the factors of its rule.
//!
//! Propagation does not compare dims, it compares factors. Projecting splits the axes of each dim
//! over the dim's factors, splitting an axis where a factor boundary needs it; projecting back joins
//! them again.
//!
//! For the rule `([ij])->([i, j]) {i=2, j=4}` over the mesh `["x"=4, "y"=2]`, with the operand
//! sharded as `[{"x", "y"}]` and the result as `[{?}, {?}]`:
//!
//! | tensor | i | j |
//! | --- | --- | --- |
//! | operand | `"x":(1)2` | `"x":(2)2, "y"` |
//! | result | `?` | `?` |
//!
//! Once both factors have propagated, the result projects back to `[{"x":(1)2}, {"x":(2)2, "y"}]`.
//!
//! The minor-most factor of a dim takes all axes that are left, whether their sizes divide it or
//! not. Any other factor takes axes as long as they divide it; if the next one does not, that axis
//! and the rest *overflow*: they stay with the factor so that projecting back loses nothing, and no
//! factor after it can be sharded.
//!
//! Source: Shardy's propagation document, "Sharding projection".

mod axis_list;
mod back;
mod build;
mod factors;
mod tensors_by_factor;

pub use axis_list::AxisList;
pub(crate) use build::gcd;
pub use factors::Factors;

use crate::axis::{prefix_status, AxisRef, PrefixStatus};
use crate::index::{FactorId, Id};
use crate::mesh::Mesh;
use crate::rule::{OpShardingRule, TensorMapping};
use crate::sharding::TensorSharding;
use tensors_by_factor::TensorsByFactor;

/// How one factor of one tensor is sharded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FactorSharding {
    /// The axes, major to minor.
    pub axes: AxisList,
    /// Whether propagation may not add axes.
    pub is_closed: bool,
    /// Whether it is the last factor of its dim.
    pub is_minor_most: bool,
    /// Axes of the dim from the first one on that does not divide what is left of the factor.
    pub overflow: Vec<AxisRef>,
}

/// One row of the factor table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TensorFactorShardings {
    /// How factors are sharded: those that the tensor has, but for what stands behind a factor that
    /// overflows.
    pub factors: Factors,
    /// Axes that may not shard any factor.
    pub replicated: Vec<AxisRef>,
    /// Axes over which the value still has to be summed.
    pub unreduced: Vec<AxisRef>,
}

impl TensorFactorShardings {
    /// The sharding of `factor`.
    #[inline]
    pub fn factor(&self, factor: FactorId) -> Option<&FactorSharding> {
        self.factors.get(factor)
    }
    /// Gives `factor` the axes `axes` if the tensor has it and its axes are a strict prefix of them;
    /// true if so.
    pub fn expand(&mut self, factor: FactorId, axes: &[AxisRef]) -> bool {
        let Some(sharding) = self.factors.get_mut(factor) else { return false };
        if prefix_status(&sharding.axes, axes) != PrefixStatus::StrictPrefix {
            return false;
        }
        sharding.axes = axes.into();
        true
    }
    /// Gives `factor` these axes and no overflow axes if the tensor has it; true if that is new.
    fn update(&mut self, factor: FactorId, axes: &[AxisRef]) -> bool {
        let Some(sharding) = self.factors.get_mut(factor) else { return false };
        if *sharding.axes == *axes && sharding.overflow.is_empty() {
            return false;
        }
        sharding.axes = axes.into();
        sharding.overflow.clear();
        true
    }
    /// Number of shards of the tensor.
    pub fn sharding_size(&self, mesh: &Mesh) -> i64 {
        let factors = self.factors.shardings();
        factors
            .flat_map(|factor| factor.axes.iter().chain(&factor.overflow))
            .map(|axis| axis.size(mesh))
            .product()
    }
    /// Whether some factor overflows.
    pub fn has_overflow(&self) -> bool {
        self.factors.shardings().any(|factor| !factor.overflow.is_empty())
    }
}

/// The factor table of one op.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Projection {
    /// Operands, then results.
    pub tensors: Vec<TensorFactorShardings>,
    /// How many of the tensors are operands.
    pub num_operands: usize,
    by_factor: TensorsByFactor,
}

impl Projection {
    /// The table for the shardings of operands and results (`None` where there is none), all over
    /// `mesh`. A missing sharding is empty, and closed if `closed_if_missing`.
    pub fn build<'a>(
        rule: &'a OpShardingRule,
        shardings: impl IntoIterator<Item = Option<&'a TensorSharding>>,
        mesh: &Mesh,
        closed_if_missing: bool,
    ) -> Self {
        let rows = rule.tensors().zip(shardings);
        Self::of_rows(rule, rule.operands.len(), rows, mesh, closed_if_missing)
    }
    /// The same for some tensors of the op, of which the first `num_operands` are operands: their
    /// mappings and shardings.
    pub fn of_rows<'a>(
        rule: &OpShardingRule,
        num_operands: usize,
        rows: impl Iterator<Item = (&'a TensorMapping, Option<&'a TensorSharding>)>,
        mesh: &Mesh,
        closed_if_missing: bool,
    ) -> Self {
        let mut table = Self::default();
        table.fill(rule, num_operands, rows, mesh, closed_if_missing);
        table
    }
    /// Makes the same of this table, whose memory is used again.
    pub fn fill<'a>(
        &mut self,
        rule: &OpShardingRule,
        num_operands: usize,
        rows: impl Iterator<Item = (&'a TensorMapping, Option<&'a TensorSharding>)>,
        mesh: &Mesh,
        closed_if_missing: bool,
    ) {
        let mut num_tensors = 0;
        for (mapping, sharding) in rows {
            if num_tensors == self.tensors.len() {
                self.tensors.push(TensorFactorShardings::default());
            }
            let row = &mut self.tensors[num_tensors];
            build::project(row, mapping, sharding, &rule.factor_sizes, mesh, closed_if_missing);
            num_tensors += 1;
        }
        self.tensors.truncate(num_tensors);
        self.num_operands = num_operands;
        self.by_factor.fill(rule.num_factors(), &self.tensors);
    }
    /// Makes the row of one tensor anew and returns the old one. If it has not the same factors as that,
    /// the table is of no use any more.
    pub fn replace_row(
        &mut self,
        tensor: usize,
        rule: &OpShardingRule,
        mapping: &TensorMapping,
        sharding: Option<&TensorSharding>,
        mesh: &Mesh,
    ) -> TensorFactorShardings {
        let mut row = TensorFactorShardings::default();
        build::project(&mut row, mapping, sharding, &rule.factor_sizes, mesh, false);
        std::mem::replace(&mut self.tensors[tensor], row)
    }
    /// The tensors that have `factor`, by their numbers, in order.
    #[inline]
    pub fn tensors_with(&self, factor: FactorId) -> &[u32] {
        self.by_factor.of(factor)
    }
    /// The same, operands and results apart.
    #[inline]
    pub fn sides_with(&self, factor: FactorId) -> (&[u32], &[u32]) {
        let all = self.tensors_with(factor);
        all.split_at(all.partition_point(|&tensor| (tensor as usize) < self.num_operands))
    }
    /// How the tensors that have `factor` are sharded along it.
    #[inline]
    pub fn along(&self, factor: FactorId) -> impl Iterator<Item = &FactorSharding> {
        self.along_in(self.tensors_with(factor), factor)
    }
    /// The same of some of these tensors.
    #[inline]
    pub fn along_in<'a>(
        &'a self,
        tensors: &'a [u32],
        factor: FactorId,
    ) -> impl Iterator<Item = &'a FactorSharding> {
        tensors.iter().filter_map(move |&tensor| self.tensors[tensor as usize].factor(factor))
    }
    /// The rows of the operands.
    pub fn operands(&self) -> &[TensorFactorShardings] {
        &self.tensors[..self.num_operands]
    }
    /// The rows of the results.
    pub fn results(&self) -> &[TensorFactorShardings] {
        &self.tensors[self.num_operands..]
    }
    /// Gives `factor` the axes `axes` in every tensor that has it with a strict prefix of them;
    /// `changed` is told the index of each such tensor.
    pub fn expand(&mut self, factor: FactorId, axes: &[AxisRef], mut changed: impl FnMut(usize)) {
        for &tensor in self.by_factor.of(factor) {
            if self.tensors[tensor as usize].expand(factor, axes) {
                changed(tensor as usize);
            }
        }
    }
    /// Gives `factor` these axes and no overflow axes in every tensor that has it; `changed` is told the
    /// index of each tensor for which that is new.
    pub fn update(&mut self, factor: FactorId, axes: &[AxisRef], mut changed: impl FnMut(usize)) {
        for &tensor in self.by_factor.of(factor) {
            if self.tensors[tensor as usize].update(factor, axes) {
                changed(tensor as usize);
            }
        }
    }
    /// The factors along which tensors that have them differ.
    pub fn contested_factors(&self) -> impl Iterator<Item = FactorId> + '_ {
        self.by_factor.factors().filter(|&factor| {
            let mut all = self.along(factor);
            all.next().is_some_and(|first| all.any(|other| other.axes != first.axes))
        })
    }
    /// For each factor the longest list of axes that all tensors having it start with.
    pub fn greatest_common_prefix_axes(&self, num_factors: usize) -> Vec<Vec<AxisRef>> {
        let mut common: Vec<Option<Vec<AxisRef>>> = vec![None; num_factors];
        for tensor in &self.tensors {
            for (factor, sharding) in tensor.factors.iter() {
                let entry = &mut common[factor.index()];
                *entry = Some(match entry.take() {
                    None => sharding.axes.to_vec(),
                    Some(axes) => greatest_common_prefix(&axes, &sharding.axes),
                });
            }
        }
        common.into_iter().map(Option::unwrap_or_default).collect()
    }
}

/// The longest list that is a prefix of both; its last ref may be a prefix of its counterparts.
pub fn greatest_common_prefix(first: &[AxisRef], second: &[AxisRef]) -> Vec<AxisRef> {
    let mut common = Vec::new();
    for (&a, &b) in first.iter().zip(second) {
        if a != b {
            common.extend(a.greatest_common_prefix(b));
            break;
        }
        common.push(a);
    }
    common
}

/// Puts `factors` of a rule of `num_factors` in the order in which the reference walks those of one tensor.
///
/// It keeps them in a hash table of at least 64 buckets and a power of two, more than 4/3 of the
/// number of factors, in which factor `i` has bucket `37 * i`. The order matters only where axes
/// are split in ways that do not nest, but there it does.
pub fn sort_by_bucket<T>(
    factors: &mut [T],
    num_factors: usize,
    factor_of: impl Fn(&T) -> FactorId,
) {
    let buckets = (num_factors * 4 / 3 + 2).next_power_of_two().max(64);
    factors.sort_by_key(|factor| factor_of(factor).index() * 37 % buckets);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_stand_in_the_order_of_their_buckets() {
        let mut factors: Vec<FactorId> = (0..3).map(FactorId::from_index).collect();
        sort_by_bucket(&mut factors, 3, |&factor| factor);
        assert_eq!(factors.into_iter().map(Id::index).collect::<Vec<_>>(), [0, 2, 1]);
    }
}
