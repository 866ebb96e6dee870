//! Reductions that select, such as an argmax: each device reduces its shard, the results are gathered, and reduced again.

use crate::index::{Id, OpId, ValueId};
use crate::ir::{int_array, OpKind, Program, ValueMap};
use crate::spmd::digits::{total_size, Digit};
use crate::spmd::lower::op_with_rule::OpWithRule;
use crate::spmd::lower::{LocalValue, Lowering};
use crate::spmd::strategy::{Ability, Strategy};

/// Whether the region of `op` returns some of its arguments, so that applying it to the initial values more than once is harmless.
pub(in crate::spmd::lower) fn selects(program: &Program, op: OpId) -> bool {
    let Some(region) = program.op_regions(op).next() else { return false };
    let Some(block) = program.region_entry(region).get() else { return false };
    let is_choice =
        |name: &str| matches!(name, "stablehlo.select" | "stablehlo.maximum" | "stablehlo.minimum");
    let is_condition = |name: &str| {
        let own = ["stablehlo.compare", "stablehlo.and", "stablehlo.or", "stablehlo.not"];
        own.contains(&name)
    };
    let mut chosen = true;
    let mut ops = program.block_ops(block);
    chosen &= ops.all(|inner| {
        let name = program.op_name(inner);
        let is_end = program.kind(inner) == OpKind::StablehloReturn;
        is_end || is_choice(name) || is_condition(name)
    });
    let end = program.last_op(block);
    let is_given = |value: ValueId| match program.defining_op(value) {
        Some(inner) => is_choice(program.op_name(inner)),
        None => true,
    };
    chosen && program.operands(end).all(is_given)
}

impl Lowering<'_, '_, '_> {
    /// Whether devices reduce separately and gather their results.
    pub(in crate::spmd::lower) fn joins(work: &OpWithRule, strategy: &Strategy) -> bool {
        let abilities = work.abilities.iter().zip(&strategy.factors);
        abilities.into_iter().any(|(&it, digits)| it == Ability::Joined && !digits.is_empty())
    }
    /// The digits over which devices reduce separately and gather their results.
    pub(in crate::spmd::lower) fn joined_digits(
        work: &OpWithRule,
        strategy: &Strategy,
    ) -> Vec<Digit> {
        let factors = 0..work.rule.num_factors();
        let joined = factors.filter(|&factor| work.abilities[factor] == Ability::Joined);
        joined.flat_map(|factor| strategy.factors[factor].iter().copied()).collect()
    }
    /// Bits that a device sends to gather the results of all shards.
    pub(in crate::spmd::lower) fn bits_joined(
        &self,
        work: &OpWithRule,
        strategy: &Strategy,
    ) -> i64 {
        let others = total_size(&Self::joined_digits(work, strategy)) - 1;
        let found = work.results.iter().enumerate().map(|(index, &(ty, _))| {
            let mut shape = self.result_shape(work, strategy, index);
            if self.emit.program.kind(work.op) != OpKind::Reduce {
                shape.pop();
                shape.push(self.num_selected(work, strategy));
            }
            shape.iter().product::<i64>().saturating_mul(self.bits(ty))
        });
        found.fold(0i64, i64::saturating_add).saturating_mul(others)
    }
    /// Reduces shards, gathers the results, and reduces these.
    pub(in crate::spmd::lower) fn reduce_and_join(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        digits: &[Digit],
        mut operands: Vec<LocalValue>,
    ) {
        let num_inputs = operands.len() / 2;
        let inits: Vec<ValueId> = operands[num_inputs..].iter().map(|held| held.value).collect();
        for (index, &init) in inits.iter().enumerate() {
            let dims = Self::dims_joined(work, strategy, index);
            operands[index] = self.filled(operands[index], &dims, init);
        }
        let values: Vec<ValueId> = operands.iter().map(|held| held.value).collect();
        self.set_operands(work.op, &values);
        let results: Vec<ValueId> = self.emit.program.op_results(work.op).collect();
        let mut found = Vec::with_capacity(results.len());
        for (&result, &placement) in results.iter().zip(&strategy.results) {
            found.push(self.keep(result, placement));
        }
        self.emit.go_after(work.op);
        let mut gathered = Vec::with_capacity(operands.len());
        for held in &found {
            let mut shape = self.emit.shape(held.value);
            shape.insert(0, 1);
            let row = self.emit.reshape(held.value, &shape);
            let devices = (strategy.order, digits);
            gathered.push(self.collectives.all_gather(&mut self.emit, row, 0, devices));
        }
        gathered.extend(inits);
        let types: Vec<_> = found.iter().map(|held| self.emit.type_of(held.value)).collect();
        let attrs = [("dimensions", int_array(&[0]))];
        let again = self.emit.op_with_results("stablehlo.reduce", &gathered, &types, &attrs);
        self.emit.program.add_regions(again, 1);
        let program = &mut *self.emit.program;
        let (from, to) = (program.region(work.op, 0), program.region(again, 0));
        program.clone_region(from, to, &mut ValueMap::default());
        for (index, (held, &result)) in found.into_iter().zip(&results).enumerate() {
            let value = self.emit.program.result(again, index);
            let new = self.reshard(LocalValue { value, ..held }, work.results[index].1);
            self.set_held(result, new);
        }
    }
    /// The dims of operand `index` along which results are gathered.
    fn dims_joined(work: &OpWithRule, strategy: &Strategy, index: usize) -> Vec<usize> {
        let is_joined = |dim: &usize| {
            let factors = &work.rule.operands[index].dims[*dim];
            factors.iter().any(|factor| {
                work.abilities[factor.index()] == Ability::Joined
                    && !strategy.factors[factor.index()].is_empty()
            })
        };
        (0..work.rule.operands[index].dims.len()).filter(is_joined).collect()
    }
}
