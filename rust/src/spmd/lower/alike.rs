//! Ops that are lowered like earlier ones: those that keep their place and get local operands and types, which may be resharded
//! before and after them.
//!
//! Most ops of a model are of this kind, and its layers repeat. What is remembered of one is all that its lowering read; an op
//! of which that is the same gets its operands and types at once.

use super::super::ways::{Ability, Way};
use super::decisions::Decision;
use super::known_ops::KnownOp;
use super::work::{ByRule, Tensors};
use super::{Held, Lowering, Reducer};
use crate::index::{Id, OpId};
use crate::ir::OpKind;
use std::mem::take;
use std::sync::Arc;

impl Lowering<'_, '_, '_> {
    /// Lowers `op` like an earlier one; false if there is none that is known to be like it.
    pub(super) fn lower_alike(&mut self, op: OpId) -> bool {
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
        let (mut operands, mut facts) = (take(&mut self.operands), take(&mut self.tensors.facts));
        operands.clear();
        facts.clear();
        let mut is_broadcast = false;
        for value in program.operands(op) {
            let Some(held) = self.held.get(value.index()).copied().flatten() else { break };
            is_broadcast |= self.broadcasts.has(held.value);
            operands.push(held);
        }
        if program.kind(op) == OpKind::Reduce {
            self.facts_of_region(op, &operands, &mut facts);
        }
        let global = program.type_of(result);
        let is_like = |known: &KnownOp| {
            (known.rule, known.result.0, known.result.1) == (rule, target, global)
                && known.operands.len() == operands.len()
                && (0..operands.len()).all(|index| {
                    let (held, (placement, ty)) = (&operands[index], known.operands[index]);
                    placement == held.placement && ty == program.type_of(held.value)
                })
                && *known.facts == *facts
                && if is_broadcast {
                    self.are_origins(&known.origins, &operands)
                } else {
                    known.origins.is_empty()
                }
        };
        let mut next = Some(last);
        let found = loop {
            let Some(place) = next else { break None };
            let known = &self.alike.known[place as usize];
            if is_like(known) {
                break Some(place);
            }
            next = known.next;
        };
        if let Some(place) = found {
            self.lower_as(op, place, &mut operands);
        }
        (self.operands, self.tensors.facts) = (operands, facts);
        found.is_some()
    }
    fn lower_as(&mut self, op: OpId, place: u32, operands: &mut [Held]) {
        self.alike.ops.push((place, op));
        let known = &self.alike.known[place as usize];
        let (kind, reason) = (known.outcome.0, Arc::clone(&known.outcome.1));
        let ((_, global, local), (placement, target)) = (known.result, known.computed);
        let (taken, first, terms) = (known.taken.clone(), operands.first().copied(), known.terms);
        self.note(op, kind, reason);
        for (held, &placement) in operands.iter_mut().zip(taken.iter().flat_map(|all| all.iter())) {
            *held = self.reshard(*held, placement);
        }
        let program = &mut *self.emit.program;
        for (slot, held) in program.op_uses(op).zip(operands) {
            if program.used_value(slot) != held.value {
                program.set_operand(slot, held.value);
            }
        }
        let value = program.result(op, 0);
        if local != global {
            program.set_type(value, local);
        }
        let held = Held { value, global, placement, reducer: Reducer::Add, is_zero_padded: false };
        self.set_held(value, held);
        if let Some(reducer) = terms {
            self.emit.go_after(op);
            let new = self.reshard(Held { reducer, ..held }, target);
            self.set_held(value, new);
        } else if placement != target {
            self.settle_held(op, value, held, target);
        }
        self.note_broadcast(op, first);
    }
    /// Remembers `op`, which was lowered by `decision`, if nothing but its operands and types was changed, and these were
    /// resharded at most. `num_ops` is the number of ops before that.
    pub(super) fn remember(
        &mut self,
        op: OpId,
        (decision, tensors): (&Decision, &Tensors),
        num_ops: usize,
    ) {
        let program = &*self.emit.program;
        let (signature, way, kind) = (program.signature(op), &decision.way, program.kind(op));
        let is_kept = !signature.is_none()
            && program.num_results(op) == 1
            && program.num_operands(op) > 0
            && !program.op_rules().is_own(op)
            && self.free_digits.is_empty()
            && self.how.one_by_one.is_none()
            && !self.has_reductions
            && self.dead.last() != Some(&op)
            && program.op_name_id(op) != self.reverse
            && tensors.own.is_empty()
            && way.behind.is_empty()
            && way.stages.iter().all(|&stage| stage == 0)
            && way.through.iter().all(Vec::is_empty)
            && if kind == OpKind::Reduce {
                is_neutral_reduction(&tensors.facts)
            } else {
                is_lowered_in_place(kind)
                    && program.num_regions(op) == 0
                    && tensors.facts.is_empty()
            };
        let work = ByRule::of(decision, op, tensors);
        if !is_kept || Self::joins(&work, way) {
            return;
        }
        let has_terms = !self.placements[way.results[0]].partial.is_empty();
        let terms = if has_terms { self.reducer_of_terms(&work, way) } else { None };
        if has_terms && terms.is_none() {
            return;
        }
        let result = program.result(op, 0);
        let own = self.target(result);
        let program = &*self.emit.program;
        let Some(held) = self.held.get(result.index()).copied().flatten() else { return };
        let Some(&target) = decision.results.first() else { return };
        let placements = tensors.operands.iter().map(|held| held.placement);
        let are_as_taken = placements.eq(way.operands.iter().copied());
        let values = tensors.operands.iter().map(|held| held.value);
        // Reshapes may be computed in other ways.
        let is_untouched = || {
            program.num_op_ids() == num_ops
                && held.value == result
                && (held.placement, way.results[0]) == (own, own)
                && !held.is_zero_padded
                && are_as_taken
                && program.operands(op).eq(values)
        };
        if kind == OpKind::Reshape && !is_untouched() {
            return;
        }
        let operands = tensors.operands.iter();
        let operands = operands.map(|held| (held.placement, program.type_of(held.value)));
        let known = KnownOp {
            rule: self.context.rules.rule(program, op),
            operands: operands.collect(),
            taken: (!are_as_taken).then(|| way.operands.as_slice().into()),
            facts: tensors.facts.as_slice().into(),
            origins: tensors.origins.as_slice().into(),
            result: (own, held.global, program.type_of(result)),
            computed: (way.results[0], target),
            terms,
            outcome: decision.outcome.clone(),
            next: None,
        };
        self.alike.add(op, signature, known);
    }
    /// How the terms are reduced that `work`, a reduction that starts from an identity, computes along one factor without padding.
    fn reducer_of_terms(&self, work: &ByRule, way: &Way) -> Option<Reducer> {
        if self.emit.program.kind(work.op) != OpKind::Reduce {
            return None;
        }
        let along = way.factors.iter().zip(work.abilities);
        let along = along.filter(|(digits, &it)| it == Ability::Terms && !digits.is_empty());
        let placement = &self.placements[way.operands[0]];
        let mut dims = Self::dims_of_terms(work, way, 0).into_iter();
        if along.count() > 1 || dims.any(|dim| placement.is_padded(dim, work.shapes[0][dim])) {
            return None;
        }
        Reducer::of_region(self.emit.program, work.op)
    }
}

/// Whether a reduction of one tensor with these facts starts from an identity. Its region is the reducer alone.
fn is_neutral_reduction(facts: &[i64]) -> bool {
    matches!(facts, &[reducer, 1] if reducer >= 0)
}

/// Whether ops of `kind` are computed in place, whatever the placements, if no op has to be made for that.
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
