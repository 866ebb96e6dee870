//! Moves the axes of factors that need replication, if all tensors have the factor, to batching
//! factors whose sizes they divide.

use super::AxesPerFactor;
use crate::axis::{push_or_merge, total_size, AxisRef};
use crate::index::{FactorId, Id};
use crate::mesh::Mesh;
use crate::op_sharding_rule::OpShardingRule;

/// Moves the axes of factors that need replication to batching factors.
pub(super) fn distribute(axes: &mut AxesPerFactor, rule: &OpShardingRule, mesh: &Mesh) {
    for &factor in &rule.need_replication {
        let freed = std::mem::take(&mut axes[factor.index()]);
        if !freed.is_empty() && is_in_all_tensors(rule, factor) {
            give_to_batching_factors(&freed, axes, rule, mesh);
        }
    }
}

/// Whether every tensor with dims has `factor`.
fn is_in_all_tensors(rule: &OpShardingRule, factor: FactorId) -> bool {
    rule.tensors().filter(|tensor| !tensor.dims.is_empty()).all(|tensor| tensor.contains(factor))
}

/// Appends `freed` to batching factors, in order, as long as each axis divides the remaining size.
fn give_to_batching_factors(
    mut freed: &[AxisRef],
    axes: &mut AxesPerFactor,
    rule: &OpShardingRule,
    mesh: &Mesh,
) {
    for factor in (0..rule.num_factors()).map(FactorId::from_index) {
        let is_batching = rule.is_pass_through(factor) && is_in_all_tensors(rule, factor);
        let size = rule.factor_size(factor);
        let taken = total_size(&axes[factor.index()], mesh).max(1);
        if !is_batching || size == 0 || size % taken != 0 {
            continue;
        }
        let mut room = size / taken;
        while let Some((&axis, rest)) = freed.split_first() {
            let axis_size = axis.size(mesh).max(1);
            if room % axis_size != 0 {
                break;
            }
            push_or_merge(&mut axes[factor.index()], axis, mesh);
            room /= axis_size;
            freed = rest;
        }
        if freed.is_empty() {
            break;
        }
    }
}
