//! Results that are taken from something larger that is written first: sums of parts, pairs of groups, the first step of a reduction.

use crate::compilers::xla_cpu::kernels::builder::Builder;
use crate::compilers::xla_cpu::kernels::graph::Read;
use crate::compilers::xla_cpu::passes::collective_combiner::is_expanded_scatter;
use crate::index::{OpId, ValueId};

impl Builder<'_, '_, '_> {
    /// The bytes of what `op` writes before its result is taken from that.
    pub(in crate::compilers::xla_cpu) fn whole_bytes(&mut self, op: OpId) -> u128 {
        let program = self.program;
        let value = program.result(op, 0);
        let is_wide = self.layouts.widens(program, self.works, op, value);
        let parts = self.layouts.split_k(program, self.works, op);
        if parts > 1 {
            // Each part is a sum of 32 bits.
            return self.works.tensors.of(value).elements.saturating_mul(4).saturating_mul(parts);
        }
        // Hosts reduce the whole, of which each device keeps a part.
        let is_expanded = is_expanded_scatter(program, self.layouts.compiler(), op);
        let whole = if is_expanded { program.operand(op, 0) } else { value };
        self.bytes(whole).saturating_mul(if is_wide { 2 } else { 1 })
    }
    /// Makes `value`, the result of a convolution with groups of images: `kernel` computes all pairs of groups, those that are
    /// not on the diagonal are masked, and what is left is added up.
    pub(in crate::compilers::xla_cpu) fn add_pairs(
        &mut self,
        op: OpId,
        value: ValueId,
        mut kernel: u32,
    ) {
        let groups = self.layouts.image_groups(self.program, op);
        let bytes = self.whole_bytes(op).saturating_mul(groups);
        for _ in 0..2 {
            let pairs = self.make(value, bytes, kernel);
            kernel = self.kernel(op, false, false);
            self.reads.push((kernel, Read::whole(pairs)));
        }
        let bytes = self.bytes(value);
        self.make(value, bytes, kernel);
    }
    /// Makes `value`, the result of a reduction in two steps, of the first of which `kernel` leaves so many elements.
    pub(in crate::compilers::xla_cpu) fn add_second_step(
        &mut self,
        op: OpId,
        (value, left): (ValueId, u128),
        kernel: u32,
    ) {
        let tensor = self.works.tensors.of(value);
        let (bytes, elements) = (tensor.bytes, tensor.elements.max(1));
        let first = self.make(value, (bytes / elements).saturating_mul(left), kernel);
        let kernel = self.kernel(op, false, false);
        self.reads.push((kernel, Read::whole(first)));
        self.make(value, bytes, kernel);
    }
    /// Takes `value`, the result of `op`, from the item `whole`, unless what reads it does.
    pub(in crate::compilers::xla_cpu) fn add_tail(&mut self, op: OpId, value: ValueId, whole: u32) {
        if self.storage.is_written(value) {
            let kernel = self.kernel(op, false, false);
            self.reads.push((kernel, Read::whole(whole)));
            let bytes = self.bytes(value);
            self.make(value, bytes, kernel);
        }
    }
}
