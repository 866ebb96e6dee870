//! The bytes that each of XLA's methods for gathers and scatters sends.

use super::super::super::digits::merged;
use super::super::super::placement::Placement;
use super::super::super::reshard::Step;
use super::super::super::strategy::FactorDigits;
use super::super::reshard;
use super::model::{Groups, Indexed, Level, Tensor, INDICES, OPERAND, SLICES};

/// The cost of a method: the largest memory of an op, in bits, and the bits that all collectives send.
pub(super) type Cost = (i64, i64);

impl Indexed {
    /// The cost of going from `groups` to `level`, if tensors are then replicated within a group.
    pub(super) fn cost(&self, groups: &Groups, level: &Level) -> Cost {
        let next = &level.groups;
        let mut memory = 0i64;
        let mut sent = 0i64;
        let mut whole = 0i64;
        for tensor in [OPERAND, INDICES, SLICES] {
            let within = self.placement(tensor, &[&next.strategy]);
            whole = whole.saturating_add(self.bits(tensor, &within));
            if tensor == SLICES && !self.is_scatter {
                continue;
            }
            let from = self.placement(tensor, &[&groups.strategy, &groups.tensors[tensor]]);
            self.add_reshard(tensor, &from, &within, (&mut memory, &mut sent));
        }
        memory = memory.max(whole);
        let result = if self.is_scatter { OPERAND } else { SLICES };
        let cut = self.placement(result, &[&next.strategy, &next.tensors[result]]);
        if level.role == self.reduced() {
            let bits = self.bits(result, &cut);
            let dims = level.along.iter().filter(|digits| !digits.is_empty());
            memory = memory.max(bits);
            sent = sent.saturating_add(bits.saturating_mul(2 * dims.count() as i64));
        }
        let wanted = self.placement(result, &[&groups.strategy, &groups.result]);
        self.add_reshard(result, &cut, &wanted, (&mut memory, &mut sent));
        (memory, sent)
    }
    fn add_reshard(
        &self,
        tensor: usize,
        from: &Placement,
        to: &Placement,
        (memory, sent): (&mut i64, &mut i64),
    ) {
        let shape = &self.tensors[tensor].shape;
        let mut before = self.bits(tensor, from);
        let Some(plan) = reshard::plan(from, to, shape, &self.devices, true) else {
            let all = self.bits(tensor, &Placement::replicated(shape.len()));
            *memory = (*memory).max(before.saturating_add(all));
            *sent = sent.saturating_add(all);
            return;
        };
        for reached in &plan.steps {
            let after = self.bits(tensor, &reached.placement);
            if !matches!(reached.step, Step::Slice { .. }) {
                *memory = (*memory).max(before.saturating_add(after));
                let bits = reached.sent.saturating_mul(self.tensors[tensor].bits);
                *sent = sent.saturating_add(bits);
            }
            before = after;
        }
    }
    /// The placement of `tensor` with the digits of all `parts`, the first ones major.
    fn placement(&self, tensor: usize, parts: &[&FactorDigits]) -> Placement {
        let dims = self.tensors[tensor].dims.iter().map(|factors| {
            let digits = |&factor: &usize| parts.iter().flat_map(move |part| part[factor].clone());
            merged(factors.iter().flat_map(digits))
        });
        Placement { dims: dims.collect(), ..Placement::default() }
    }
    /// The bits of a shard of `tensor`.
    fn bits(&self, tensor: usize, placement: &Placement) -> i64 {
        let Tensor { shape, bits, .. } = &self.tensors[tensor];
        let local = placement.local_shape(shape);
        local.iter().fold(*bits, |product, &size| product.saturating_mul(size))
    }
}
