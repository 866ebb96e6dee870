//! The partitioning that XLA's SPMD partitioner chooses for gathers and scatters.

use crate::index::{FactorId, Id};
use crate::ir::OpKind;
use crate::op_sharding_rule::TensorMapping;
use crate::spmd::digits::{merged, Cuts, Digit};
use crate::spmd::lower::op_with_rule::OpWithRule;
use crate::spmd::lower::Lowering;
use crate::spmd::placement::Placement;
use crate::spmd::strategy::{Ability, FactorDigits, Factors, Strategy};
use crate::spmd::xla::gather_scatter::{primes, Groups, Indexed, Role, Tensor};
use std::cmp::{Ordering, Reverse};

impl Lowering<'_, '_, '_> {
    /// The strategy; `None` if devices are in different orders or digits do not nest.
    pub(in crate::spmd::lower) fn indexed_of_xla(&mut self, work: &OpWithRule) -> Option<Strategy> {
        let is_scatter = self.emit.program.kind(work.op) == OpKind::Scatter;
        let num_inputs = work.results.len();
        let (rule, operands) = (work.rule, work.operands);
        let (result, (_, target)) = (rule.results.first()?, *work.results.first()?);
        let num_operands = if is_scatter { 2 * num_inputs + 1 } else { 2 };
        if operands.len() != num_operands {
            return None;
        }
        let of_operand =
            |number: usize| (&rule.operands[number], operands[number].placement, number);
        let slices =
            if is_scatter { of_operand(num_inputs + 1) } else { (result, target, operands.len()) };
        let tensors = [of_operand(0), of_operand(if is_scatter { num_inputs } else { 1 }), slices];
        let given = tensors.map(|(mapping, placement, _)| self.led_by(work, mapping, placement));
        let wanted = self.led_by(work, result, target);
        let is_sharded = |digits: &FactorDigits| !digits.iter().all(Vec::is_empty);
        let mut orders = given.iter().chain([&wanted]).filter(|(_, digits)| is_sharded(digits));
        let order = orders.next().map_or(0, |(order, _)| *order);
        if orders.any(|(other, _)| *other != order) {
            return None;
        }
        let devices = self.devices();
        let used = given.iter().chain([&wanted]).flat_map(|(_, digits)| digits.iter().flatten());
        let used = used.chain(&devices).copied().filter(|digit| digit.size > 1);
        let cuts = Cuts::of(used.collect::<Vec<_>>())?;
        // Parts of digits are dealt to other dims, so that all are cut as far as they can be.
        let cuts = Cuts::of(in_primes(&cuts.split(&devices)))?;
        let split = |digits: &FactorDigits| digits.iter().map(|own| cuts.split(own)).collect();
        let indexed = Indexed {
            roles: roles(work, tensors.map(|(mapping, ..)| mapping), is_scatter),
            tensors: tensors.map(|(mapping, _, number)| Tensor {
                dims: mapping.dims.iter().map(|dim| factors(dim)).collect(),
                shape: work.shapes[number].clone(),
                bits: self.bits(match operands.get(number) {
                    Some(held) => held.global,
                    None => work.results[0].0,
                }),
            }),
            is_scatter,
            parts: cuts.split(&devices).into_iter().filter(|digit| digit.size > 1).collect(),
            devices,
        };
        let groups = Groups {
            tensors: given.each_ref().map(|(_, digits)| split(digits)),
            result: split(&wanted.1),
            strategy: vec![Vec::new(); rule.num_factors()],
        };
        let decision = indexed.decide(groups);
        let strategy =
            self.strategy(work, order, decision.strategy.into_iter().map(merged).collect());
        let mut through = vec![Vec::new(); operands.len()];
        for (number, places) in through.iter_mut().enumerate() {
            let tensor = match number.cmp(&(if is_scatter { num_inputs } else { 1 })) {
                Ordering::Less => 0,
                Ordering::Equal => 1,
                Ordering::Greater => 2,
            };
            let strategies = decision.through[tensor].iter();
            let placements = strategies
                .map(|digits| self.strategy(work, order, digits.clone()).operands[number]);
            *places = placements.map(|placement| (0, placement)).collect();
        }
        let mut behind = Vec::new();
        for (digits, mut terms) in decision.behind {
            terms.sort_unstable_by_key(|digit| Reverse(digit.stride));
            let factors = Factors { rule: work.rule, abilities: work.abilities };
            let placement = factors.placement(result, &digits, order);
            behind.push(self.placements.intern(Placement { partial: merged(terms), ..placement }));
        }
        Some(Strategy { through, behind, ..strategy })
    }
}

/// `digits`, split into digits of prime sizes.
fn in_primes(digits: &[Digit]) -> Vec<Digit> {
    let mut parts = Vec::new();
    for digit in digits {
        let mut stride = digit.end();
        for size in primes(digit.size) {
            stride /= size;
            parts.push(Digit { stride, size });
        }
    }
    parts
}

fn factors(dim: &[FactorId]) -> Vec<usize> {
    dim.iter().map(|factor| factor.index()).collect()
}

/// The role of each factor, by the tensors that have it.
fn roles(work: &OpWithRule, tensors: [&TensorMapping; 3], is_scatter: bool) -> Vec<Role> {
    let role = |(factor, ability): (usize, &Ability)| {
        let id = FactorId::from_index(factor);
        let can_be_indexed = if is_scatter { Ability::Local } else { Ability::Terms };
        match tensors.map(|mapping| mapping.contains(id)) {
            _ if *ability == Ability::Whole => Role::Other,
            [true, true, true] => Role::Batch,
            [true, false, true] => Role::Window,
            [false, true, true] => Role::Index,
            [true, false, false] if *ability == can_be_indexed => Role::Indexed,
            _ => Role::Other,
        }
    };
    work.abilities.iter().enumerate().map(role).collect()
}
