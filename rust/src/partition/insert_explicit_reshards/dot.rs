//! Reshards the result of a dot instead of an operand, even if the full version is off.
//!
//! In `[{}, {"x"}] x [{"x"}, {"y"}] -> [{}, {"x"}]` the contracting dim and the result both use
//! `x`. Otherwise the larger right-hand side would be gathered along `y`, and the result
//! reduce-scattered. It is cheaper to compute the result as `[{}, {"y"}]` and to reshard it. This
//! is done if both operands agree, exactly one dim of the result conflicts with an operand that is
//! not smaller, that operand's dim is sharded, and the result's dim has exactly the axes of the
//! contracting dims.

use super::reshard_uses;
use super::tensors::tensor_sizes;
use crate::axis::any_overlap;
use crate::index::{FactorId, Id, MeshId, OpId, ShardingId};
use crate::ir::Program;
use crate::op_sharding_rule::OpShardingRule;
use crate::projection::{AxisList, Projection};

/// Reshards the result of dot `op` if that is cheaper.
pub fn reshard_result(
    program: &mut Program,
    op: OpId,
    projection: &mut Projection,
    (shardings, mesh_id): (&[ShardingId], MeshId),
    rule: &OpShardingRule,
) {
    let Some((factor, axes)) = conflict(projection, rule, &tensor_sizes(program, op)) else {
        return;
    };
    let Some(entry) = projection.tensors[2].factors.get_mut(factor) else { return };
    entry.axes = axes;
    let mesh = program.mesh(mesh_id);
    let new =
        projection.tensors[2].to_sharding(&rule.results[0], &rule.factor_sizes, mesh_id, mesh);
    let (result, old) = (program.result(op, 0), shardings[2]);
    let new: ShardingId = program.intern_sharding(new);
    program.set_result_sharding(result, new);
    reshard_uses(program, result, old, program.place_after(op));
}

/// The factor of the only conflict, with the axes that the operand has for it; `None` if the result
/// is not to be resharded.
fn conflict(
    projection: &Projection,
    rule: &OpShardingRule,
    sizes: &[i64],
) -> Option<(FactorId, AxisList)> {
    let [lhs, rhs, result] = &projection.tensors[..] else { return None };
    let &[lhs_size, rhs_size, result_size] = sizes else { return None };
    let mut found: Option<(FactorId, AxisList)> = None;
    let (mut reduction, mut seen) = (Vec::new(), Vec::new());
    for factor in (0..rule.num_factors()).map(FactorId::from_index) {
        let axes_in_lhs = lhs.factor(factor).map(|entry| &entry.axes);
        let axes_in_rhs = rhs.factor(factor).map(|entry| &entry.axes);
        let axes = axes_in_lhs.or(axes_in_rhs)?;
        let size = match (axes_in_lhs, axes_in_rhs) {
            (Some(left), Some(right)) if left != right => return None,
            (Some(_), Some(_)) if rule.reduction.contains(&factor) => {
                reduction.extend_from_slice(axes);
                continue;
            }
            (Some(_), Some(_)) => lhs_size.max(rhs_size),
            (left, _) => {
                if any_overlap(axes, &seen) {
                    return None;
                }
                seen.extend_from_slice(axes);
                if left.is_some() {
                    lhs_size
                } else {
                    rhs_size
                }
            }
        };
        if result.factor(factor)?.axes != *axes {
            if axes.is_empty() || found.is_some() || result_size > size {
                return None;
            }
            found = Some((factor, axes.clone()));
        }
    }
    let (factor, axes) = found?;
    let of_result = &result.factor(factor)?.axes;
    (!of_result.is_empty() && **of_result == *reduction).then_some((factor, axes))
}
