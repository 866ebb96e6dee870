//! The factor table of one op.

use super::dims_to_factors;
use super::factors::FactorSharding;
use super::row::TensorFactorShardings;
use super::tensors_by_factor::TensorsByFactor;
use crate::axis::AxisRef;
use crate::index::{FactorId, Id};
use crate::mesh::Mesh;
use crate::op_sharding_rule::{OpShardingRule, TensorMapping};
use crate::sharding::TensorSharding;

/// The factor table of one op.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Projection {
    /// Operands, then results.
    pub tensors: Vec<TensorFactorShardings>,
    /// The number of tensors that are operands.
    pub num_operands: usize,
    by_factor: TensorsByFactor,
}

impl Projection {
    /// The table for the shardings of operands and results (`None` if a tensor has none), all over
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
    /// The table for some tensors of the op, of which the first `num_operands` are operands, from
    /// their mappings and shardings.
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
    /// Replaces the table by that of other tensors, and reuses its memory.
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
            dims_to_factors::project(
                row,
                mapping,
                sharding,
                &rule.factor_sizes,
                mesh,
                closed_if_missing,
            );
            num_tensors += 1;
        }
        self.tensors.truncate(num_tensors);
        self.num_operands = num_operands;
        self.by_factor.fill(rule.num_factors(), &self.tensors);
    }
    /// Rebuilds the row of one tensor and returns the old one. If the two have different factors,
    /// the table becomes invalid.
    pub fn replace_row(
        &mut self,
        tensor: usize,
        rule: &OpShardingRule,
        mapping: &TensorMapping,
        sharding: Option<&TensorSharding>,
        mesh: &Mesh,
    ) -> TensorFactorShardings {
        let mut row = TensorFactorShardings::default();
        dims_to_factors::project(&mut row, mapping, sharding, &rule.factor_sizes, mesh, false);
        std::mem::replace(&mut self.tensors[tensor], row)
    }
    /// The indices of the tensors that have `factor`, in order.
    #[inline]
    pub fn tensors_with(&self, factor: FactorId) -> &[u32] {
        self.by_factor.of(factor)
    }
    /// The indices of the operands and of the results that have `factor`, in order.
    #[inline]
    pub fn sides_with(&self, factor: FactorId) -> (&[u32], &[u32]) {
        let all = self.tensors_with(factor);
        all.split_at(all.partition_point(|&tensor| (tensor as usize) < self.num_operands))
    }
    /// The shardings along `factor` of the tensors that have it.
    #[inline]
    pub fn along(&self, factor: FactorId) -> impl Iterator<Item = &FactorSharding> {
        self.along_in(self.tensors_with(factor), factor)
    }
    /// The shardings along `factor` of some of these tensors.
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
    /// Sets the axes of `factor` to `axes` in every tensor whose axes are a strict prefix of
    /// `axes`; calls `changed` with the index of each such tensor.
    pub fn expand(&mut self, factor: FactorId, axes: &[AxisRef], mut changed: impl FnMut(usize)) {
        for &tensor in self.by_factor.of(factor) {
            if self.tensors[tensor as usize].expand(factor, axes) {
                changed(tensor as usize);
            }
        }
    }
    /// Sets the axes of `factor` to `axes`, without overflow axes, in every tensor that has it;
    /// calls `changed` with the index of each tensor that changes.
    pub fn update(&mut self, factor: FactorId, axes: &[AxisRef], mut changed: impl FnMut(usize)) {
        for &tensor in self.by_factor.of(factor) {
            if self.tensors[tensor as usize].update(factor, axes) {
                changed(tensor as usize);
            }
        }
    }
    /// The factors along which the tensors that have them differ.
    pub fn contested_factors(&self) -> impl Iterator<Item = FactorId> + '_ {
        self.by_factor.factors().filter(|&factor| {
            let mut all = self.along(factor);
            all.next().is_some_and(|first| all.any(|other| other.axes != first.axes))
        })
    }
    /// For each factor the longest list of axes that is a prefix in all tensors that have it.
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
