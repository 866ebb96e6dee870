//! Ops that are lowered like earlier ones: those that keep their place and get local operands and types, nothing else.
//!
//! Most ops of a model are of this kind, and its layers repeat. What is remembered of one is all that its lowering read; an op
//! of which that is the same gets its operands and types at once.

use super::decisions::Decision;
use super::known_ops::KnownOp;
use super::work::Tensors;
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
        let mut operands = take(&mut self.operands);
        operands.clear();
        let mut is_broadcast = false;
        for slot in program.op_uses(op) {
            let value = program.used_value(slot);
            let Some(held) = self.held.get(value.index()).copied().flatten() else { break };
            is_broadcast |= self.broadcasts.has(held.value);
            operands.push(held);
        }
        let origins = is_broadcast.then(|| self.origins(&operands));
        let global = program.type_of(result);
        let is_like = |known: &KnownOp| {
            let mut tensors = known.operands.iter().zip(&operands);
            (known.rule, known.result.0, known.result.1) == (rule, target, global)
                && known.operands.len() == operands.len()
                && tensors.all(|(&(placement, ty), held)| {
                    placement == held.placement && ty == program.type_of(held.value)
                })
                && *known.origins == *origins.as_deref().unwrap_or_default()
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
            self.lower_as(op, place, &operands);
        }
        self.operands = operands;
        found.is_some()
    }
    fn lower_as(&mut self, op: OpId, place: u32, operands: &[Held]) {
        let program = &mut *self.emit.program;
        for (slot, held) in program.op_uses(op).zip(operands) {
            if program.used_value(slot) != held.value {
                program.set_operand(slot, held.value);
            }
        }
        let known = &mut self.alike.known[place as usize];
        known.ops.push(op);
        let (kind, reason) = (known.outcome.0, Arc::clone(&known.outcome.1));
        let (placement, global, local) = known.result;
        let value = program.result(op, 0);
        if local != global {
            program.set_type(value, local);
        }
        let held = Held { value, global, placement, reducer: Reducer::Add, is_zero_padded: false };
        self.set_held(value, held);
        self.note(op, kind, reason);
        self.note_broadcast(op, operands.first().copied());
    }
    /// Remembers `op`, which was lowered by `decision`, if nothing but its operands and types was changed. `num_ops` is the
    /// number of ops before that.
    pub(super) fn remember(
        &mut self,
        op: OpId,
        (decision, tensors): (&Decision, &Tensors),
        num_ops: usize,
    ) {
        let program = &*self.emit.program;
        let (signature, way) = (program.signature(op), &decision.way);
        let is_kept = !signature.is_none()
            && program.num_op_ids() == num_ops
            && program.num_results(op) == 1
            && program.num_operands(op) > 0
            && program.num_regions(op) == 0
            && !program.op_rules().is_own(op)
            && self.free_digits.is_empty()
            && self.how.one_by_one.is_none()
            && !self.has_reductions
            && self.dead.last() != Some(&op)
            && is_lowered_in_place(program.kind(op))
            && program.op_name_id(op) != self.reverse
            && tensors.facts.is_empty()
            && tensors.own.is_empty();
        if !is_kept {
            return;
        }
        let result = program.result(op, 0);
        let own = self.target(result);
        let program = &*self.emit.program;
        let Some(held) = self.held.get(result.index()).copied().flatten() else { return };
        let are_as_taken =
            tensors.operands.iter().map(|held| held.placement).eq(way.operands.iter().copied());
        let values = tensors.operands.iter().map(|held| held.value);
        let is_plain = held.value == result
            && (held.placement, way.results[0]) == (own, own)
            && self.placements[own].partial.is_empty()
            && matches!(held.reducer, Reducer::Add)
            && !held.is_zero_padded
            && are_as_taken
            && program.operands(op).eq(values)
            && way.behind.is_empty();
        if !is_plain {
            return;
        }
        let operands = tensors.operands.iter();
        let operands = operands.map(|held| (held.placement, program.type_of(held.value)));
        let known = KnownOp {
            rule: self.context.rules.rule(program, op),
            operands: operands.collect(),
            origins: tensors.origins.as_slice().into(),
            result: (own, held.global, program.type_of(result)),
            outcome: decision.outcome.clone(),
            ops: vec![op],
            next: None,
        };
        self.alike.add(signature, known);
    }
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
