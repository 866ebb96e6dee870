//! Lowers an op like an earlier op with the same signature and placements, without a new decision: the op keeps its place, gets
//! local operands and types, and the same reshards before and after it.
//!
//! Most ops of a model are like this, since its layers repeat. An entry records everything that a lowering read; an op for which
//! all of that is equal is lowered at once.

use crate::index::{Id, OpId, RuleId};
use crate::ir::{OpKind, Program};
use crate::spmd::lower::choice::decision_cache::Decision;
use crate::spmd::lower::emission::repeated_op_table::KnownOp;
use crate::spmd::lower::op_with_rule::{OpWithRule, Tensors};
use crate::spmd::lower::{LocalValue, Lowering, Reducer};
use crate::spmd::outcome::Outcome;
use crate::spmd::placement::PlacementId;
use crate::spmd::strategy::Strategy;
use std::mem::take;
use std::sync::Arc;

impl Lowering<'_, '_, '_> {
    /// Lowers `op` like an earlier one; false if there is no such entry.
    pub(in crate::spmd::lower) fn lower_alike(&mut self, op: OpId) -> bool {
        let program = &*self.emit.program;
        let Some(&Some(last)) = self.alike.last.get(program.signature(op)) else { return false };
        if !self.free_digits.is_empty() || program.op_rules().is_own(op) {
            return false;
        }
        let (result, rule) = (program.result(op, 0), self.context.rules.rule(program, op));
        let target = self.target(result);
        if self.wanted_of(result).is_some_and(|wanted| wanted != target) {
            return false;
        }
        let program = &*self.emit.program;
        let Tensors { operands, facts, .. } = &mut self.tensors;
        operands.clear();
        facts.clear();
        let mut is_broadcast = false;
        for value in program.operands(op) {
            let Some(&Some(held)) = self.held.get(value.index()) else { break };
            is_broadcast |= self.broadcasts.has(held.value);
            operands.push(held);
        }
        if program.kind(op) == OpKind::Reduce {
            self.note_facts(op);
        }
        let Some(place) = self.known_like(op, last, (rule, target), is_broadcast) else {
            return false;
        };
        self.lower_as(op, place);
        true
    }
    /// The index of the entry that applies to `op`, whose operands and facts were recorded; `last` is the latest entry of its
    /// signature.
    fn known_like(
        &self,
        op: OpId,
        last: u32,
        (rule, target): (RuleId, PlacementId),
        is_broadcast: bool,
    ) -> Option<u32> {
        let program = &*self.emit.program;
        let Tensors { operands, facts, .. } = &self.tensors;
        let global = program.type_of(program.result(op, 0));
        let is_like = |known: &KnownOp| {
            (known.rule, known.result.0, known.result.1) == (rule, target, global)
                && known.operands.len() == operands.len()
                && (0..operands.len()).all(|index| {
                    let (held, (placement, ty)) = (&operands[index], known.operands[index]);
                    placement == held.placement && ty == program.type_of(held.value)
                })
                // One by one: nearly all are empty, and `memcmp` of nothing at no address is slow.
                && known.facts.iter().eq(facts.iter())
                && if is_broadcast {
                    self.are_origins(&known.origins, operands)
                } else {
                    known.origins.is_empty()
                }
        };
        let mut next = Some(last);
        while let Some(place) = next {
            let known = &self.alike.known[place as usize];
            if is_like(known) {
                return Some(place);
            }
            next = known.next;
        }
        None
    }
    /// Records the facts of the region of `op`, after its operands.
    fn note_facts(&mut self, op: OpId) {
        let (operands, mut facts) =
            (take(&mut self.tensors.operands), take(&mut self.tensors.facts));
        self.facts_of_region(op, &operands, &mut facts);
        (self.tensors.operands, self.tensors.facts) = (operands, facts);
    }
    /// Lowers `op`, whose operands and facts were recorded, by the entry at `place`.
    fn lower_as(&mut self, op: OpId, place: u32) {
        self.alike.ops.push((place, op));
        let known = &self.alike.known[place as usize];
        let ((kind, reason), placement) =
            (&known.decision.outcome, known.decision.strategy.results[0]);
        self.outcomes.push(Outcome { op, kind: *kind, reason: Arc::clone(reason) });
        let KnownOp { moves, ends, reduces, result: (_, global, local), .. } = *known;
        if moves {
            self.move_operands_as(op, place);
        } else {
            give_operands(self.emit.program, op, &self.tensors.operands);
        }
        let program = &mut *self.emit.program;
        let value = program.result(op, 0);
        if local != global {
            program.set_type(value, local);
        }
        let reducer = reduces.unwrap_or(Reducer::Add);
        let held = LocalValue { value, global, placement, reducer, is_zero_padded: false };
        self.set_held(value, held);
        if ends {
            self.move_result_as(op, place, held);
        }
        self.note_broadcast(op, self.tensors.operands.first().copied());
    }
    /// Reshards the operands of `op` by the entry at `place`.
    fn move_operands_as(&mut self, op: OpId, place: u32) {
        let decision = Arc::clone(&self.alike.known[place as usize].decision);
        let (given, mut taken) = (take(&mut self.tensors.operands), take(&mut self.operands));
        self.take_operands(&decision.strategy, &given, &mut taken);
        give_operands(self.emit.program, op, &taken);
        (self.tensors.operands, self.operands) = (given, taken);
    }
    /// Reshards `held`, the result of `op`, by the entry at `place`.
    fn move_result_as(&mut self, op: OpId, place: u32, held: LocalValue) {
        let known = &self.alike.known[place as usize];
        let (decision, reduces) = (Arc::clone(&known.decision), known.reduces.is_some());
        let target = decision.results[0];
        let (given, facts) = (take(&mut self.tensors.operands), take(&mut self.tensors.facts));
        let tensors = (&given[..], &[(held.global, target)][..], &facts[..]);
        let work = OpWithRule::with(&decision, op, tensors);
        let started = self.start_as_xla(&work, &decision.strategy, held, target);
        if reduces {
            self.emit.go_after(op);
            let new = self.reshard(started, target);
            self.set_held(held.value, new);
        } else {
            self.settle_held(op, held.value, started, target);
        }
        (self.tensors.operands, self.tensors.facts) = (given, facts);
    }
    /// Adds an entry for `op`, which was lowered by `decision`, if only its operands and types were changed, besides reshards.
    /// `num_ops` is the number of ops before that.
    pub(in crate::spmd::lower) fn remember(
        &mut self,
        op: OpId,
        (decision, tensors): (&Arc<Decision>, &Tensors),
        num_ops: usize,
    ) {
        let program = &*self.emit.program;
        let (signature, strategy, kind) =
            (program.signature(op), &decision.strategy, program.kind(op));
        let is_kept = !signature.is_none()
            && program.num_results(op) == 1
            && program.num_operands(op) > 0
            && !program.op_rules().is_own(op)
            && self.free_digits.is_empty()
            && self.how.global_to_local.is_none()
            && !self.has_reductions
            && self.dead.last() != Some(&op)
            && program.op_name_id(op) != self.reverse
            && tensors.own.is_empty()
            && if kind == OpKind::Reduce {
                is_neutral_reduction(&tensors.facts)
            } else {
                is_lowered_in_place(kind)
                    && program.num_regions(op) == 0
                    && tensors.facts.is_empty()
            };
        let work = OpWithRule::of(decision, op, tensors);
        if !is_kept || Self::joins(&work, strategy) {
            return;
        }
        let has_terms = !self.placements[strategy.results[0]].partial.is_empty();
        let reduces = if has_terms { self.reducer_of_terms(&work) } else { None };
        let is_told = kind != OpKind::Reduce || reduces.is_some();
        if has_terms && !(is_told && self.are_terms_even(&work, strategy)) {
            return;
        }
        let result = program.result(op, 0);
        let own = self.target(result);
        let program = &*self.emit.program;
        let Some(held) = self.held.get(result.index()).copied().flatten() else { return };
        let placements = tensors.operands.iter().map(|held| held.placement);
        let are_as_taken = placements.eq(strategy.operands.iter().copied());
        let values = tensors.operands.iter().map(|held| held.value);
        // Reshapes may be computed in other ways.
        let is_untouched = || {
            program.num_op_ids() == num_ops
                && held.value == result
                && (held.placement, strategy.results[0]) == (own, own)
                && !held.is_zero_padded
                && are_as_taken
                && program.operands(op).eq(values)
        };
        if kind == OpKind::Reshape && !is_untouched() {
            return;
        }
        let operands = tensors.operands.iter();
        let operands = operands.map(|held| (held.placement, program.type_of(held.value)));
        let is_direct = are_as_taken && strategy.through.iter().all(Vec::is_empty);
        let known = KnownOp {
            rule: self.context.rules.rule(program, op),
            operands: operands.collect(),
            facts: tensors.facts.as_slice().into(),
            origins: tensors.origins.as_slice().into(),
            result: (own, held.global, program.type_of(result)),
            decision: Arc::clone(decision),
            moves: !is_direct,
            ends: has_terms
                || !strategy.behind.is_empty()
                || strategy.results[0] != decision.results[0],
            reduces,
            next: None,
        };
        self.alike.add(op, signature, known);
    }
    /// The reducer of the partial results of `work`, if it is a reduction.
    fn reducer_of_terms(&self, work: &OpWithRule) -> Option<Reducer> {
        let program = &*self.emit.program;
        if program.kind(work.op) == OpKind::Reduce {
            Reducer::of_region(program, work.op)
        } else {
            None
        }
    }
    /// Whether no operand has padding along the dims over which results of `work` are partial.
    fn are_terms_even(&self, work: &OpWithRule, strategy: &Strategy) -> bool {
        strategy.operands.iter().zip(work.shapes).enumerate().all(|(index, (&placement, shape))| {
            let placement = &self.placements[placement];
            let mut dims = Self::dims_of_terms(work, strategy, index).into_iter();
            !dims.any(|dim| placement.is_padded(dim, shape[dim]))
        })
    }
}

/// Gives `op` the values of `operands`.
fn give_operands(program: &mut Program, op: OpId, operands: &[LocalValue]) {
    for (slot, held) in program.op_uses(op).zip(operands) {
        if program.used_value(slot) != held.value {
            program.set_operand(slot, held.value);
        }
    }
}

/// Whether a reduction of one tensor with these facts starts from the identity, and its region is one reducer op.
fn is_neutral_reduction(facts: &[i64]) -> bool {
    matches!(facts, &[reducer, 1] if reducer >= 0)
}

/// Whether ops of `kind` are computed in place for any placements, as long as no new op is needed.
const fn is_lowered_in_place(kind: OpKind) -> bool {
    !matches!(
        kind,
        OpKind::Slice
            | OpKind::Pad
            | OpKind::Concatenate
            | OpKind::ReduceWindow
            | OpKind::SelectAndScatter
            | OpKind::Reduce
            | OpKind::Gather
            | OpKind::Scatter
            | OpKind::DynamicSlice
            | OpKind::DynamicUpdateSlice
            | OpKind::Convolution
            | OpKind::CustomCall
    )
}
