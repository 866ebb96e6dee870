//! Reductions over sharded dims: each device reduces its shard, then the partial results are reduced over devices. The initial
//! value is used once, on one device. Unless it is known to be the identity, it is combined in a separate op, even if results are
//! not partial.

use super::arg_reduce;
use crate::index::ValueId;
use crate::ir::{ConstantValue, OpKind, Program, Type};
use crate::spmd::lower::op_with_rule::OpWithRule;
use crate::spmd::lower::{LocalValue, Lowering};
use crate::spmd::reducer::Reducer;
use crate::spmd::reshard::neutral;
use crate::spmd::strategy::{Ability, Strategy};

/// The ability of an op along a factor that it reduces.
pub(in crate::spmd::lower) fn ability_of_reductions(
    program: &Program,
    work: &OpWithRule,
) -> Ability {
    match program.kind(work.op) {
        OpKind::DotGeneral | OpKind::Dot | OpKind::Gather => Ability::Terms,
        OpKind::Other if program.op_name(work.op) == "chlo.ragged_dot" => Ability::Terms,
        OpKind::Reduce | OpKind::Scatter if reducers(program, work).is_some() => Ability::Terms,
        OpKind::Reduce if arg_reduce::selects(program, work.op) => Ability::Joined,
        // Also for convolutions: elements in windows move, and the number of groups changes.
        _ => Ability::Whole,
    }
}

/// The reducer of a reduce of one tensor, and the text of its identity.
pub(in crate::spmd::lower) fn reducer(
    program: &Program,
    work: &OpWithRule,
) -> Option<(Reducer, String)> {
    let mut all = reducers(program, work)?;
    all.pop().filter(|_| all.is_empty())
}

/// For each result of a reduce or a scatter whose results are reduced independently, its reducer, and the text of the
/// identity.
pub(in crate::spmd::lower) fn reducers(
    program: &Program,
    work: &OpWithRule,
) -> Option<Vec<(Reducer, String)>> {
    let all = Reducer::each_of_region(program, work.op)?;
    let known = all.into_iter().zip(work.operands).map(|(reducer, held)| {
        let Type::RankedTensor { element, .. } = &program.types()[held.global] else {
            return None;
        };
        Some((reducer, reducer.identity(program.str(element.text))?))
    });
    known.collect()
}

