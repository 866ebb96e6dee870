//! Aggressive propagation: each tensor takes what it can.
//!
//! Axes that the tensors agree on along a factor go to each tensor separately, as far as that tensor
//! itself has no conflict. Where two factors want the same axis in one tensor, the factor whose axes
//! come from the larger tensor wins.
//!
//! Source: Shardy's propagation document, "Aggressive propagation".

use super::compatible::{
    prefix_across_factors, prefix_within_factor, truncate_by, wanted_axes, would_expand, Room,
};
use super::visit::FactorVisit;
use crate::axis::{prefix_status, total_size, PrefixStatus};
use crate::index::{FactorId, Id};
use crate::projection::{AxisList, Projection, TensorFactorShardings};

/// A factor with axes that the tensors agree on along it and some lack, and where these come from.
#[derive(Debug)]
pub(super) struct Wanted {
    factor: FactorId,
    axes: AxisList,
    source: Source,
}

/// The largest tensor (of equals the first) whose axes along a factor start with those agreed on.
#[derive(Clone, Copy, Debug)]
struct Source {
    /// `None`, which comes before all, if there is none.
    index: Option<usize>,
    /// -1 if there is none.
    size: i64,
}

/// Propagates in `projection`; marks the tensors it expands in `updated`. `wanted` is memory to use.
pub(super) fn propagate(
    visit: &FactorVisit<'_>,
    projection: &mut Projection,
    updated: &mut [bool],
    wanted: &mut Vec<Wanted>,
) {
    wanted.clear();
    for &factor in visit.factors {
        let direction = visit.directions[factor.index()];
        if let Some(axes) = wanted_axes(projection, factor, direction) {
            wanted.push(Wanted { factor, axes, source: Source { index: None, size: -1 } });
        }
    }
    put_in_order(visit, projection, wanted);
    let (operands, results) = updated.split_at_mut(projection.num_operands);
    for (index, is_updated) in (operands.len()..).zip(results) {
        for wanted in &*wanted {
            if let Some(axes) = propagated_axes(visit, projection, index, wanted) {
                *is_updated |= projection.tensors[index].expand(wanted.factor, &axes);
            }
        }
    }
    for (index, is_updated) in operands.iter_mut().enumerate() {
        for wanted in &*wanted {
            if let Some(mut axes) = propagated_axes(visit, projection, index, wanted) {
                if visit.is_elementwise {
                    limit_to_results(projection, wanted.factor, &mut axes);
                }
                *is_updated |= projection.tensors[index].expand(wanted.factor, &axes);
            }
        }
    }
}

/// What of the axes agreed on along a factor the tensor at `index` can take now; `None` if it has as
/// much already.
fn propagated_axes(
    visit: &FactorVisit<'_>,
    projection: &Projection,
    index: usize,
    wanted: &Wanted,
) -> Option<AxisList> {
    let Wanted { factor, axes, .. } = wanted;
    let tensor = &projection.tensors[index];
    let sharding = tensor.factor(*factor).filter(|sharding| would_expand(sharding, axes))?;
    let mut axes = axes.clone();
    let factor_size = visit.rule.factor_size(*factor);
    truncate_by(&mut axes, visit.mesh, visit.conservative, |axis, sharded_size| {
        let room = Room { sharding, factor_size, sharded_size };
        prefix_within_factor(axis, tensor, room, visit.mesh)
    });
    if !would_expand(sharding, &axes) {
        return None;
    }
    truncate_by(&mut axes, visit.mesh, visit.conservative, |axis, _| {
        prefix_across_factors(axis, tensor, *factor, &projection.conflict_order)
    });
    Some(axes)
}

/// An operand of an elementwise op gets no more than the results have: an axis that is not in a
/// result would only have to be gathered again.
fn limit_to_results(projection: &Projection, factor: FactorId, axes: &mut AxisList) {
    for result in projection.results() {
        if let Some(sharding) = result.factor(factor) {
            if would_expand(sharding, axes) {
                axes.clone_from(&sharding.axes);
            }
        }
    }
}

/// Puts factors in the order in which they claim axes: those from a larger tensor first; for an
/// elementwise op then those with more shards; then those from an earlier tensor.
fn put_in_order(visit: &FactorVisit<'_>, projection: &Projection, all: &mut [Wanted]) {
    if all.len() < 2 {
        return;
    }
    for (index, tensor) in projection.tensors.iter().enumerate() {
        let size = tensor_size(tensor, &visit.rule.factor_sizes);
        for Wanted { factor, axes, source } in &mut *all {
            let Some(sharding) = tensor.factor(*factor) else { continue };
            let is_source = prefix_status(axes, &sharding.axes) != PrefixStatus::NotAPrefix;
            if is_source && size > source.size {
                *source = Source { index: Some(index), size };
            }
        }
    }
    all.sort_by_key(|Wanted { factor, axes, source }| {
        let shards = if visit.is_elementwise { total_size(axes, visit.mesh) } else { 0 };
        (source.size.wrapping_neg(), -shards, source.index, *factor)
    });
}

/// Number of elements along the factors that the tensor has.
fn tensor_size(tensor: &TensorFactorShardings, factor_sizes: &[i64]) -> i64 {
    let sizes = tensor.factors.iter().map(|(factor, _)| factor_sizes[factor.index()]);
    sizes.fold(1i64, i64::wrapping_mul)
}
