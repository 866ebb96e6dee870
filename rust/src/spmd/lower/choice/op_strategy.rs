//! Chooses the strategy of an op: from the caches, by XLA's rules, or among candidates.

use crate::index::{Id, OpId};
use crate::ir::OpKind;
use crate::spmd::lower::choice::decision_cache::Decision;
use crate::spmd::lower::choice::factor_abilities::{abilities, without_fetches};
use crate::spmd::lower::choice::partition_rules::strategy_rule;
use crate::spmd::lower::choice::shared_decision_cache::Sought;
use crate::spmd::lower::control_flow::scan_bodies::is_elementwise_scan;
use crate::spmd::lower::gather_scatter::dynamic_slices;
use crate::spmd::lower::op_with_rule::{OpWithRule, Tensors};
use crate::spmd::lower::reduction::{arg_reduce, log_add_exp};
use crate::spmd::lower::windows::concatenate::{concatenated_dim, turns_around};
use crate::spmd::lower::windows::{reduce_window, select_and_scatter};
use crate::spmd::lower::{reshape, LocalValue, Lowering};
use crate::spmd::outcome::OutcomeKind;
use crate::spmd::placement::PlacementId;
use crate::spmd::policy::Policy;
use crate::spmd::reducer::Reducer;
use crate::spmd::strategy::{Ability, Strategy};
use crate::spmd::xla::leader::without_what_xla_gathers;
use std::sync::Arc;

