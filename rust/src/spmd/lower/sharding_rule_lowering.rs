//! Lowers ops by their sharding rules; those without a rule are computed on replicated operands.

use super::super::digits::{total_size, Digit};
use super::super::emit::zero;
use super::super::outcome::OutcomeKind;
use super::super::placement::{Placement, PlacementId};
use super::super::reducer::Reducer;
use super::super::strategy::Strategy;
use super::{LocalValue, Lowering};
use crate::error::Result;
use crate::index::{OpId, ValueId};
use crate::ir::{OpKind, OpTraits};
use crate::spmd::lower::op_with_rule::OpWithRule;
use std::sync::Arc;

impl Lowering<'_, '_, '_> {
    /// Lowers an op: chooses a strategy, reshards operands, computes, reshards results.
    pub(super) fn lower_by_rule(&mut self, op: OpId) -> Result<()> {
        if self.keep_as_shardy(op) {
            return Ok(());
        }
        if self.lower_alike(op) {
            return Ok(());
        }
        self.check_known(op)?;
        if self.leave_to_concatenations(op)
            || self.lower_empty(op)
            || self.lower_identity(op)
            || self.lower_as_shardy(op)
            || self.lower_sum_of_none(op)
        {
            return Ok(());
        }
        self.capture(op);
        let num_ops = self.emit.program.num_op_ids();
        let mut tensors = self.tensors(op);
        let Some(decision) = self.decision(op, &tensors) else {
            self.lower_whole(op);
            return Ok(());
        };
        let (kind, reason) = &decision.outcome;
        self.note(op, *kind, Arc::clone(reason));
        let mut operands = std::mem::take(&mut self.operands);
        self.take_operands(&decision.strategy, &tensors.operands, &mut operands);
        for (result, &placement) in tensors.results.iter_mut().zip(&decision.results) {
            result.1 = placement;
        }
        self.compute(&OpWithRule::of(&decision, op, &tensors), &decision.strategy, &mut operands);
        self.operands = operands;
        self.note_broadcast(op, tensors.operands.first().copied());
        self.finish_as_shardy(op);
        self.remember(op, (&decision, &tensors), num_ops);
        self.tensors = tensors;
        Ok(())
    }
    /// Reshards the operands `given` as `strategy` says, into `taken`.
    pub(super) fn take_operands(
        &mut self,
        strategy: &Strategy,
        given: &[LocalValue],
        taken: &mut Vec<LocalValue>,
    ) {
        taken.clear();
        for (index, (&held, &placement)) in given.iter().zip(&strategy.operands).enumerate() {
            let stage = strategy.stages.get(index).copied().unwrap_or_default();
            let mut held = held;
            for &(stage, between) in strategy.through.get(index).into_iter().flatten() {
                held = self.reshard_at(stage, held, between);
            }
            taken.push(self.reshard_at(stage, held, placement));
        }
    }
    /// Lowers `op` if its results have no elements.
    fn lower_empty(&mut self, op: OpId) -> bool {
        let program = &*self.emit.program;
        let are_empty = program.op_results(op).all(|it| self.is_empty(program.type_of(it)));
        if !are_empty || program.num_results(op) == 0 || program.kind(op) == OpKind::CustomCall {
            return false;
        }
        // Shardy computes each shard from those of the operands.
        if self.how.global_to_local.is_some() && program.has_traits(op, OpTraits::ELEMENTWISE) {
            return false;
        }
        let results: Vec<ValueId> = program.op_results(op).collect();
        self.note(op, OutcomeKind::Local, Arc::default());
        for result in results {
            let target = self.target(result);
            let held = self.empty(self.emit.program.type_of(result), target);
            self.set_held(result, held);
        }
        self.dead.push(op);
        true
    }
    /// Lowers `op` if it is a reduction or a dot over no elements: its result is the initial value, or zero.
    fn lower_sum_of_none(&mut self, op: OpId) -> bool {
        let program = &*self.emit.program;
        let kind = program.kind(op);
        if !matches!(kind, OpKind::Reduce | OpKind::DotGeneral | OpKind::Dot) {
            return false;
        }
        let is_empty = |&value: &ValueId| self.is_empty(self.global_type(value));
        if !program.operands(op).any(|value| is_empty(&value)) {
            return false;
        }
        let operands: Vec<ValueId> = program.operands(op).collect();
        let results: Vec<ValueId> = program.op_results(op).collect();
        let has_initial_values = match kind {
            OpKind::Reduce if operands[..results.len()].iter().all(is_empty) => true,
            OpKind::DotGeneral | OpKind::Dot if operands.iter().any(is_empty) => false,
            _ => return false,
        };
        let targets: Vec<PlacementId> = results.iter().map(|&it| self.target(it)).collect();
        if targets.iter().any(|&target| !self.placements[target].partial.is_empty()) {
            return false;
        }
        self.note(op, OutcomeKind::Local, Arc::default());
        for (index, (&result, &placement)) in results.iter().zip(&targets).enumerate() {
            let global = self.emit.program.type_of(result);
            let replicated = self.placements.replicated(0);
            let element = if has_initial_values {
                let initial = self.held(operands[results.len() + index]);
                self.reshard(initial, replicated)
            } else {
                let zero = zero(self.emit.element(global));
                let value = self.emit.scalar(zero, global);
                let global = self.emit.type_of(value);
                let (placement, reducer) = (replicated, Reducer::Add);
                LocalValue { value, global, placement, reducer, is_zero_padded: true }
            };
            let local = self.local_type(global, placement);
            let value = self.emit.broadcast(element.value, &[], local);
            let new = LocalValue { value, global, placement, is_zero_padded: false, ..element };
            self.note_broadcast_of(element, new);
            self.set_held(result, new);
        }
        self.dead.push(op);
        true
    }
    /// The outcome of `work` under `strategy`, with the reason.
    pub(super) fn outcome_of(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
    ) -> (OutcomeKind, Arc<str>) {
        let mut gathered: Vec<String> = Vec::new();
        let mut sent = Vec::new();
        for (index, (held, &placement)) in work.operands.iter().zip(&strategy.operands).enumerate()
        {
            let (from, to) = (&self.placements[held.placement], &self.placements[placement]);
            let num_shards = |placement: &Placement| -> i64 {
                (0..placement.dims.len()).map(|dim| placement.num_shards(dim)).product()
            };
            // If the number of shards stays the same, dims are exchanged instead of gathered.
            let has_fewer = num_shards(to) < num_shards(from);
            let mut grown = Vec::new();
            for dim in 0..from.dims.len() {
                if has_fewer && total_size(&to.dims[dim]) < total_size(&from.dims[dim]) {
                    grown.push(format!("operand {index} dim {dim}"));
                }
            }
            if from != to && self.reshard_elements(*held, placement) > 0 {
                gathered.append(&mut grown);
                sent.push(format!("operand {index}"));
            }
        }
        for (index, (&(global, target), &placement)) in
            work.results.iter().zip(&strategy.results).enumerate()
        {
            if self.result_taken(global, placement, target).1 > 0 {
                sent.push(format!("result {index}"));
            }
        }
        let (bits, places) = self.fetched(work, strategy);
        if bits > 0 {
            sent.extend(places);
        }
        if !gathered.is_empty() {
            let reason = format!("made whole: {}", gathered.join(", "));
            (OutcomeKind::Gathered, reason.into())
        } else if sent.is_empty() {
            (OutcomeKind::Local, Arc::default())
        } else {
            (OutcomeKind::Collective, format!("moved: {}", sent.join(", ")).into())
        }
    }
    /// Records the collectives that reshard `held`, an operand or a result of `op`, to `target`.
    pub(super) fn note_sent(&mut self, op: OpId, held: LocalValue, target: PlacementId) {
        if self.reshard_elements(held, target) > 0 {
            self.note(op, OutcomeKind::Collective, "moved: as its surroundings want it".into());
        }
    }
    /// `target` with the unreduced digits that an `sdy.all_reduce` or `sdy.reduce_scatter` of `value` reduces.
    pub(super) fn with_terms_left(&mut self, value: ValueId, target: PlacementId) -> PlacementId {
        match self.terms_reduced_behind(value) {
            Some(terms) => self.with_terms(target, terms),
            None => target,
        }
    }
    fn terms_reduced_behind(&self, value: ValueId) -> Option<(Vec<Digit>, u32)> {
        if !self.has_reductions {
            return None;
        }
        let mut users = self.emit.program.users(value);
        let user = users.next().filter(|_| users.next().is_none())?;
        self.terms_reduced_by(user)
    }
    /// `target` with the unreduced digits that `op` reduces, if it is a collective that reduces.
    pub(super) fn with_terms_of(&mut self, op: OpId, target: PlacementId) -> PlacementId {
        match self.terms_reduced_by(op) {
            Some(terms) => self.with_terms(target, terms),
            None => target,
        }
    }
    fn with_terms(
        &mut self,
        target: PlacementId,
        (digits, order): (Vec<Digit>, u32),
    ) -> PlacementId {
        let mut placement = self.placements[target].clone();
        placement.order = order;
        placement.partial = digits;
        self.placements.intern(placement)
    }
    fn terms_reduced_by(&self, user: OpId) -> Option<(Vec<Digit>, u32)> {
        use crate::ir::Payload;
        let program = &*self.emit.program;
        let axes = match (program.kind(user), program.payload(user)?) {
            (OpKind::AllReduce, Payload::Axes(axes, _)) => axes.clone(),
            (OpKind::ReduceScatter, Payload::AxesPerDim(lists, _)) => lists.concat(),
            _ => return None,
        };
        let mesh = program.mesh_of(program.sharding(program.result(user, 0)));
        let mesh = program.mesh(mesh.get()?);
        let order = self.emit.devices.known_order(mesh)?;
        let mut digits = super::super::digits::digits_of(&axes, mesh);
        digits.sort_unstable_by_key(|digit| std::cmp::Reverse(digit.stride));
        Some((super::super::digits::merged(digits), order))
    }

    /// Gathers all operands, computes the op on each device, and slices the results.
    pub(super) fn lower_whole(&mut self, op: OpId) {
        let operands: Vec<ValueId> = self.emit.program.operands(op).collect();
        let mut local = Vec::with_capacity(operands.len());
        let mut gathered = Vec::new();
        for (index, &operand) in operands.iter().enumerate() {
            let held = self.held(operand);
            let rank = self.placements[held.placement].dims.len();
            let whole = self.placements.replicated(rank);
            if held.placement != whole {
                gathered.push(format!("operand {index}"));
            }
            local.push(self.reshard(held, whole).value);
        }
        if gathered.is_empty() {
            self.note(op, OutcomeKind::Local, Arc::default());
        } else {
            let reason =
                format!("made whole: {}: the op has no sharding rule", gathered.join(", "));
            self.note(op, OutcomeKind::Gathered, reason.into());
        }
        if local != operands {
            self.set_operands(op, &local);
        }
        let results: Vec<ValueId> = self.emit.program.op_results(op).collect();
        for result in results {
            let target = self.target(result);
            let rank = self.placements[target].dims.len();
            let whole = self.placements.replicated(rank);
            self.settle(op, result, whole, target);
        }
    }
}
