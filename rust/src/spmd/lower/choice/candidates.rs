//! Chooses among candidate strategies, which are derived from the placements of the op's tensors: the one in which a device sends
//! the fewest bytes, or that of XLA.

use crate::index::{TypeId, ValueId};
use crate::ir::Type;
use crate::spmd::digits::total_size;
use crate::spmd::lower::op_with_rule::OpWithRule;
use crate::spmd::lower::{LocalValue, Lowering, Shard};
use crate::spmd::placement::{Placement, PlacementId};
use crate::spmd::policy::Policy;
use crate::spmd::results::Results;
use crate::spmd::strategy::{Ability, FactorDigits, Factors, Strategy};
use rustc_hash::FxHashSet;

impl Lowering<'_, '_, '_> {
    /// The strategy by the policy. `placements` are those of operands, then the targets of results; `own` those of the shardings of
    /// results, if some differ from the targets.
    pub(in crate::spmd::lower) fn choose(
        &mut self,
        work: &OpWithRule,
        placements: &[PlacementId],
        own: &[PlacementId],
    ) -> Strategy {
        let of_xla = match self.how.policy {
            Policy::FewestBytes | Policy::Shardy => None,
            Policy::Xla => {
                self.strategy_of_xla(work).filter(|strategy| has_whole_parts(work, strategy))
            }
        };
        of_xla.unwrap_or_else(|| self.strategy_of_fewest_bytes(work, placements, own))
    }
    /// The strategy with the fewest bytes; among equal ones the one with the least computation, and then the first.
    fn strategy_of_fewest_bytes(
        &mut self,
        work: &OpWithRule,
        placements: &[PlacementId],
        own: &[PlacementId],
    ) -> Strategy {
        let mut strategies = Vec::new();
        let candidates = self.candidates(work, placements, own);
        for (number, (order, digits)) in candidates.into_iter().enumerate() {
            let strategy = self.strategy(work, order, digits);
            let own = strategy.operands.iter().chain(&strategy.results);
            let num_moved = own.zip(placements).filter(|(own, other)| own != other).count();
            let rank =
                (self.elements(work, &strategy), self.last_dims_sharded(work, &strategy), number);
            strategies.push((num_moved, rank, strategy));
        }
        // Good strategies first, so that the cost of others is computed only up to theirs.
        strategies.sort_by_key(|&(num_moved, (.., number), _)| (num_moved, number));
        let mut best: Option<(i64, Rank, Strategy)> = None;
        for (_, rank, strategy) in strategies {
            let most = best.as_ref().map_or((i64::MAX, LAST), |best| (best.0, best.1));
            if most >= (0, rank) {
                let sent = self.bits_sent(work, &strategy, most.0);
                if (sent, rank) < most {
                    best = Some((sent, rank, strategy));
                }
            }
        }
        best.map_or_else(
            || self.strategy(work, 0, vec![Vec::new(); work.rule.num_factors()]),
            |(.., strategy)| strategy,
        )
    }
    /// A tie-breaker: the sum of the indices of the dims that `strategy` shards in results of elementwise ops of rank three or
    /// more. Their first dims are mostly batch dims, along which most ops are local: if a chain of ops shards the same dims
    /// throughout, its values are not resharded back and forth. Other results, as those of dots of weights, and results that are
    /// resharded in any case, have no preference.
    fn last_dims_sharded(&self, work: &OpWithRule, strategy: &Strategy) -> usize {
        let rank = work.shapes.first().map_or(0, Vec::len);
        let are_alike = work.shapes.iter().all(|shape| shape.len() == rank);
        if self.how.results != Results::AsComputed || rank < 3 || !are_alike {
            return 0;
        }
        let dims =
            strategy.results.iter().flat_map(|&id| self.placements[id].dims.iter().enumerate());
        dims.filter(|(_, digits)| !digits.is_empty()).map(|(dim, _)| dim).sum()
    }
    /// The digits of factors to try: those of each tensor, alone and combined with those of other tensors where they do not
    /// conflict, and none.
    fn candidates(
        &self,
        work: &OpWithRule,
        placements: &[PlacementId],
        own: &[PlacementId],
    ) -> Vec<(u32, FactorDigits)> {
        let factors = Factors { rule: work.rule, abilities: work.abilities };
        let mut tensors: Vec<(u32, FactorDigits)> = Vec::new();
        let mut elsewhere: Vec<(u32, FactorDigits)> = Vec::new();
        let len = placements.len() + own.len();
        let tensors_placed = work.rule.tensors().zip(placements);
        let results_placed = work.rule.results.iter().zip(own);
        for (index, (mapping, &id)) in tensors_placed.chain(results_placed).enumerate() {
            let placement = &self.placements[id];
            // Of many tensors, only the first and the last ones.
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
        // Of many different seeds, only those of the first and the last tensors.
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
    pub(in crate::spmd::lower) fn strategy(
        &mut self,
        work: &OpWithRule,
        order: u32,
        digits: FactorDigits,
    ) -> Strategy {
        let factors = Factors { rule: work.rule, abilities: work.abilities };
        let is_empty = digits.iter().all(Vec::is_empty);
        let order = if is_empty { 0 } else { order };
        let place = |placement: Placement| {
            let order = if placement.is_replicated() { 0 } else { placement.order };
            Placement { order, ..placement }
        };
        let mut operands: Vec<Placement> = work
            .rule
            .operands
            .iter()
            .map(|mapping| place(factors.placement(mapping, &digits, order)))
            .collect();
        if let Some(order) = self.reversed_order(work, order, &digits) {
            operands[0].order = order;
        }
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
        Strategy {
            factors: digits,
            order,
            operands: operands.into_iter().map(|p| self.placements.intern(p)).collect(),
            results: results.into_iter().map(|p| self.placements.intern(p)).collect(),
            stages: Vec::new(),
            through: Vec::new(),
            behind: Vec::new(),
            copies: Vec::new(),
        }
    }
    /// Bits that a device sends; if more than `most`, any number above that.
    pub(in crate::spmd::lower) fn bits_sent(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        most: i64,
    ) -> i64 {
        let operands = || work.operands.iter().zip(&strategy.operands);
        let least = operands().map(|(&held, &placement)| {
            let elements = self.least_reshard_elements(held, placement);
            elements.saturating_mul(self.bits(held.global))
        });
        // The same value may be two operands.
        let least = least.max().unwrap_or(0);
        if least > most {
            return least;
        }
        let (mut sent, _) = self.fetched(work, strategy);
        let mut seen: FxHashSet<(Shard, PlacementId)> = FxHashSet::default();
        for (&held, &placement) in operands() {
            if sent <= most && seen.insert((held.shard(), placement)) {
                let elements = self.reshard_elements(held, placement);
                sent = sent.saturating_add(elements.saturating_mul(self.bits(held.global)));
            }
        }
        for (&(global, target), &placement) in work.results.iter().zip(&strategy.results) {
            if sent <= most {
                let (_, elements) = self.result_taken(global, placement, target);
                sent = sent.saturating_add(elements.saturating_mul(self.bits(global)));
            }
        }
        sent
    }
    /// The placement of a result of type `global` after the op, if it is computed with placement `placement` and wanted with
    /// `wanted`, and how many elements a device sends for that.
    pub(in crate::spmd::lower) fn result_taken(
        &mut self,
        global: TypeId,
        placement: PlacementId,
        wanted: PlacementId,
    ) -> (PlacementId, i64) {
        let held = LocalValue { global, placement, ..NO_VALUE };
        let sent = self.reshard_elements(held, wanted);
        if self.how.results != Results::AsComputed || sent == 0 {
            return (wanted, sent);
        }
        let reduced = Placement { partial: Vec::new(), ..self.placements[placement].clone() };
        let reduced = self.placements.intern(reduced.merged());
        let least = self.reshard_elements(held, reduced);
        if least < sent {
            (reduced, least)
        } else {
            (wanted, sent)
        }
    }
    /// The placement of each result of `work` under `strategy` after the op.
    pub(in crate::spmd::lower) fn results_taken(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
    ) -> Vec<PlacementId> {
        let results = work.results.iter().zip(&strategy.results);
        results
            .map(|(&(global, wanted), &placement)| self.result_taken(global, placement, wanted).0)
            .collect()
    }
    /// Bits of an element of type `ty`.
    pub(in crate::spmd::lower) fn bits(&self, ty: TypeId) -> i64 {
        match &self.emit.program.types()[ty] {
            Type::RankedTensor { element, .. } => element.bits.map_or(32, i64::from),
            _ => 0,
        }
    }
    /// Elements that a device computes with.
    fn elements(&self, work: &OpWithRule, strategy: &Strategy) -> i64 {
        let placements = strategy.operands.iter().chain(&strategy.results);
        let sizes = placements.zip(work.shapes).map(|(&placement, shape)| {
            crate::spmd::reshard::shard_elements(&self.placements[placement], shape)
        });
        sizes.fold(0i64, i64::saturating_add)
    }
}

/// Whether groups (of features or batches), which cannot be padded, are divided evenly.
pub(in crate::spmd::lower) fn has_whole_parts(work: &OpWithRule, strategy: &Strategy) -> bool {
    let factors = strategy.factors.iter().zip(&work.rule.factor_sizes).zip(work.abilities);
    factors.into_iter().all(|((digits, size), &ability)| {
        ability != Ability::Parts || size % total_size(digits) == 0
    })
}

/// What decides between strategies in which a device sends equally many bytes: the elements that it computes with, the sum of
/// [`Lowering::last_dims_sharded`], and the number of the candidate.
type Rank = (i64, usize, usize);

const LAST: Rank = (i64::MAX, usize::MAX, usize::MAX);

/// The most tensors of an op whose placements are candidates.
const MAX_TENSORS: usize = 64;

/// The most different placements that candidates start from.
const MAX_SEEDS: usize = 16;

/// A placeholder for computations that depend on the placement only.
const NO_VALUE: LocalValue = LocalValue {
    value: ValueId::NONE,
    global: TypeId::NONE,
    placement: PlacementId::FIRST,
    reducer: crate::spmd::lower::Reducer::Add,
    is_zero_padded: false,
};
