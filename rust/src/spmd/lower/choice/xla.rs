//! The partitioning that XLA's SPMD partitioner would choose for an op.

use crate::index::Id;
use crate::ir::OpTraits;
use crate::layout::ceil_div;
use crate::op_sharding_rule::TensorMapping;
use crate::spmd::digits::{merged, total_size, Cuts, Digit};
use crate::spmd::lower::gather_scatter::dynamic_slices::constant_int;
use crate::spmd::lower::gather_scatter::on_indexed_dims::factor_of;
use crate::spmd::lower::op_with_rule::OpWithRule;
use crate::spmd::lower::{LocalValue, Lowering};
use crate::spmd::placement::{Placement, PlacementId};
use crate::spmd::policy::Policy;
use crate::spmd::strategy::{Ability, FactorDigits, Factors, Strategy};
use crate::spmd::xla::leader::Leader;

impl Lowering<'_, '_, '_> {
    /// The strategy that XLA's partitioner takes; `None` if it compares strategies.
    pub(in crate::spmd::lower) fn strategy_of_xla(
        &mut self,
        work: &OpWithRule,
    ) -> Option<Strategy> {
        if self.leader(work) == Leader::Product {
            return self.strategy_of_product(work);
        }
        if self.leader(work) == Leader::Indexed {
            return self.indexed_of_xla(work);
        }
        let (order, digits) = self.digits_of_xla(work)?;
        let strategy = self.strategy(work, order, digits);
        Some(self.windows_of_xla(work, strategy))
    }
    fn leader(&self, work: &OpWithRule) -> Leader {
        let program = &*self.emit.program;
        let operands = work.operands;
        let first = operands.first().map(|held| held.placement);
        let are_alike =
            operands.len() > 1 && operands.iter().all(|held| Some(held.placement) == first);
        let is_elementwise = program.has_traits(work.op, OpTraits::ELEMENTWISE)
            || program.op_name(work.op) == "stablehlo.map";
        Leader::of(program.kind(work.op), is_elementwise, are_alike)
    }
    /// The digits of each factor by the leading tensor ([`Leader`]), and the order of devices.
    fn digits_of_xla(&self, work: &OpWithRule) -> Option<(u32, FactorDigits)> {
        let first = work.operands.first().map(|held| held.placement);
        let by_operand = || Some(self.led_by(work, work.rule.operands.first()?, first?));
        let by_result =
            || Some(self.led_by(work, work.rule.results.first()?, work.results.first()?.1));
        let shards = |(_, digits): &(u32, FactorDigits)| -> i64 {
            digits.iter().map(|digits| total_size(digits)).product()
        };
        match self.leader(work) {
            Leader::Operand => by_operand(),
            Leader::Result => by_result(),
            Leader::MoreShards => {
                let (operand, result) = (by_operand()?, by_result()?);
                Some(if shards(&operand) > shards(&result) { operand } else { result })
            }
            Leader::ResultIfItFits => {
                let result = by_result()?;
                let wanted: i64 = self.num_shards(work.results.first()?.1);
                if shards(&result) == wanted && wanted > 1 {
                    Some(result)
                } else {
                    by_operand()
                }
            }
            Leader::Taken => {
                let (order, mut digits) = by_result()?;
                let placement = &self.placements[work.results.first()?.1];
                let parts = parts_of_dims(work, work.operands.len());
                if parts.iter().any(|part| !placement.dims[part.dim].is_empty()) {
                    digits.iter_mut().for_each(Vec::clear);
                }
                Some((order, digits))
            }
            Leader::Update => Some(self.update_of_xla(work, by_operand()?, by_result()?)),
            Leader::ResultUnlessWhole => {
                let operand = by_operand()?;
                if shards(&operand) == 1 {
                    Some(operand)
                } else {
                    by_result()
                }
            }
            Leader::ResultElsewhere => self.elsewhere_by_result(work).or_else(by_result),
            Leader::Product | Leader::Indexed | Leader::Compared => None,
        }
    }
    /// The strategy of a dynamic update slice, by the digits of `operand` and `result`. If one shard of the result contains the
    /// update, each device updates its shard or leaves it; otherwise dims that the update covers in part are replicated.
    fn update_of_xla(
        &self,
        work: &OpWithRule,
        operand: (u32, FactorDigits),
        result: (u32, FactorDigits),
    ) -> (u32, FactorDigits) {
        let parts = parts_of_dims(work, 1);
        let mut is_in_one = true;
        for &Part { dim, whole } in &parts {
            let (size, part) = (work.shapes[0][dim], work.shapes[1][dim]);
            let shard = ceil_div(size, total_size(&result.1[whole])).max(1);
            let start = self.emit.program.operand(work.op, 2 + dim);
            let start = constant_int(self.emit.program, start);
            let is_inside = |start: i64| start / shard == start.saturating_add(part - 1) / shard;
            is_in_one &= shard == size || part == 1 || start.is_some_and(is_inside);
        }
        let is_cut = parts.iter().any(|part| !result.1[part.whole].is_empty());
        if is_cut && is_in_one {
            return result;
        }
        let shards = |digits: &FactorDigits| -> i64 {
            digits.iter().map(|digits| total_size(digits)).product()
        };
        let more = if shards(&operand.1) > shards(&result.1) { operand } else { result };
        let (order, mut digits) = more;
        for part in parts {
            digits[part.whole].clear();
        }
        (order, digits)
    }
    /// The strategy by the placement of the first result, where the shards of a dim that has to be replicated move to the first dim
    /// that they divide evenly.
    fn elsewhere_by_result(&self, work: &OpWithRule) -> Option<(u32, FactorDigits)> {
        if work.abilities.contains(&Ability::Moved) {
            return None;
        }
        let factors = Factors { rule: work.rule, abilities: work.abilities };
        let placement = &self.placements[work.results.first()?.1];
        let strategies = factors.elsewhere(work.rule.results.first()?, placement);
        let is_even = |digits: &FactorDigits| {
            let mut sizes = digits.iter().zip(&work.rule.factor_sizes);
            sizes.all(|(digits, size)| size % total_size(digits) == 0)
        };
        Some((placement.order, strategies.into_iter().find(is_even)?))
    }
    fn num_shards(&self, placement: PlacementId) -> i64 {
        self.placements[placement].dims.iter().map(|digits| total_size(digits)).product()
    }
    /// The strategy by the placement of one tensor.
    pub(in crate::spmd::lower) fn led_by(
        &self,
        work: &OpWithRule,
        mapping: &TensorMapping,
        placement: PlacementId,
    ) -> (u32, FactorDigits) {
        let factors = Factors { rule: work.rule, abilities: work.abilities };
        let placement = &self.placements[placement];
        (placement.order, factors.of_tensor(mapping, placement))
    }
    /// The first steps of the reshard of `held`, a result of `work`, to `target`, as XLA's partitioner makes them. Partial results
    /// are reduced dim by dim, the last dim first; the first dim is left to the reshard that follows.
    pub(in crate::spmd::lower) fn start_as_xla(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        held: LocalValue,
        target: PlacementId,
    ) -> LocalValue {
        let mut held = held;
        if self.how.policy != Policy::Xla {
            return held;
        }
        for &between in &strategy.behind {
            self.emit.go_after(work.op);
            let mut between = between;
            if self.leader(work) == Leader::Product {
                (held, between) = self.with_groups_reduced(held, between, target);
            }
            held = self.with_fewer_terms(held, between);
            held = self.reshard(held, between);
        }
        if self.placements[held.placement].partial.is_empty() || !strategy.behind.is_empty() {
            return held;
        }
        if self.leader(work) == Leader::Product {
            let (from, to) = (&self.placements[held.placement], &self.placements[target]);
            let devices = Digit { stride: 1, size: self.emit.devices.count() };
            if let Some(dims) = dims_of_terms(from, to, devices) {
                return self.reduce_along_dims(work, held, target, &dims);
            }
        }
        let has_terms = |factor: &usize| {
            work.abilities[*factor] == Ability::Terms && !strategy.factors[*factor].is_empty()
        };
        let mut left: Vec<usize> = (0..strategy.factors.len()).filter(has_terms).collect();
        let dims = work.rule.operands[0].dims.iter().rev().flatten().map(|factor| factor.index());
        for factor in dims.filter(has_terms) {
            left.retain(|&other| other != factor);
            if left.is_empty() {
                break;
            }
            let terms = left.iter().flat_map(|&factor| strategy.factors[factor].iter().copied());
            let mut partial: Vec<Digit> = terms.collect();
            partial.sort_unstable_by_key(|digit| std::cmp::Reverse(digit.stride));
            let placement =
                Placement { partial: merged(partial), ..self.placements[held.placement].clone() };
            self.emit.go_after(work.op);
            let along = (strategy.order, &strategy.factors[factor][..]);
            let (emit, reducer) = (&mut self.emit, held.reducer);
            held.value = self.collectives.all_reduce(emit, held.value, reducer, along);
            held.placement = self.placements.intern(placement);
        }
        held
    }
    /// `held` has partial results within groups of devices, and `between` is its placement without them. If `target` is sharded
    /// along exactly the digits of the groups, the other partial results are reduced first, and then the sum is split along these;
    /// returns that, and `between` split likewise.
    fn with_groups_reduced(
        &mut self,
        held: LocalValue,
        between: PlacementId,
        target: PlacementId,
    ) -> (LocalValue, PlacementId) {
        let (own, added) =
            (self.placements[held.placement].clone(), self.placements[between].clone());
        let wanted = self.placements[target].clone();
        let used = own.digits().chain(added.digits()).chain(wanted.digits());
        let Some(cuts) = Cuts::of(used.collect::<Vec<_>>()) else { return (held, between) };
        let groups = cuts.split(&added.partial);
        let is_cut = |&dim: &usize| {
            let digits = cuts.split(&wanted.dims[dim]);
            own.dims[dim].is_empty()
                && !digits.is_empty()
                && digits.iter().all(|digit| groups.contains(digit))
        };
        let dims: Vec<usize> = (0..wanted.dims.len()).filter(is_cut).collect();
        let count = dims.iter().map(|&dim| wanted.num_shards(dim)).product::<i64>();
        if dims.is_empty() || count != total_size(&groups) || wanted.order != own.order {
            return (held, between);
        }
        let without_groups = |placement: &Placement| {
            let mut partial = cuts.split(&placement.partial);
            partial.retain(|digit| !groups.contains(digit));
            Placement { partial: merged(partial), ..placement.clone() }
        };
        let reduced = self.placements.intern(without_groups(&own));
        let held = self.with_fewer_terms(held, reduced);
        let [cut, added] = [&own, &added].map(|placement| {
            let mut cut = without_groups(placement);
            for &dim in &dims {
                cut.dims[dim].clone_from(&wanted.dims[dim]);
            }
            Placement { order: wanted.order, ..cut }
        });
        let (cut, added) = (self.placements.intern(cut), self.placements.intern(added));
        (self.reshard(held, cut), added)
    }
    /// `held` with the partial results reduced that `target` does not have.
    fn with_fewer_terms(&mut self, held: LocalValue, target: PlacementId) -> LocalValue {
        let mut placement = self.placements[held.placement].clone();
        let left = self.placements[target].partial.clone();
        let Some(cuts) = Cuts::of([&placement.partial[..], &left].concat()) else { return held };
        let (mut along, left) = (cuts.split(&placement.partial), cuts.split(&left));
        along.retain(|digit| !left.contains(digit));
        if along.is_empty() || left.is_empty() {
            return held;
        }
        let (emit, reducer) = (&mut self.emit, held.reducer);
        let value =
            self.collectives.all_reduce(emit, held.value, reducer, (placement.order, &along));
        placement.partial = merged(left);
        LocalValue { value, placement: self.placements.intern(placement), ..held }
    }
    /// Reduces the partial results of `held` along the digits by which `target` shards `dims`, the last dim first, and slices the
    /// sum. Other digits, and the case of a single dim, are left to the reshard that follows.
    fn reduce_along_dims(
        &mut self,
        work: &OpWithRule,
        held: LocalValue,
        target: PlacementId,
        dims: &[usize],
    ) -> LocalValue {
        let mut held = held;
        if dims.len() == 1 {
            return held;
        }
        let wanted = self.placements[target].clone();
        let devices = [Digit { stride: 1, size: self.emit.devices.count() }];
        for &dim in dims.iter().rev() {
            let mut placement = self.placements[held.placement].clone();
            let used = [&wanted.dims[dim][..], &placement.partial, &devices].concat();
            let Some(cuts) = Cuts::of(used) else { return held };
            let taken = cuts.split(&wanted.dims[dim]);
            placement.partial = cuts.split(&placement.partial);
            placement.partial.retain(|digit| !taken.contains(digit));
            placement.partial = merged(placement.partial);
            self.emit.go_after(work.op);
            let along = (wanted.order, &wanted.dims[dim][..]);
            let (emit, reducer) = (&mut self.emit, held.reducer);
            held.value = self.collectives.all_reduce(emit, held.value, reducer, along);
            held.placement = self.placements.intern(placement);
        }
        let mut cut = self.placements[held.placement].clone();
        for &dim in dims {
            cut.dims[dim].clone_from(&wanted.dims[dim]);
        }
        cut.order = wanted.order;
        let cut = self.placements.intern(cut);
        self.reshard(held, cut)
    }
}

