//! Sets the padding of uneven shards to the identity of a reduction before ops that would read it, as XLA's
//! `PadToIdentity`.

use super::super::digits::total_size;
use super::super::strategy::{Ability, Strategy};
use super::{LocalValue, Lowering};
use crate::index::{FactorId, Id, ValueId};
use crate::spmd::lower::op_with_rule::OpWithRule;

impl Lowering<'_, '_, '_> {
    /// `held` with the padding along `dims` replaced by `fill`, a scalar.
    pub(super) fn filled(&mut self, held: LocalValue, dims: &[usize], fill: ValueId) -> LocalValue {
        let Some(shape) = self.shape_of(held.global) else { return held };
        let placement = self.placements[held.placement].clone();
        let local = placement.local_shape(&shape);
        let mut mask: Option<ValueId> = None;
        for &dim in dims {
            if !placement.is_padded(dim, shape[dim]) {
                continue;
            }
            let number = self.emit.number(placement.order, &placement.dims[dim]);
            let offset = self.emit.times(number, local[dim]);
            let indices = self.emit.indices(&local, dim, Some(offset));
            let is_inside = self.emit.are_below(indices, shape[dim]);
            mask = Some(match mask {
                Some(mask) => self.emit.elementwise("stablehlo.and", &[mask, is_inside]),
                None => is_inside,
            });
        }
        let Some(mask) = mask else { return held };
        let value = self.emit.masked(mask, held.value, fill);
        LocalValue { value, ..held }
    }
    /// Whether some shard of `held` has padding along one of `dims`.
    pub(super) fn is_padded(&self, held: LocalValue, dims: &[usize]) -> bool {
        let Some(shape) = self.shape_of(held.global) else { return false };
        let placement = &self.placements[held.placement];
        dims.iter().any(|&dim| placement.is_padded(dim, shape[dim]))
    }
    /// The dims of operand `index` along which the results of the op are partial.
    pub(super) fn dims_of_terms(
        work: &OpWithRule,
        strategy: &Strategy,
        index: usize,
    ) -> Vec<usize> {
        let is_of_terms = |factor: &FactorId| {
            work.abilities[factor.index()] == Ability::Terms
                && total_size(&strategy.factors[factor.index()]) > 1
        };
        let Some(mapping) = work.rule.operands.get(index) else { return Vec::new() };
        let dims = mapping.dims.iter().enumerate();
        dims.filter(|(_, dim)| dim.iter().any(is_of_terms)).map(|(at, _)| at).collect()
    }
    /// Sets padding to zero where it would be summed; in both operands of a dot, since 0 * NaN is NaN.
    pub(super) fn mask_terms(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        operands: &mut [LocalValue],
    ) {
        for (index, operand) in operands.iter_mut().enumerate() {
            let dims = Self::dims_of_terms(work, strategy, index);
            let held = *operand;
            if held.is_zero_padded || !self.is_padded(held, &dims) {
                continue;
            }
            let zero = super::super::emit::zero(self.emit.element(held.global));
            let zero = self.emit.scalar(zero, held.global);
            *operand = LocalValue { is_zero_padded: true, ..self.filled(held, &dims, zero) };
        }
    }
}
