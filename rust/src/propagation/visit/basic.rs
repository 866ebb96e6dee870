//! Basic propagation: axes propagate if all tensors agree.
//!
//! For each factor, the axes that conflict with no tensor, either along this factor or in other
//! factors, propagate to every tensor that has the factor.
//!
//! Source: Shardy's propagation document, "Basic propagation".

use super::compatible::{
    missing_compatible_axes, prefix_across_factors, prefix_within_factor, truncate_by, Room,
};
use super::factor_visit::FactorVisit;
use crate::axis::AxisRef;
use crate::index::{FactorId, Id};
use crate::projection::{Projection, TensorFactorShardings};

/// Propagates in `projection`; sets the flags in `updated` of the tensors it expands.
pub fn propagate(visit: &FactorVisit<'_>, projection: &mut Projection, updated: &mut [bool]) {
    for &factor in visit.factors {
        let direction = visit.directions[factor.index()];
        let Some(mut axes) = missing_compatible_axes(projection, factor, direction) else {
            continue;
        };
        truncate_by(&mut axes, visit.mesh, visit.conservative, |axis, sharded_size| {
            let compatible = |axis: AxisRef, tensor: &TensorFactorShardings| {
                compatible_prefix(visit, tensor, factor, axis, sharded_size)
            };
            projection.tensors.iter().try_fold(axis, compatible)
        });
        projection.expand(factor, &axes, |tensor| updated[tensor] = true);
    }
}

/// The largest prefix of `axis` that `tensor` can have along `factor`, or, if it does not have the
/// factor, that overlaps none of its axes.
fn compatible_prefix(
    visit: &FactorVisit<'_>,
    tensor: &TensorFactorShardings,
    factor: FactorId,
    axis: AxisRef,
    sharded_size: i64,
) -> Option<AxisRef> {
    let axis = prefix_across_factors(axis, tensor, factor, visit.rule.num_factors())?;
    let Some(sharding) = tensor.factor(factor) else { return Some(axis) };
    let room = Room { sharding, factor_size: visit.rule.factor_size(factor), sharded_size };
    prefix_within_factor(axis, tensor, room, visit.mesh)
}
