//! Aggressive propagation: each tensor takes the axes that it can.
//!
//! Axes that the tensors agree on along a factor propagate to each tensor separately, as far as
//! that tensor itself has no conflict. If two factors want the same axis in one tensor, the factor
//! whose axes come from the larger tensor wins.
//!
//! Source: Shardy's propagation document, "Aggressive propagation".

use super::compatible::{
    missing_compatible_axes, prefix_across_factors, prefix_within_factor, truncate_by,
    would_expand, Room,
};
use super::factor_visit::FactorVisit;
use crate::axis::{prefix_status, total_size, PrefixStatus};
use crate::index::{FactorId, Id};
use crate::projection::{AxisList, Projection, TensorFactorShardings};
use std::ops::Range;

/// The claim of a factor: the axes that the tensors agree on and some lack, and the tensor they
/// come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FactorClaim {
    factor: FactorId,
    axes: AxisList,
    source: Source,
}

impl FactorClaim {
    /// The claim of `factor`, without its source; `None` if no tensor lacks an axis.
    fn new(visit: &FactorVisit<'_>, projection: &Projection, factor: FactorId) -> Option<Self> {
        let axes = missing_compatible_axes(projection, factor, visit.directions[factor.index()])?;
        Some(Self { factor, axes, source: Source { index: None, size: -1 } })
    }
    /// The claim of `factor`, with its source; `None` if no tensor lacks an axis.
    pub fn with_source(
        visit: &FactorVisit<'_>,
        projection: &Projection,
        factor: FactorId,
    ) -> Option<Self> {
        let mut claim = Self::new(visit, projection, factor)?;
        claim.find_source(visit, projection);
        Some(claim)
    }
    fn find_source(&mut self, visit: &FactorVisit<'_>, projection: &Projection) {
        let Self { factor, axes, source } = self;
        let tensors = projection.tensors_with(*factor);
        for (&index, sharding) in tensors.iter().zip(projection.along(*factor)) {
            let is_source = prefix_status(axes, &sharding.axes) != PrefixStatus::NotAPrefix;
            if !is_source {
                continue;
            }
            let size = tensor_size(&projection.tensors[index as usize], &visit.rule.factor_sizes);
            if size > source.size {
                *source = Source { index: Some(index), size };
            }
        }
    }
    /// The key by which claims are sorted: those from a larger tensor first; for an elementwise op
    /// then those with more shards; then those from an earlier tensor.
    pub fn key(&self, visit: &FactorVisit<'_>) -> impl Ord {
        let Self { factor, axes, source } = self;
        let shards = if visit.is_elementwise { total_size(axes, visit.mesh) } else { 0 };
        (source.size.wrapping_neg(), -shards, source.index, *factor)
    }
}

/// The largest tensor whose axes along a factor start with the claimed ones; the first of equally
/// large tensors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Source {
    /// `None`, which is ordered first, if there is none.
    index: Option<u32>,
    /// -1 if there is none.
    size: i64,
}

/// Propagates in `projection`; sets the flags in `updated` of the tensors it expands. `claims` is a
/// buffer.
pub fn propagate(
    visit: &FactorVisit<'_>,
    projection: &mut Projection,
    updated: &mut [bool],
    claims: &mut Vec<FactorClaim>,
) {
    claims.clear();
    let factors = visit.factors.iter();
    claims.extend(factors.filter_map(|&factor| FactorClaim::new(visit, projection, factor)));
    put_in_order(visit, projection, claims);
    // Tensors do not affect each other, except that operands of elementwise ops are limited to the
    // axes of results.
    for side in [Side::Results, Side::Operands] {
        for FactorClaim { factor, axes, .. } in &*claims {
            for at in side.range(projection, *factor) {
                let tensor = projection.tensors_with(*factor)[at] as usize;
                let propagated = propagated_axes(visit, &projection.tensors[tensor], *factor, axes);
                let Some(mut axes) = propagated else { continue };
                if visit.is_elementwise && side == Side::Operands {
                    limit_to_results(projection, *factor, &mut axes);
                }
                updated[tensor] |= projection.tensors[tensor].expand(*factor, &axes);
            }
        }
    }
}

/// A side of an op: its operands or its results.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Operands,
    Results,
}

impl Side {
    /// The range of this side among the tensors that have `factor`.
    fn range(self, projection: &Projection, factor: FactorId) -> Range<usize> {
        let (operands, results) = projection.sides_with(factor);
        match self {
            Self::Operands => 0..operands.len(),
            Self::Results => operands.len()..operands.len() + results.len(),
        }
    }
}

/// The tensor with the axes of `claims` that it can take, in this order; `None` if it takes none.
/// Not for elementwise ops.
pub fn expanded(
    visit: &FactorVisit<'_>,
    tensor: &TensorFactorShardings,
    claims: &[&FactorClaim],
) -> Option<TensorFactorShardings> {
    let mut new: Option<TensorFactorShardings> = None;
    for FactorClaim { factor, axes, .. } in claims {
        let now = new.as_ref().unwrap_or(tensor);
        if let Some(axes) = propagated_axes(visit, now, *factor, axes) {
            new.get_or_insert_with(|| tensor.clone()).expand(*factor, &axes);
        }
    }
    new.filter(|new| new != tensor)
}

/// The prefix of the axes that `factor` claims that the tensor can take; `None` if it has them
/// already.
fn propagated_axes(
    visit: &FactorVisit<'_>,
    tensor: &TensorFactorShardings,
    factor: FactorId,
    axes: &AxisList,
) -> Option<AxisList> {
    let sharding = tensor.factor(factor).filter(|sharding| would_expand(sharding, axes))?;
    let mut axes = axes.clone();
    let factor_size = visit.rule.factor_size(factor);
    truncate_by(&mut axes, visit.mesh, visit.conservative, |axis, sharded_size| {
        let room = Room { sharding, factor_size, sharded_size };
        prefix_within_factor(axis, tensor, room, visit.mesh)
    });
    if !would_expand(sharding, &axes) {
        return None;
    }
    truncate_by(&mut axes, visit.mesh, visit.conservative, |axis, _| {
        prefix_across_factors(axis, tensor, factor, visit.rule.num_factors())
    });
    Some(axes)
}

/// Limits the axes of an operand of an elementwise op to those of the results, since an axis that
/// no result has would require an all-gather.
fn limit_to_results(projection: &Projection, factor: FactorId, axes: &mut AxisList) {
    let (_, results) = projection.sides_with(factor);
    for sharding in projection.along_in(results, factor) {
        if would_expand(sharding, axes) {
            axes.clone_from(&sharding.axes);
        }
    }
}

/// Sorts factors in the order of their claims.
fn put_in_order(visit: &FactorVisit<'_>, projection: &Projection, all: &mut [FactorClaim]) {
    if all.len() < 2 {
        return;
    }
    for claim in &mut *all {
        claim.find_source(visit, projection);
    }
    all.sort_by_key(|claim| claim.key(visit));
}

/// Number of elements of the tensor, as the product of the sizes of its factors.
fn tensor_size(tensor: &TensorFactorShardings, factor_sizes: &[i64]) -> i64 {
    let sizes = tensor.factors.iter().map(|(factor, _)| factor_sizes[factor.index()]);
    sizes.fold(1i64, i64::wrapping_mul)
}
