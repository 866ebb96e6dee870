//! Reverses whose result is sharded over the devices in reverse order, as `sdy-resolve-permutation-factors` leaves them.

use super::super::Lowering;
use crate::index::OpId;
use crate::spmd::digits::Digit;

impl Lowering<'_, '_, '_> {
    /// Keeps `op`, a reverse, on the shards of its operand, if each device then holds the mirrored shard of the result.
    pub(super) fn reverse_as_shardy(&mut self, op: OpId) -> Option<()> {
        let program = &*self.emit.program;
        let (operand, result) = (program.operand(op, 0), program.result(op, 0));
        let dims = self.ints(op, "dimensions");
        let (held, to) = (self.held(operand), self.target(result));
        if held.placement != self.target(operand) {
            return None;
        }
        let shape = self.global_shape(operand)?;
        let (from, target) = (&self.placements[held.placement], &self.placements[to]);
        let is_even = |dim: usize| !from.is_padded(dim, shape[dim]) && shape[dim] != 0;
        let have_terms = !from.partial.is_empty() || !target.partial.is_empty();
        if from.dims != target.dims || have_terms || !(0..shape.len()).all(is_even) {
            return None;
        }
        let (order, wanted) = (from.order, target.order);
        let mut reversed: Vec<Digit> = Vec::new();
        for dim in dims {
            reversed.extend(from.dims.get(usize::try_from(dim).ok()?)?);
        }
        let mesh = self.reversed_mesh(order, &reversed).filter(|_| !reversed.is_empty())?;
        if self.emit.devices.known_order(&mesh) != Some(wanted) {
            return None;
        }
        self.set_operands(op, [held.value]);
        self.keep(result, to);
        Some(())
    }
}
