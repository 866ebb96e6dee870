//! Reshards values of the per-device program.

use crate::index::{Id, OpId, ValueId};
use crate::spmd::lower::resharding::plan_table::{PlanOf, Planned};
use crate::spmd::lower::{LocalValue, Lowering};
use crate::spmd::op_copies::Start;
use crate::spmd::placement::{Placement, PlacementId};
use crate::spmd::policy::Policy;
use crate::spmd::reducer::Reducer;
use crate::spmd::reshard::{
    neutral, plan, plan_between, shard_elements, Abilities, Plan, PlanKey, Traveller,
};
use crate::spmd::reshard_steps::Step;
use crate::spmd::xla;
use std::rc::Rc;
use std::sync::Arc;

impl<'p> Lowering<'p, '_, '_> {
    /// `held` resharded to `target`. Equal reshards in a block are built once.
    pub fn reshard(&mut self, held: LocalValue, target: PlacementId) -> LocalValue {
        self.reshard_at(0, held, target)
    }
    /// `held` resharded to `target`; shared with equal reshards of the same stage.
    pub fn reshard_at(&mut self, stage: u32, held: LocalValue, target: PlacementId) -> LocalValue {
        if held.placement == target {
            return held;
        }
        let target = self.aim(held.placement, target);
        if held.placement == target {
            return held;
        }
        let key = (held.shard(), target, stage);
        let block = self.emit.block();
        if let Some(&(at, known)) = self.resharded.get(&key) {
            if at == block {
                return known;
            }
        }
        let whole = self.whole_sum(held, target);
        let new = whole.unwrap_or_else(|| self.reshard_anew(held, target));
        self.resharded.insert(key, (block, new));
        new
    }
    pub(in crate::spmd::lower) fn reshard_anew(
        &mut self,
        held: LocalValue,
        target: PlacementId,
    ) -> LocalValue {
        let target = self.aim(held.placement, target);
        if held.placement == target {
            return held;
        }
        if !self.has_shape(held.global) {
            return LocalValue { placement: target, ..held };
        }
        if self.is_empty(held.global) {
            // Nothing has to be sent: tensors without elements are equal.
            return LocalValue { reducer: held.reducer, ..self.empty(held.global, target) };
        }
        let plan = self.plan(held, target);
        if self.rebroadcast_elements(held, target).is_some_and(|sent| sent < plan.sent()) {
            if let Some(new) = self.rebroadcast(held, target) {
                return new;
            }
        }
        let places = self.places(held, target, &plan);
        let mut value = held.value;
        for (index, places) in places.windows(2).enumerate() {
            let first = self.next_op_id();
            let key = ((held.placement, target, held.global), index);
            let copied = self.step_again(key, value, held.reducer);
            value = copied.unwrap_or_else(|| self.step_anew(key, &plan, value, held.reducer));
            let (ops, before, after) = ((first, self.next_op_id()), places[0], places[1]);
            self.steps.push(Step { ops, before, after, rematerializes: plan.rematerializes });
        }
        let reached = plan.steps.last().map(|reached| &reached.placement);
        let at = reached.unwrap_or(&self.placements[held.placement]);
        let wanted = &self.placements[target];
        if at.order != wanted.order && !wanted.is_replicated() {
            let (first, at, wanted) = (self.next_op_id(), at.clone(), wanted.clone());
            let shape = self.shape_of(held.global).unwrap_or_default();
            value = self.traveller(&shape, held.reducer).permute(value, &at, &wanted);
            let before = self.placements.intern(at.merged());
            let ops = (first, self.next_op_id());
            self.steps.push(Step { ops, before, after: target, rematerializes: false });
        }
        let new = LocalValue { value, placement: target, is_zero_padded: false, ..held };
        if plan.sent() == 0 {
            self.note_slice(held, new);
        }
        self.note_terms(held, new, &plan);
        new
    }
    /// The result of step `index` of a planned reshard on `value`, built by a copy of earlier ops if possible.
    fn step_again(
        &mut self,
        (key, index): (PlanOf, usize),
        value: ValueId,
        reducer: Reducer,
    ) -> Option<ValueId> {
        let (ty, by, made) = self.plans.get(&key)?.made.get(index).copied().flatten()?;
        if (ty, by) != (self.emit.type_of(value), reducer) {
            return None;
        }
        self.emit.copy_ops(&made, (value, None), &mut self.collectives)
    }
    /// Makes the ops of step `index` of a planned reshard for `value`.
    fn step_anew(
        &mut self,
        (key, index): (PlanOf, usize),
        plan: &Plan,
        value: ValueId,
        reducer: Reducer,
    ) -> ValueId {
        let start = self.emit.start();
        let at = match index.checked_sub(1) {
            Some(before) => plan.steps[before].placement.clone(),
            None => self.placements[key.0].clone(),
        };
        let shape = self.shape_of(key.2).unwrap_or_default();
        let output = self.traveller(&shape, reducer).step(value, &at, &plan.steps[index]);
        self.note_step((key, index), (start, value, reducer), output);
        output
    }
    /// Records the ops that step `index` of a planned reshard built for `input`, if they can be copied.
    fn note_step(
        &mut self,
        (key, index): (PlanOf, usize),
        (start, input, reducer): (Start, ValueId, Reducer),
        output: ValueId,
    ) {
        let Some(made) = self.emit.made(start, (input, None), output) else { return };
        self.sign(start);
        let Some(planned) = self.plans.get_mut(&key) else { return };
        if planned.made.len() <= index {
            planned.made.resize(index + 1, None);
        }
        planned.made[index] = Some((self.emit.type_of(input), reducer, made));
    }
    /// Gives signatures to the ops that were created since `start`, which are copied.
    pub(in crate::spmd::lower) fn sign(&mut self, start: Start) {
        for op in self.emit.since(start) {
            self.context.rules.sign_op(self.emit.program, op);
        }
    }
    /// The placements before, between and after the steps of `plan`, that of a reshard of `held` to `target`.
    fn places(&mut self, held: LocalValue, target: PlacementId, plan: &Plan) -> Rc<[PlacementId]> {
        let key = (held.placement, target, held.global);
        if let Some(Planned { places: Some(known), .. }) = self.plans.get(&key) {
            return Rc::clone(known);
        }
        let start = self.placements[held.placement].merged();
        let reached = plan.steps.iter().map(|reached| reached.placement.merged());
        let places = std::iter::once(start).chain(reached);
        let places: Rc<[PlacementId]> = places.map(|at| self.placements.intern(at)).collect();
        if let Some(planned) = self.plans.get_mut(&key) {
            planned.places = Some(Rc::clone(&places));
        }
        places
    }
    /// The builder for the steps of a reshard of a value of `shape`, whose partial results `reducer` reduces.
    fn traveller<'t>(&'t mut self, shape: &'t [i64], reducer: Reducer) -> Traveller<'t, 'p> {
        Traveller { emit: &mut self.emit, collectives: &mut self.collectives, shape, reducer }
    }
    /// The id of the op that is made next.
    pub(in crate::spmd::lower) fn next_op_id(&self) -> OpId {
        OpId::from_index(self.emit.program.num_op_ids())
    }
    /// Whether plans are searched for that send the fewest elements.
    pub(in crate::spmd::lower) fn is_free(&self) -> bool {
        self.how.is_free()
    }
    /// The plan of a reshard. Unless plans are searched for, digits of another order of devices are treated as if they were of this
    /// order, and a final permute sends shards to the devices with the same positions in the other order.
    pub(in crate::spmd::lower) fn plan(
        &mut self,
        held: LocalValue,
        target: PlacementId,
    ) -> Arc<Plan> {
        let key = (held.placement, target, held.global);
        if let Some(planned) = self.plans.get(&key) {
            return Arc::clone(&planned.plan);
        }
        let shape = self.shape_of(held.global).unwrap_or_default();
        let is_free = self.is_free();
        let is_xla = self.how.policy == Policy::Xla && !is_free;
        let devices = if is_xla { self.devices() } else { Vec::new() };
        let can_add = neutral(self.emit.element(held.global)).is_some();
        // XLA's partitioner adds elements to zeros, too.
        let spreads = can_add && (is_free || is_xla);
        let refines = is_free && !self.emit.devices.are_unlisted();
        let abilities = Abilities { spreads, exchanges: is_free, refines };
        let known = PlanKey { from: held.placement, to: target, shape, abilities, devices };
        let plan = if let Some(plan) = self.known_plans.get(&known) {
            Arc::clone(plan)
        } else {
            let from = &self.placements[held.placement];
            let to = self.in_order_of(target, from);
            let of_xla = if known.devices.is_empty() {
                None
            } else {
                xla::reshard::plan(from, &to, &known.shape, &known.devices, spreads)
            };
            let new = Arc::new(of_xla.unwrap_or_else(|| {
                if is_free {
                    plan_between(from, &self.placements[target], &known.shape, abilities)
                } else {
                    plan(from, &to, &known.shape, Abilities::default())
                }
            }));
            self.known_plans.insert(known, Arc::clone(&new));
            new
        };
        self.plans.insert(key, Planned { plan: Arc::clone(&plan), places: None, made: Vec::new() });
        plan
    }
    fn in_order_of(&self, target: PlacementId, from: &Placement) -> Placement {
        let to = self.placements[target].clone();
        let order = if to.is_replicated() || from.is_replicated() { to.order } else { from.order };
        Placement { order, ..to }
    }
    /// The `target` for a value with the placement `placement`: unreduced digits of `target` that the value does not have are
    /// removed.
    pub fn aim(&mut self, placement: PlacementId, target: PlacementId) -> PlacementId {
        let wanted = &self.placements[target];
        if wanted.partial.is_empty() || wanted.partial == self.placements[placement].partial {
            return target;
        }
        let mut wanted = wanted.clone();
        wanted.partial.clear();
        self.placements.intern(wanted.merged())
    }
    /// Elements that a device sends at least to reshard `held` to `target`, without a search.
    pub fn least_reshard_elements(&self, held: LocalValue, target: PlacementId) -> i64 {
        let (from, to) = (&self.placements[held.placement], &self.placements[target]);
        let is_known = from.partial.is_empty() && !self.broadcasts.contains(&held.shard());
        let shape = self.shape_of(held.global).filter(|_| is_known);
        shape.map_or(0, |shape| (shard_elements(to, &shape) - shard_elements(from, &shape)).max(0))
    }
    /// Elements that a device sends to reshard `held` to `target`.
    pub fn reshard_elements(&mut self, held: LocalValue, target: PlacementId) -> i64 {
        let target = self.aim(held.placement, target);
        if held.placement == target {
            return 0;
        }
        let plan = self.plan(held, target);
        let sent = plan.sent();
        if sent > 0 {
            if let Some(least) = self.rebroadcast_elements(held, target) {
                return least.min(sent);
            }
        }
        let (from, to) = (&self.placements[held.placement], &self.placements[target]);
        let changes_order = from.order != to.order && !from.is_replicated() && !to.is_replicated();
        if !changes_order || self.is_free() {
            return sent;
        }
        let shape = self.shape_of(held.global).unwrap_or_default();
        sent.saturating_add(shard_elements(to, &shape))
    }
    /// Lowers an op that only changes the sharding of a value: its result is its operand, resharded.
    pub fn lower_reshard(&mut self, op: OpId) {
        let operand = self.emit.program.operand(op, 0);
        let result = self.emit.program.result(op, 0);
        let held = self.held(operand);
        let target = self.target(result);
        let target = self.with_terms_left(result, target);
        let target = self.wanted_of(result).unwrap_or(target);
        let new = if self.how.policy == Policy::Shardy {
            self.reshard_anew(held, target)
        } else {
            self.reshard(held, target)
        };
        self.note_sent(op, held, target);
        self.set_held(result, new);
        self.dead.push(op);
    }
}
