//! Top-k along a sharded dim: each device finds the largest elements of its shard; these are gathered, and the largest of them are
//! the result. Ties keep their order, as shards are gathered in order.

use crate::index::{FactorId, Id, OpId, ValueId};
use crate::ir::{OpKind, Program, Type};
use crate::op_sharding_rule::OpShardingRule;
use crate::spmd::collective_optimizer::top_k_of_shards::taken_along;
use crate::spmd::digits::Digit;
use crate::spmd::lower::op_with_rule::OpWithRule;
use crate::spmd::lower::{LocalValue, Lowering};
use crate::spmd::reducer::Reducer;
use crate::spmd::strategy::{Ability, Strategy};

fn is_top_k(program: &Program, op: OpId) -> bool {
    program.kind(op) == OpKind::Other && program.op_name(op) == "chlo.top_k"
}

/// Gives the last dim of the results of a top-k a factor of its own.
pub(in crate::spmd::lower) fn part_selected(
    program: &Program,
    op: OpId,
    rule: &mut OpShardingRule,
    shapes: &[Vec<i64>],
) {
    let Some(&count) = shapes.last().and_then(|shape| shape.last()) else { return };
    if !is_top_k(program, op) {
        return;
    }
    rule.factor_sizes.push(count);
    let own = FactorId::from_index(rule.factor_sizes.len() - 1);
    for dim in rule.results.iter_mut().filter_map(|result| result.dims.last_mut()) {
        *dim = vec![own];
    }
}

/// The text of the smallest element; for floats the least in their total order.
fn least(element: &str) -> Option<String> {
    match element {
        "f64" => Some("0xFFFFFFFFFFFFFFFF".to_owned()),
        "f32" => Some("0xFFFFFFFF".to_owned()),
        "f16" | "bf16" => Some("0xFFFF".to_owned()),
        _ => Reducer::Max.identity(element),
    }
}

/// The text of the least element of the type of the operand.
fn least_of(program: &Program, work: &OpWithRule) -> Option<String> {
    match &program.types()[work.operands.first()?.global] {
        Type::RankedTensor { element, .. } => least(program.str(element.text)),
        _ => None,
    }
}

/// Refines the ability of a top-k along the dim in which it selects.
pub(in crate::spmd::lower) fn refine(
    program: &Program,
    work: &OpWithRule,
    abilities: &mut [Ability],
) {
    if !is_top_k(program, work.op) || least_of(program, work).is_none() {
        return;
    }
    if let Some(&[factor]) = work.rule.operands[0].dims.last().map(Vec::as_slice) {
        abilities[factor.index()] = Ability::Joined;
    }
}

impl Lowering<'_, '_, '_> {
    /// The number of elements that each shard of a top-k contributes: at most its size.
    pub(in crate::spmd::lower) fn num_selected(
        &self,
        work: &OpWithRule,
        strategy: &Strategy,
    ) -> i64 {
        let local = self.placements[strategy.operands[0]].local_shape(&work.shapes[0]);
        let count = self.result_shape(work, strategy, 0).last().copied();
        local.last().copied().min(count).unwrap_or(0)
    }
    /// Finds the largest elements of shards along the last dim, gathers them, and finds the largest of these.
    pub(in crate::spmd::lower) fn top_k_of_shards(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        digits: &[Digit],
        operand: LocalValue,
    ) {
        let dim = work.shapes[0].len() - 1;
        let least = least_of(self.emit.program, work).unwrap_or_default();
        let least = self.emit.scalar(&least, operand.global);
        let operand = self.filled(operand, &[dim], least);
        let shard = self.emit.shape(operand.value)[dim];
        let own = self.num_selected(work, strategy);
        let [values, places] = self.top_k(work, operand.value, own);
        let number = self.emit.number(strategy.order, digits);
        let offset = self.emit.times(number, shard);
        let ty = self.emit.type_of(places);
        let offset = self.emit.broadcast(offset, &[], ty);
        let indices = self.emit.elementwise("stablehlo.add", &[places, offset]);
        let devices = (strategy.order, digits);
        let values = self.collectives.all_gather(&mut self.emit, values, dim, devices);
        let indices = self.collectives.all_gather(&mut self.emit, indices, dim, devices);
        let count = work.shapes[1][dim];
        let [values, places] = self.top_k(work, values, count);
        let indices = taken_along(&mut self.emit, indices, places);
        self.replace(work, strategy, &[values, indices]);
    }
    /// The `count` largest elements of `input` along its last dim, and their indices.
    fn top_k(&mut self, work: &OpWithRule, input: ValueId, count: i64) -> [ValueId; 2] {
        let mut shape = self.emit.shape(input);
        if let Some(last) = shape.last_mut() {
            *last = count;
        }
        let types = [0, 1].map(|index: usize| self.emit.like(&shape, work.results[index].0));
        let attrs = [("k", format!("{count} : i64"))];
        let op = self.emit.op_with_results("chlo.top_k", &[input], &types, &attrs);
        [0, 1].map(|index| self.emit.program.result(op, index))
    }
}