impl Lowering<'_, '_, '_> {
    /// Reduces the local shards.
    pub(in crate::spmd::lower) fn reduce_locally(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        mut operands: Vec<LocalValue>,
    ) {
        let digits = Self::joined_digits(work, strategy);
        if !digits.is_empty() {
            return self.reduce_and_join(work, strategy, &digits, operands);
        }
        let reducers = self
            .reducers_of_terms(work, strategy)
            .or_else(|| self.reducers_of_inits(work, &operands));
        let Some(reducers) = reducers else { return self.in_place(work, strategy, &operands) };
        let mut inits = Vec::with_capacity(reducers.len());
        for (index, known) in reducers.iter().enumerate() {
            let place = index + reducers.len();
            let init = operands[place].value;
            // The pass lets each shard begin with an initial value that makes no difference if it is used again, as Shardy does.
            let may_repeat = self.how.global_to_local.is_some() && known.0.is_idempotent();
            if may_repeat || self.is_neutral(init, known) {
                inits.push(None);
            } else {
                // XLA drops the initial value where it reduces a single element, such as that of a shard, and uses it once for
                // each part of a concatenation.
                operands[place].value = self.emit.scalar(&known.1, operands[index].global);
                inits.push(Some(self.in_one_term(strategy, init, known)));
            }
            let dims = Self::dims_of_terms(work, strategy, index);
            operands[index] = self.filled(operands[index], &dims, operands[place].value);
        }
        self.in_place_with_terms(work, strategy, &operands, &reducers, &inits);
    }
    /// The reducers of the results of `work`, a reduce or a scatter, if the results are partial under `strategy`.
    pub(in crate::spmd::lower) fn reducers_of_terms(
        &self,
        work: &OpWithRule,
        strategy: &Strategy,
    ) -> Option<Vec<(Reducer, String)>> {
        if self.placements[strategy.results[0]].partial.is_empty() {
            return None;
        }
        reducers(self.emit.program, work)
    }
    /// The reducers of the results of `work`, a reduce whose results are not partial, if some initial value may not be the
    /// identity. Manual computations are not changed.
    fn reducers_of_inits(
        &self,
        work: &OpWithRule,
        operands: &[LocalValue],
    ) -> Option<Vec<(Reducer, String)>> {
        if self.emit.program.kind(work.op) != OpKind::Reduce
            || self.how.global_to_local.is_some()
            || self.is_in_manual()
        {
            return None;
        }
        let all = reducers(self.emit.program, work)?;
        let inits = &operands[all.len()..];
        let are_neutral =
            all.iter().zip(inits).all(|(known, init)| self.is_neutral(init.value, known));
        (!are_neutral).then_some(all)
    }
    /// `value` on the first of the devices over which a result of `strategy` is partial, and the identity on the others. If the
    /// reducer is idempotent, all have `value`.
    pub(in crate::spmd::lower) fn in_one_term(
        &mut self,
        strategy: &Strategy,
        value: ValueId,
        (reducer, identity): &(Reducer, String),
    ) -> ValueId {
        let partial = self.placements[strategy.results[0]].partial.clone();
        if partial.is_empty() || reducer.is_idempotent() || self.is_constant(value, identity) {
            return value;
        }
        let ty = self.emit.type_of(value);
        let neutral = self.emit.splat(identity, ty);
        let number = self.emit.number(strategy.order, &partial);
        let zero = self.emit.index(0);
        let is_first = self.emit.compare("EQ", number, zero);
        self.emit.op("stablehlo.select", &[is_first, value, neutral], ty, &[])
    }
    /// The op itself, whose results are partial. They are combined with `inits`, if there are any.
    pub(in crate::spmd::lower) fn in_place_with_terms(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        operands: &[LocalValue],
        reducers: &[(Reducer, String)],
        inits: &[Option<ValueId>],
    ) {
        let values: Vec<ValueId> = operands.iter().map(|held| held.value).collect();
        self.set_operands(work.op, &values);
        let results: Vec<ValueId> = self.emit.program.op_results(work.op).collect();
        for (index, &result) in results.iter().enumerate() {
            let held = self.keep(result, strategy.results[index]);
            let mut held = LocalValue { reducer: reducers[index].0, ..held };
            self.emit.go_after(work.op);
            if let Some(init) = inits.get(index).copied().flatten() {
                let ty = self.emit.type_of(held.value);
                let init = self.emit.broadcast(init, &[], ty);
                let name = held.reducer.op_name();
                held.value = self.emit.elementwise(name, &[init, held.value]);
            }
            let target = work.results[index].1;
            let held = self.start_as_xla(work, strategy, held, target);
            let new = self.reshard(held, target);
            self.set_held(result, new);
        }
    }
    /// Whether `value` is known to be an identity of the reducer; sums of floats have two.
    fn is_neutral(&self, value: ValueId, (reducer, identity): &(Reducer, String)) -> bool {
        self.is_constant(value, identity)
            || (*reducer == Reducer::Add
                && neutral(self.emit.element(self.emit.type_of(value)))
                    .is_some_and(|neutral| self.is_constant(value, neutral)))
    }
    /// Whether `value` is a splat constant with the element `element`.
    pub(in crate::spmd::lower) fn is_constant(&self, value: ValueId, element: &str) -> bool {
        let program = &*self.emit.program;
        let Some(mut op) = program.defining_op(value) else { return false };
        while program.kind(op) == OpKind::BroadcastInDim {
            let Some(before) = program.defining_op(program.operand(op, 0)) else { return false };
            op = before;
        }
        if program.kind(op) != OpKind::Constant {
            return false;
        }
        let written = program.constant_text(op).trim();
        let rest = written.strip_prefix("dense<").and_then(|text| text.strip_prefix(element));
        if rest.is_some_and(|rest| rest.starts_with('>')) {
            return true;
        }
        let text = format!("dense<{element}>");
        let wanted = ConstantValue::parse(&text);
        program.constant_value(op) == wanted
    }
}
