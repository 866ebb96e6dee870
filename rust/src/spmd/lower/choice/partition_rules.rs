//! The rules that strategies are derived from. Sharding rules are made for propagation; if an op can be computed on shards along
//! more dims, its factors are split or merged here.

use crate::index::{FactorId, Id, OpId};
use crate::ir::{OpKind, Program};
use crate::op_sharding_rule::OpShardingRule;
use crate::spmd::lower::reduction::top_k::part_selected;
use crate::spmd::lower::windows::convolution::part_dims;
use crate::spmd::lower::windows::elements_needed::conv_dims;
use crate::spmd::lower::windows::select_and_scatter::part_windows;

/// The rule for strategies of `op`; `shapes` are those of its operands and results, `facts` are
/// [`crate::spmd::lower::op_with_rule::OpWithRule::facts`].
/// [`crate::spmd::lower::op_with_rule::OpWithRule`].
pub(in crate::spmd::lower) fn strategy_rule(
    program: &Program,
    op: OpId,
    rule: &OpShardingRule,
    shapes: &[Vec<i64>],
    facts: &[i64],
) -> OpShardingRule {
    let mut rule = rule.clone();
    if program.kind(op) == OpKind::DynamicSlice {
        part_dynamic_slice(&mut rule, shapes, facts);
    }
    if let Some(dims) = conv_dims(program, op) {
        part_dims(&mut rule, &dims, shapes);
    }
    part_windows(program, op, &mut rule, shapes);
    part_selected(program, op, &mut rule, shapes);
    rule
}

/// Gives the result of a dynamic slice a factor of its own for each dim with a dynamic start.
fn part_dynamic_slice(rule: &mut OpShardingRule, shapes: &[Vec<i64>], facts: &[i64]) {
    let (Some(shape), Some(taken)) = (shapes.first(), shapes.last()) else { return };
    for dim in 0..shape.len() {
        if shape[dim] == taken[dim] || facts.get(dim).is_some_and(|&start| start >= 0) {
            continue;
        }
        rule.factor_sizes.push(taken[dim]);
        let own = FactorId::from_index(rule.factor_sizes.len() - 1);
        if let Some(factors) = rule.results.first_mut().and_then(|result| result.dims.get_mut(dim))
        {
            *factors = vec![own];
        }
    }
}
