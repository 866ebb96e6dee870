//! Results that are what their op was given: those of loops that carry them in another layout, and those of barriers.

use crate::compilers::xla_cpu::kernels::builder::Builder;
use crate::compilers::xla_cpu::kernels::graph::{Read, NONE};
use crate::index::{OpId, ValueId};
use crate::ir::OpKind;

impl Builder<'_, '_, '_> {
    /// The item in which the loop `op` carries what it has at `index`, before it runs.
    pub(in crate::compilers::xla_cpu) fn carried(&self, op: OpId, index: usize) -> u32 {
        let is_copied = self.layouts.carried.copied(op, index).is_some();
        let copy = self.operand_copies.get(index).copied();
        let copy = copy.filter(|&copy| is_copied && copy != NONE);
        let operand = self.program.operands(op).nth(index);
        copy.or_else(|| operand.map(|value| self.item(value))).unwrap_or(NONE)
    }
    /// Makes `value`, result `index` of the loop `op` that `kernel` runs, a copy of what the loop carried in another layout.
    pub(in crate::compilers::xla_cpu) fn restore(
        &mut self,
        op: OpId,
        (index, value): (usize, ValueId),
        kernel: u32,
    ) {
        let bytes = self.bytes(value);
        let over = self.carried(op, index);
        let carried = self.make(value, bytes, kernel);
        self.graph.items[carried as usize].over = over;
        let copy = self.kernel(op, false, false);
        self.reads.push((copy, Read::whole(carried)));
        self.make(value, bytes, copy);
    }
    /// The item that result `index` of `op` is another name of, if that is a barrier: it computes nothing. [`NONE`] of others.
    pub(in crate::compilers::xla_cpu) fn behind_barrier(&self, op: OpId, index: usize) -> u32 {
        let is_barrier = self.program.kind(op) == OpKind::OptimizationBarrier
            && self.layouts.compiler().aliases_barriers();
        let operand = self.program.operands(op).nth(index).filter(|_| is_barrier);
        operand.map_or(NONE, |value| self.item(value))
    }
}
