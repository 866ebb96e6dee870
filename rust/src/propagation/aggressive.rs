//! Aggressive propagation: each tensor takes what it can.
//!
//! Axes that the tensors agree on along a factor go to each tensor separately, as far as that tensor
//! itself has no conflict. Where two factors want the same axis in one tensor, the factor whose axes
//! come from the larger tensor wins.
//!
//! Source: Shardy's propagation document, "Aggressive propagation".

use super::compatible::{
    major_axes, prefix_across_factors, prefix_within_factor, truncate_by, Room,
};
use super::visit::FactorVisit;
use crate::axis::{prefix_status, total_size, AxisRef, PrefixStatus};
use crate::index::{FactorId, Id};
use crate::mesh::Mesh;
use crate::projection::{Projection, TensorFactorShardings};

/// Propagates in `projection`; marks the tensors it expands in `updated`.
pub(super) fn propagate(
    visit: &FactorVisit<'_>,
    projection: &mut Projection,
    updated: &mut [bool],
) {
    let directions = visit.directions.iter().enumerate();
    let axes_per_factor: Vec<Vec<AxisRef>> = directions
        .map(|(index, &direction)| major_axes(projection, FactorId::from_index(index), direction))
        .collect();
    if axes_per_factor.iter().all(Vec::is_empty) {
        return;
    }
    let preference = Preference::new(visit, projection, &axes_per_factor);
    let (operands, results) = updated.split_at_mut(projection.num_operands);
    for (index, is_updated) in (operands.len()..).zip(results) {
        for &factor in &preference.order {
            let axes = propagated_axes(visit, projection, index, factor, &axes_per_factor);
            *is_updated |= projection.tensors[index].expand(factor, &axes);
        }
    }
    for (index, is_updated) in operands.iter_mut().enumerate() {
        for &factor in &preference.order {
            let mut axes = propagated_axes(visit, projection, index, factor, &axes_per_factor);
            if axes.is_empty() {
                continue;
            }
            if visit.is_elementwise {
                limit_to_results(projection, factor, &mut axes);
            }
            *is_updated |= projection.tensors[index].expand(factor, &axes);
        }
    }
}

/// What of the axes agreed on along `factor` the tensor at `index` can take now; empty if it has
/// as much already.
fn propagated_axes(
    visit: &FactorVisit<'_>,
    projection: &Projection,
    index: usize,
    factor: FactorId,
    axes_per_factor: &[Vec<AxisRef>],
) -> Vec<AxisRef> {
    let tensor = &projection.tensors[index];
    let wanted = &axes_per_factor[factor.index()];
    let Some(sharding) = tensor.factor(factor).filter(|_| !wanted.is_empty()) else {
        return Vec::new();
    };
    let mut axes = wanted.clone();
    let factor_size = visit.rule.factor_size(factor);
    truncate_by(&mut axes, visit.mesh, visit.conservative, |axis, sharded_size| {
        let room = Room { sharding, factor_size, sharded_size };
        prefix_within_factor(axis, tensor, room, visit.mesh)
    });
    if prefix_status(&sharding.axes, &axes) != PrefixStatus::StrictPrefix {
        return Vec::new();
    }
    truncate_by(&mut axes, visit.mesh, visit.conservative, |axis, _| {
        prefix_across_factors(axis, tensor, factor, &projection.conflict_order)
    });
    axes
}

/// An operand of an elementwise op gets no more than the results have: an axis that is not in a
/// result would only have to be gathered again.
fn limit_to_results(projection: &Projection, factor: FactorId, axes: &mut Vec<AxisRef>) {
    for result in projection.results() {
        if let Some(sharding) = result.factor(factor) {
            if prefix_status(&sharding.axes, axes) == PrefixStatus::StrictPrefix {
                axes.clone_from(&sharding.axes);
            }
        }
    }
}

/// The order in which factors claim axes: those from a larger tensor first; for an elementwise op
/// then those with more shards; then those from an earlier tensor.
struct Preference {
    order: Vec<FactorId>,
}

/// The tensor that the axes of a factor come from.
#[derive(Clone, Copy)]
struct Source {
    /// `None`, which comes before all, if there is none.
    index: Option<usize>,
    size: i64,
}

impl Preference {
    fn new(
        visit: &FactorVisit<'_>,
        projection: &Projection,
        axes_per_factor: &[Vec<AxisRef>],
    ) -> Self {
        let sources = sources(projection, &visit.rule.factor_sizes, axes_per_factor);
        let shards = |factor: FactorId, mesh: &Mesh| {
            if visit.is_elementwise {
                total_size(&axes_per_factor[factor.index()], mesh)
            } else {
                0
            }
        };
        let mut order: Vec<FactorId> =
            (0..axes_per_factor.len()).map(FactorId::from_index).collect();
        order.sort_by_key(|&factor| {
            let source = sources[factor.index()];
            (source.size.wrapping_neg(), -shards(factor, visit.mesh), source.index, factor)
        });
        Self { order }
    }
}

/// For each factor the largest tensor (of equals the first) whose axes along it start with the axes
/// agreed on; the size is -1 if there is none.
fn sources(
    projection: &Projection,
    factor_sizes: &[i64],
    axes_per_factor: &[Vec<AxisRef>],
) -> Vec<Source> {
    let mut sources = vec![Source { index: None, size: -1 }; factor_sizes.len()];
    for (index, tensor) in projection.tensors.iter().enumerate() {
        let size = tensor_size(tensor, factor_sizes);
        for (factor, sharding) in tensor.factors.iter().enumerate() {
            let Some(sharding) = sharding else { continue };
            let axes = &axes_per_factor[factor];
            let is_source =
                !axes.is_empty() && prefix_status(axes, &sharding.axes) != PrefixStatus::NotAPrefix;
            if is_source && size > sources[factor].size {
                sources[factor] = Source { index: Some(index), size };
            }
        }
    }
    sources
}

/// Number of elements along the factors that the tensor has.
fn tensor_size(tensor: &TensorFactorShardings, factor_sizes: &[i64]) -> i64 {
    let present = tensor.factors.iter().zip(factor_sizes).filter(|(factor, _)| factor.is_some());
    present.fold(1i64, |size, (_, &factor_size)| size.wrapping_mul(factor_size))
}