/// A dim of the first operand that another tensor covers in part.
#[derive(Clone, Copy)]
struct Part {
    dim: usize,
    /// The factor of the dim.
    whole: usize,
}

/// The dims of the first operand that `tensor` covers in part.
fn parts_of_dims(work: &OpWithRule, tensor: usize) -> Vec<Part> {
    let part = |dim: usize| {
        let (whole, factor) = (factor_of(work, 0, dim)?.index(), factor_of(work, tensor, dim)?);
        (whole != factor.index()).then_some(Part { dim, whole })
    };
    (0..work.shapes[0].len()).filter_map(part).collect()
}

/// The dims that `target` shards only along partial digits of `from`, if all other partial digits are replicated in `target`: the
/// sum is then split along these dims before the copies are reduced.
fn dims_of_terms(from: &Placement, target: &Placement, devices: Digit) -> Option<Vec<usize>> {
    if target.dims.iter().all(Vec::is_empty) {
        return None;
    }
    let digits = from.digits().chain(target.digits()).chain([devices]);
    let cuts = Cuts::of(digits.filter(|digit| digit.size > 1).collect::<Vec<_>>())?;
    let terms = cuts.split(&from.partial);
    let mut left = terms.clone();
    let mut dims = Vec::new();
    for (dim, digits) in target.dims.iter().enumerate() {
        let digits = cuts.split(digits);
        if !digits.is_empty() && digits.iter().all(|digit| terms.contains(digit)) {
            left.retain(|digit| !digits.contains(digit));
            dims.push(dim);
        } else if digits.iter().any(|digit| terms.contains(digit)) {
            return None;
        }
    }
    if dims.is_empty() {
        return None;
    }
    let held_apart = cuts.split(&target.dims.concat());
    let copies = |digit: &Digit| !held_apart.contains(digit);
    let are_copies = left.iter().all(copies);
    let all = cuts.split(&[devices]);
    let is_all = left.is_empty()
        || all.iter().filter(|digit| copies(digit)).all(|digit| left.contains(digit));
    (are_copies && is_all).then_some(dims)
}
