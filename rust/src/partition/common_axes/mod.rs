//! Chooses the axes that shard each factor of an op in all of its tensors, so that the op needs no
//! communication except reductions.
//!
//! If the tensors agree already and no axis is used twice, their axes are kept. Otherwise an op
//! with two tensors takes the axes of the better one; any other op takes axes greedily, see
//! [`heuristic`].
//!
//! Source: Shardy's `explicit_reshards_util`.

mod heuristic;
mod replication;

use super::axis_sets::truncate_without_overlap;
use crate::axis::{any_overlap, AxisRef};
use crate::index::{FactorId, Id};
use crate::mesh::Mesh;
use crate::op_sharding_rule::OpShardingRule;
use crate::projection::{sort_by_bucket, Projection, TensorFactorShardings};

/// For each factor its axes.
pub type AxesPerFactor = Vec<Vec<AxisRef>>;

/// The common axes of an op with this factor table, whose tensors have `tensor_sizes` elements.
pub fn common_axes(
    projection: &Projection,
    rule: &OpShardingRule,
    tensor_sizes: &[i64],
    mesh: &Mesh,
) -> AxesPerFactor {
    if let Some(compatible) = compatible_axes(projection, rule) {
        return compatible;
    }
    let tensors = non_scalar_tensors(rule);
    let has_compound_dims =
        rule.tensors().any(|tensor| tensor.dims.iter().any(|dim| dim.len() > 1));
    if let ([first, second], true, false) =
        (&tensors[..], rule.need_replication.is_empty(), has_compound_dims)
    {
        return axes_of_unary(projection, rule, tensor_sizes, mesh, [*first, *second]);
    }
    let mut axes = heuristic::common_axes(projection, rule, tensor_sizes, mesh);
    replication::distribute(&mut axes, rule, mesh);
    axes
}

/// The axes of `factor` if all tensors that have it agree; `None` if they do not.
pub fn compatible_axes_of(projection: &Projection, factor: FactorId) -> Option<&[AxisRef]> {
    let mut shardings = projection.along(factor);
    let Some(first) = shardings.next() else { return Some(&[]) };
    shardings.all(|other| other.axes == first.axes).then_some(&first.axes)
}

/// The axes of every factor, if the tensors agree on them, no axis is used twice, and factors that
/// need replication have none.
fn compatible_axes(projection: &Projection, rule: &OpShardingRule) -> Option<AxesPerFactor> {
    let mut seen: Vec<AxisRef> = Vec::new();
    let mut all = Vec::with_capacity(rule.num_factors());
    for factor in (0..rule.num_factors()).map(FactorId::from_index) {
        let axes = compatible_axes_of(projection, factor)?;
        let needs_replication = rule.need_replication.binary_search(&factor).is_ok();
        if (needs_replication && !axes.is_empty()) || any_overlap(axes, &seen) {
            return None;
        }
        seen.extend(axes);
        all.push(axes.to_vec());
    }
    Some(all)
}

/// The tensors that have dims.
fn non_scalar_tensors(rule: &OpShardingRule) -> Vec<usize> {
    rule.tensors()
        .enumerate()
        .filter(|(_, tensor)| !tensor.dims.is_empty())
        .map(|(i, _)| i)
        .collect()
}

/// The axes of the better one of two tensors, and the axes of factors that only the other tensor
/// has, as far as they do not overlap. The better tensor is the one whose permutation factors are
/// not sharded, then the larger one, then the one with more shards, then the first.
fn axes_of_unary<'p>(
    projection: &'p Projection,
    rule: &OpShardingRule,
    tensor_sizes: &[i64],
    mesh: &Mesh,
    tensors: [usize; 2],
) -> AxesPerFactor {
    let preference = |index: usize| {
        let tensor = &projection.tensors[index];
        (!shards_permutation(tensor, rule), tensor_sizes[index], tensor.sharding_size(mesh))
    };
    let [first, second] = tensors;
    let (best, other) = if preference(first) >= preference(second) {
        (&projection.tensors[first], &projection.tensors[second])
    } else {
        (&projection.tensors[second], &projection.tensors[first])
    };
    let mut axes = vec![Vec::new(); rule.num_factors()];
    let mut used = Vec::new();
    let in_order = |tensor: &'p TensorFactorShardings| {
        let mut factors: Vec<_> = tensor.factors.iter().collect();
        sort_by_bucket(&mut factors, rule.num_factors(), |(factor, _)| *factor);
        factors
    };
    for (factor, sharding) in in_order(best) {
        axes[factor.index()] = sharding.axes.to_vec();
        used.extend_from_slice(&sharding.axes);
    }
    for (factor, sharding) in in_order(other) {
        if best.factor(factor).is_none() {
            axes[factor.index()] = sharding.axes.to_vec();
            truncate_without_overlap(&mut axes[factor.index()], &used);
        }
    }
    axes
}

fn shards_permutation(tensor: &TensorFactorShardings, rule: &OpShardingRule) -> bool {
    let is_sharded =
        |&factor: &FactorId| tensor.factor(factor).is_some_and(|entry| !entry.axes.is_empty());
    rule.permutation.iter().any(is_sharded)
}
