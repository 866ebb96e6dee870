//! Ops that have a sharding rule, and those that have none and are computed whole.

use super::super::digits::{total_size, Digit};
use super::super::outcome::OutcomeKind;
use super::super::placement::{Placement, PlacementId};
use super::super::ways::{ChoiceKey, FactorDigits, Factors, Way};
use super::abilities::abilities;
use super::dynamic;
use super::way_rule::way_rule;
use super::work::ByRule;
use super::{Held, Lowering};
use crate::error::Result;
use crate::index::{OpId, TypeId, ValueId};
use crate::ir::{OpKind, Type};
use rustc_hash::FxHashSet;
use std::rc::Rc;

impl Lowering<'_, '_, '_> {
    /// Lowers an op: chooses a way, reshards operands, computes, reshards results.
    pub(super) fn lower_by_rule(&mut self, op: OpId) -> Result<()> {
        self.check_known(op)?;
        if self.leave_to_concatenations(op) {
            return Ok(());
        }
        self.capture(op);
        let Some(work) = self.by_rule(op) else {
            self.lower_whole(op);
            return Ok(());
        };
        let way = self.choose(&work);
        self.note_way(&work, &way);
        let mut operands = Vec::with_capacity(work.operands.len());
        for (&held, &placement) in work.operands.iter().zip(&way.operands) {
            operands.push(self.reshard(held, placement));
        }
        self.compute(&work, &way, operands);
        Ok(())
    }
    /// What is known of `op`; none if it has no rule, or not for these types.
    fn by_rule(&mut self, op: OpId) -> Option<ByRule> {
        let given = if self.emit.program.kind(op) == OpKind::CustomCall {
            self.custom_call_rule(op)?
        } else {
            let id = self.context.rules.rule(self.emit.program, op).get()?;
            Rc::new(self.emit.program.rules()[id].clone())
        };
        let values: Vec<ValueId> = self.emit.program.operands(op).collect();
        let mut operands: Vec<Held> = values.into_iter().map(|value| self.held(value)).collect();
        let parts = self.parts(op, &mut operands);
        let values: Vec<ValueId> = self.emit.program.op_results(op).collect();
        let mut results = Vec::with_capacity(values.len());
        for value in values {
            let target = self.target(value);
            let target = self.with_terms_left(value, target);
            results.push((self.emit.program.type_of(value), target));
        }
        let types = operands.iter().map(|held| held.global).chain(results.iter().map(|r| r.0));
        let types: Vec<TypeId> = types.collect();
        let shapes: Option<Vec<Vec<i64>>> = types.iter().map(|&ty| self.shape_of(ty)).collect();
        let shapes = shapes?;
        let facts = match self.emit.program.kind(op) {
            OpKind::Concatenate => parts,
            _ => dynamic::facts(self.emit.program, op, &shapes),
        };
        let program = &*self.emit.program;
        let rule = Rc::new(way_rule(program, op, &given, &shapes, &facts));
        let fits = rule.operands.len() == operands.len()
            && rule.results.len() == results.len()
            && rule.tensors().zip(&shapes).all(|(tensor, shape)| tensor.dims.len() == shape.len());
        if !fits {
            return None;
        }
        let mut work = ByRule { op, rule, operands, results, shapes, facts, abilities: Vec::new() };
        work.abilities = abilities(self.emit.program, &work);
        Some(work)
    }
    /// The way of fewest bytes; of equal ones that which computes least.
    fn choose(&mut self, work: &ByRule) -> Rc<Way> {
        let held = work.operands.iter().map(|held| held.placement);
        let placements: Vec<PlacementId> =
            held.chain(work.results.iter().map(|result| result.1)).collect();
        let types = work.operands.iter().map(|held| held.global);
        let types: Vec<TypeId> = types.chain(work.results.iter().map(|result| result.0)).collect();
        let signature = self.emit.program.signature(work.op);
        let rule = self.context.rules.rule(self.emit.program, work.op);
        let key = ChoiceKey { signature, rule, placements, types, facts: work.facts.clone() };
        let is_signed = signature.is_some() && !self.emit.program.op_rules().is_own(work.op);
        if is_signed {
            if let Some(way) = self.choices.get(&key) {
                return way;
            }
        }
        let mut best: Option<((i64, i64), Way)> = None;
        for (order, digits) in self.candidates(work, &key.placements) {
            let way = self.way(work, order, digits);
            let (fetched, _) = self.fetched(work, &way);
            let sent = self.bits_sent(work, &way).saturating_add(fetched);
            let cost = (sent, self.elements(work, &way));
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, way));
            }
        }
        let way = best.map_or_else(
            || self.way(work, 0, vec![Vec::new(); work.rule.num_factors()]),
            |(_, way)| way,
        );
        let way = Rc::new(way);
        if is_signed {
            self.choices.put(key, Rc::clone(&way));
        }
        way
    }
    /// Digits of factors to try: those of each tensor, alone and with those of others as far as they fit, and
    /// none.
    fn candidates(&self, work: &ByRule, placements: &[PlacementId]) -> Vec<(u32, FactorDigits)> {
        let factors = Factors { rule: &work.rule, abilities: &work.abilities };
        let mut tensors: Vec<(u32, FactorDigits)> = Vec::new();
        let mut elsewhere: Vec<(u32, FactorDigits)> = Vec::new();
        let len = placements.len();
        for (index, (mapping, &id)) in work.rule.tensors().zip(placements).enumerate() {
            let placement = &self.placements[id];
            // Of very many tensors, the first ones and the last.
            let is_between = index >= MAX_TENSORS / 2 && index + MAX_TENSORS / 2 < len;
            if is_between || placement.dims.iter().all(Vec::is_empty) {
                continue;
            }
            let own = (placement.order, factors.of_tensor(mapping, placement));
            if !tensors.contains(&own) {
                tensors.push(own);
                let others = factors.elsewhere(mapping, placement).into_iter();
                elsewhere.extend(others.map(|digits| (placement.order, digits)));
            }
        }
        // Of very many different ones, those of the first tensors and the last.
        if tensors.len() > MAX_SEEDS {
            tensors.drain(MAX_SEEDS / 2..tensors.len() - MAX_SEEDS / 2);
        }
        let mut all: Vec<(u32, FactorDigits)> = Vec::new();
        let mut add = |candidate: (u32, FactorDigits)| {
            if !all.contains(&candidate) {
                all.push(candidate);
            }
        };
        for (order, seed) in &tensors {
            for backwards in [true, false] {
                let mut digits = seed.clone();
                let others = tensors.iter().filter(|other| other.0 == *order);
                if backwards {
                    others.rev().for_each(|(_, other)| factors.extend(&mut digits, other));
                } else {
                    others.for_each(|(_, other)| factors.extend(&mut digits, other));
                }
                add((*order, digits));
            }
            add((*order, seed.clone()));
        }
        let first = tensors.first().map_or(0, |tensor| tensor.0);
        let same: Vec<&FactorDigits> =
            tensors.iter().filter(|tensor| tensor.0 == first).map(|tensor| &tensor.1).collect();
        factors.combinations(&same).into_iter().for_each(|digits| add((first, digits)));
        elsewhere.into_iter().for_each(&mut add);
        add((0, vec![Vec::new(); work.rule.num_factors()]));
        all
    }
    fn way(&mut self, work: &ByRule, order: u32, digits: FactorDigits) -> Way {
        let factors = Factors { rule: &work.rule, abilities: &work.abilities };
        let is_empty = digits.iter().all(Vec::is_empty);
        let order = if is_empty { 0 } else { order };
        let place = |placement: Placement| {
            let order = if placement.is_replicated() { 0 } else { placement.order };
            Placement { order, ..placement }
        };
        let operands: Vec<Placement> = work
            .rule
            .operands
            .iter()
            .map(|mapping| place(factors.placement(mapping, &digits, order)))
            .collect();
        let terms = factors.terms(&digits);
        let results: Vec<Placement> = work
            .rule
            .results
            .iter()
            .map(|mapping| {
                let partial = terms.clone();
                place(Placement { partial, ..factors.placement(mapping, &digits, order) })
            })
            .collect();
        Way {
            factors: digits,
            order,
            operands: operands.into_iter().map(|p| self.placements.intern(p)).collect(),
            results: results.into_iter().map(|p| self.placements.intern(p)).collect(),
        }
    }
    /// Bits that a device sends.
    fn bits_sent(&mut self, work: &ByRule, way: &Way) -> i64 {
        let mut sent = 0i64;
        let mut seen: FxHashSet<(ValueId, PlacementId)> = FxHashSet::default();
        for (&held, &placement) in work.operands.iter().zip(&way.operands) {
            if seen.insert((held.value, placement)) {
                let elements = self.reshard_elements(held, placement);
                sent = sent.saturating_add(elements.saturating_mul(self.bits(held.global)));
            }
        }
        for (&(global, target), &placement) in work.results.iter().zip(&way.results) {
            let held = Held { global, placement, ..NO_VALUE };
            let elements = self.reshard_elements(held, target);
            sent = sent.saturating_add(elements.saturating_mul(self.bits(global)));
        }
        sent
    }
    /// Bits that an element takes.
    pub(super) fn bits(&self, ty: TypeId) -> i64 {
        match &self.emit.program.types()[ty] {
            Type::RankedTensor { element, .. } => element.bits.map_or(32, i64::from),
            _ => 0,
        }
    }
    /// Elements that a device computes with.
    fn elements(&self, work: &ByRule, way: &Way) -> i64 {
        let placements = way.operands.iter().chain(&way.results);
        let sizes = placements.zip(&work.shapes).map(|(&placement, shape)| {
            super::super::reshard::shard_elements(&self.placements[placement], shape)
        });
        sizes.fold(0i64, i64::saturating_add)
    }
    /// Says how `work` is done.
    fn note_way(&mut self, work: &ByRule, way: &Way) {
        let mut gathered: Vec<String> = Vec::new();
        let mut sent = Vec::new();
        for (index, (held, &placement)) in work.operands.iter().zip(&way.operands).enumerate() {
            let (from, to) = (&self.placements[held.placement], &self.placements[placement]);
            let num_shards = |placement: &Placement| -> i64 {
                (0..placement.dims.len()).map(|dim| placement.num_shards(dim)).product()
            };
            // Where there are as many shards as before, dims are exchanged.
            let dims = if num_shards(to) < num_shards(from) { 0..from.dims.len() } else { 0..0 };
            for dim in dims {
                if total_size(&to.dims[dim]) < total_size(&from.dims[dim]) {
                    gathered.push(format!("operand {index} dim {dim}"));
                }
            }
            if from != to && self.reshard_elements(*held, placement) > 0 {
                sent.push(format!("operand {index}"));
            }
        }
        for (index, (&(global, target), &placement)) in
            work.results.iter().zip(&way.results).enumerate()
        {
            let held = Held { global, placement, ..NO_VALUE };
            if self.reshard_elements(held, target) > 0 {
                sent.push(format!("result {index}"));
            }
        }
        let (bits, places) = self.fetched(work, way);
        if bits > 0 {
            sent.extend(places);
        }
        if !gathered.is_empty() {
            let reason = format!("made whole: {}", gathered.join(", "));
            self.note(work.op, OutcomeKind::Gathered, reason);
        } else if sent.is_empty() {
            self.note(work.op, OutcomeKind::Local, String::new());
        } else {
            self.note(work.op, OutcomeKind::Collective, format!("moved: {}", sent.join(", ")));
        }
    }
    /// Says what it takes so that an operand of `op`, or a result, lies as `target`.
    pub(super) fn note_sent(&mut self, op: OpId, held: Held, target: PlacementId) {
        if self.reshard_elements(held, target) > 0 {
            self.note(op, OutcomeKind::Collective, "moved: as its surroundings want it".into());
        }
    }
    /// `target` with the terms that an `sdy.all_reduce` or `sdy.reduce_scatter` behind `value` reduces.
    pub(super) fn with_terms_left(&mut self, value: ValueId, target: PlacementId) -> PlacementId {
        let Some((digits, order)) = self.terms_reduced_behind(value) else { return target };
        let mut placement = self.placements[target].clone();
        placement.order = order;
        placement.partial = digits;
        self.placements.intern(placement)
    }
    fn terms_reduced_behind(&self, value: ValueId) -> Option<(Vec<Digit>, u32)> {
        use crate::ir::Payload;
        let program = &*self.emit.program;
        let mut users = program.users(value);
        let user = users.next().filter(|_| users.next().is_none())?;
        let axes = match (program.kind(user), program.payload(user)?) {
            (OpKind::AllReduce, Payload::Axes(axes)) => axes.clone(),
            (OpKind::ReduceScatter, Payload::AxesPerDim(lists)) => lists.concat(),
            _ => return None,
        };
        let mesh = program.mesh_of(program.sharding(program.result(user, 0)));
        let mesh = program.mesh(mesh.get()?);
        let order = self.emit.devices.known_order(mesh)?;
        let mut digits = super::super::digits::digits_of(&axes, mesh);
        digits.sort_unstable_by_key(|digit| std::cmp::Reverse(digit.stride));
        Some((super::super::digits::merged(digits), order))
    }

    /// Gathers all operands, computes whole, and lets devices keep their parts of the results.
    fn lower_whole(&mut self, op: OpId) {
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
            self.note(op, OutcomeKind::Local, String::new());
        } else {
            let reason =
                format!("made whole: {}: the op has no sharding rule", gathered.join(", "));
            self.note(op, OutcomeKind::Gathered, reason);
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

/// The most tensors of an op whose placements are looked at.
const MAX_TENSORS: usize = 64;

/// The most different placements that are tried as a start.
const MAX_SEEDS: usize = 16;

/// A value of which only the placement counts.
const NO_VALUE: Held = Held {
    value: ValueId::NONE,
    global: TypeId::NONE,
    placement: PlacementId::FIRST,
    reducer: super::Reducer::Add,
    is_zero_padded: false,
};