impl Lowering<'_, '_, '_> {
    /// The local values of the operands of `op`, and the targets of its results.
    pub(in crate::spmd::lower) fn tensors(&mut self, op: OpId) -> Tensors {
        let Tensors { mut operands, mut results, mut own, mut facts, .. } =
            std::mem::take(&mut self.tensors);
        operands.clear();
        results.clear();
        own.clear();
        for slot in self.emit.program.op_uses(op) {
            let value = self.emit.program.used_value(slot);
            operands.push(self.held(value));
        }
        let parts = self.parts(op, &mut operands);
        for value in self.emit.program.op_results(op) {
            let target = self.target(value);
            let target = self.with_terms_left(value, target);
            own.push(target);
            let wanted = self.wanted_of(value).unwrap_or(target);
            results.push((self.emit.program.type_of(value), wanted));
        }
        if own.iter().zip(&results).all(|(own, result)| *own == result.1) {
            own.clear();
        }
        facts.clear();
        match self.emit.program.kind(op) {
            OpKind::Concatenate => facts = parts,
            OpKind::DynamicSlice => {
                facts = dynamic_slices::starts(self.emit.program, op, operands[0].global);
            }
            // XLA's partitioner asks whether the update is in one shard.
            OpKind::DynamicUpdateSlice if self.how.policy == Policy::Xla => {
                facts = dynamic_slices::starts_of_update(self.emit.program, op);
            }
            OpKind::Scan => facts.push(i64::from(is_elementwise_scan(self.emit.program, op))),
            _ => self.facts_of_region(op, &operands, &mut facts),
        }
        let origins = self.origins(&operands);
        Tensors { operands, results, own, facts, origins }
    }
    /// The facts about the region of `op`: its reducers, and whether each initial value is the identity. Empty if it has no region.
    pub(in crate::spmd::lower) fn facts_of_region(
        &mut self,
        op: OpId,
        operands: &[LocalValue],
        facts: &mut Vec<i64>,
    ) {
        let program = &*self.emit.program;
        facts.clear();
        if program.num_regions(op) == 0 {
            return;
        }
        if let Some(reducers) = Reducer::each_of_region(program, op) {
            facts.extend(reducers.iter().map(|&reducer| reducer as i64));
            for (init, &reducer) in operands.iter().rev().zip(reducers.iter().rev()) {
                facts.push(i64::from(self.is_identity_of(reducer, init)));
            }
        } else if log_add_exp::is_region_of(program, op) {
            let init = operands.last();
            let is_identity = init.is_some_and(|init| self.is_identity_of(Reducer::Max, init));
            facts.extend([-2, i64::from(is_identity)]);
        } else {
            facts.extend([-1, i64::from(arg_reduce::selects(program, op))]);
        }
    }
    /// Whether `init` is known to be the identity of `reducer`.
    fn is_identity_of(&mut self, reducer: Reducer, init: &LocalValue) -> bool {
        let key = (reducer, init.value, init.global);
        if let Some(&known) = self.decisions.identities.get(&key) {
            return known;
        }
        let identity = reducer.identity(self.emit.element(init.global));
        let is_one = identity.is_some_and(|identity| self.is_constant(init.value, &identity));
        self.decisions.identities.insert(key, is_one);
        is_one
    }
    /// The decision how `op` is computed; `None` if it has no rule for its types.
    pub(in crate::spmd::lower) fn decision(
        &mut self,
        op: OpId,
        tensors: &Tensors,
    ) -> Option<Arc<Decision>> {
        let program = &*self.emit.program;
        let (signature, own_rules) = (program.signature(op), program.op_rules());
        if signature.is_none() || own_rules.is_own(op) {
            return self.decide(op, tensors).map(Arc::new);
        }
        let rule = self.context.rules.rule(program, op);
        let free_digits = self.free_digits.last().map_or(&[][..], Vec::as_slice);
        // Other ops' operands have the types of the signature.
        let has_types = program.kind(op) == OpKind::Concatenate;
        if !has_types {
            let last = self.decisions.last(signature, |key| {
                key.rule == rule && tensors.are_of(key) && key.free_digits == free_digits
            });
            if last.is_some() {
                return last;
            }
        }
        let key = &mut self.decisions.key;
        (key.signature, key.rule) = (signature, rule);
        key.placements.clear();
        key.placements.extend(tensors.placements().chain(tensors.own.iter().copied()));
        key.types.clear();
        if has_types {
            key.types.extend(tensors.types());
        }
        key.facts.clone_from(&tensors.facts);
        key.free_digits.clear();
        key.free_digits.extend(free_digits);
        key.origins.clone_from(&tensors.origins);
        if let Some(known) = self.decisions.get() {
            return Some(known);
        }
        let key = self.decisions.key.clone();
        let program = &*self.emit.program;
        let sought = Sought::of(self.setting, program, op, &key, &tensors.operands);
        let known = sought.and_then(|sought| self.shared.get(&sought));
        let decision = if let Some(known) = known {
            known
        } else {
            let new = Arc::new(self.decide(op, tensors)?);
            let program = &*self.emit.program;
            if let Some(sought) = Sought::of(self.setting, program, op, &key, &tensors.operands) {
                self.shared.add(&sought, &new);
            }
            new
        };
        self.decisions.add(key, &decision);
        Some(decision)
    }
    fn decide(&mut self, op: OpId, tensors: &Tensors) -> Option<Decision> {
        let own;
        let given = if self.emit.program.kind(op) == OpKind::CustomCall {
            own = self.custom_call_rule(op)?;
            &*own
        } else {
            let id = self.context.rules.rule(self.emit.program, op).get()?;
            &self.emit.program.rules()[id]
        };
        let shapes: Option<Vec<Vec<i64>>> = tensors.types().map(|ty| self.shape_of(ty)).collect();
        let shapes = shapes?;
        let rule = strategy_rule(self.emit.program, op, given, &shapes, &tensors.facts);
        let fits = rule.operands.len() == tensors.operands.len()
            && rule.results.len() == tensors.results.len()
            && rule.tensors().zip(&shapes).all(|(tensor, shape)| tensor.dims.len() == shape.len());
        if !fits {
            return None;
        }
        let strategy = Strategy::default();
        let outcome = (OutcomeKind::Local, Arc::default());
        let mut decision = Decision {
            rule,
            shapes,
            abilities: Vec::new(),
            strategy,
            results: Vec::new(),
            outcome,
        };
        decision.abilities = abilities(self.emit.program, &OpWithRule::of(&decision, op, tensors));
        if self.emit.devices.are_unlisted() {
            let work = OpWithRule::of(&decision, op, tensors);
            decision.abilities = without_fetches(self.emit.program, &work);
        }
        if self.how.policy == Policy::Xla {
            let (kind, name) = (self.emit.program.kind(op), self.emit.program.op_name(op));
            let work = OpWithRule::of(&decision, op, tensors);
            let turned = concatenated_dim(self.emit.program, op);
            if !turned.is_some_and(|dim| turns_around(&work, dim)) {
                for ability in &mut decision.abilities {
                    *ability = without_what_xla_gathers(kind, name, *ability);
                }
            }
            let work = OpWithRule::of(&decision, op, tensors);
            for factor in reduce_window::over_all(self.emit.program, &work) {
                decision.abilities[factor.index()] = Ability::Whole;
            }
        }
        if let Some(other) = self.by_other_factors(&decision, op, tensors) {
            return Some(other);
        }
        let decision = self.decided(decision, op, tensors);
        if self.emit.program.kind(op) == OpKind::Reshape {
            return Some(self.or_by_intervals(decision, op, tensors));
        }
        if self.emit.program.kind(op) == OpKind::SelectAndScatter {
            return Some(self.or_by_elements(decision, op, tensors));
        }
        Some(decision)
    }
    /// `decision` with the strategy chosen by its rule and abilities.
    fn decided(&mut self, decision: Decision, op: OpId, tensors: &Tensors) -> Decision {
        let work = OpWithRule::of(&decision, op, tensors);
        let placements: Vec<PlacementId> = tensors.placements().collect();
        let strategy = self.choose(&work, &placements, &tensors.own);
        self.with_strategy(decision, op, tensors, strategy)
    }
    /// `decision` with this strategy.
    pub(in crate::spmd::lower) fn with_strategy(
        &mut self,
        decision: Decision,
        op: OpId,
        tensors: &Tensors,
        strategy: Strategy,
    ) -> Decision {
        let work = OpWithRule::of(&decision, op, tensors);
        let outcome = self.outcome_of(&work, &strategy);
        let results = self.results_taken(&work, &strategy);
        Decision { strategy, results, outcome, ..decision }
    }
    /// `decision` about a `select_and_scatter`, or the alternative with as many operand elements in each shard, if that sends less.
    fn or_by_elements(&mut self, decision: Decision, op: OpId, tensors: &Tensors) -> Decision {
        let can_fetch = self.how.policy != Policy::Xla
            && self.how.global_to_local.is_none()
            && !self.emit.devices.are_unlisted();
        let rule =
            select_and_scatter::by_elements(&decision.rule, &decision.shapes).filter(|_| can_fetch);
        let Some(rule) = rule else { return decision };
        let sent =
            self.bits_sent(&OpWithRule::of(&decision, op, tensors), &decision.strategy, i64::MAX);
        let mut other = Decision { rule, ..decision.clone() };
        other.abilities = abilities(self.emit.program, &OpWithRule::of(&other, op, tensors));
        let other = self.decided(other, op, tensors);
        let by_elements =
            self.bits_sent(&OpWithRule::of(&other, op, tensors), &other.strategy, sent);
        if by_elements < sent {
            other
        } else {
            decision
        }
    }
    /// `decision` about a reshape, or the alternative in which shards fetch intervals, if that sends less.
    fn or_by_intervals(&mut self, decision: Decision, op: OpId, tensors: &Tensors) -> Decision {
        let can_fetch = self.how.policy != Policy::Xla
            && self.how.global_to_local.is_none()
            && !self.emit.devices.are_unlisted();
        let work = OpWithRule::of(&decision, op, tensors);
        let sent = if can_fetch { self.bits_sent(&work, &decision.strategy, i64::MAX) } else { 0 };
        if sent == 0 {
            return decision;
        }
        let shapes = decision.shapes.clone();
        let (rule, abilities) = reshape::by_intervals(&shapes[0], &shapes[1]);
        let other = Decision {
            rule,
            shapes,
            abilities,
            strategy: Strategy::default(),
            results: Vec::new(),
            outcome: (OutcomeKind::Local, Arc::default()),
        };
        let other = self.decided(other, op, tensors);
        let work = OpWithRule::of(&other, op, tensors);
        let by_intervals = self.bits_sent(&work, &other.strategy, i64::MAX);
        if by_intervals < sent {
            other
        } else {
            decision
        }
    }
}
