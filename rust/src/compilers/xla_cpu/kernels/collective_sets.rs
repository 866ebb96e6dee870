//! The kernels of combined collectives.
//!
//! On GPUs combined all-reduces run on one array: their operands are concatenated, and each result is a slice of the sum. Source:
//! XLA's `AllReduceContiguous`.

use crate::compilers::xla_cpu::kernels::builder::Builder;
use crate::compilers::xla_cpu::kernels::graph::{Read, NONE};
use crate::index::{Id, OpId, ValueId};
use rustc_hash::FxHashMap;

/// The kernels of a set of combined collectives.
#[derive(Clone, Copy)]
pub(in crate::compilers::xla_cpu) struct SetKernels {
    /// The kernel that reads the operands: the collective, or the concatenation.
    first: u32,
    /// The kernel that all results depend on: behind the collective; or the collective itself, where operands are concatenated.
    last: u32,
    /// The items of the concatenated operands, and of their sum.
    flat: [u32; 2],
}

impl Default for SetKernels {
    fn default() -> Self {
        Self { first: NONE, last: NONE, flat: [NONE; 2] }
    }
}

/// The number of collectives in each of `sets`, which are given by op.
pub(in crate::compilers::xla_cpu) fn sizes_of(sets: &FxHashMap<OpId, u32>) -> FxHashMap<u32, u32> {
    let mut sizes = FxHashMap::default();
    let all: Vec<u32> = sets.values().copied().collect();
    for set in all {
        *sizes.entry(set).or_default() += 1;
    }
    sizes
}

impl Builder<'_, '_, '_> {
    /// Whether `op`, in a set of `size` collectives, is an all-reduce whose operands are concatenated.
    pub(in crate::compilers::xla_cpu) fn is_contiguous(&self, op: OpId, size: u32) -> bool {
        size > 1
            && self.layouts.compiler().fuses_by_priority()
            && self.program.op_name(op) == "stablehlo.all_reduce"
            && self.program.num_results(op) == 1
    }
    /// Whether `op` is an all-reduce that may write its results over its operands.
    pub(in crate::compilers::xla_cpu) fn is_in_place(&self, op: OpId) -> bool {
        self.layouts.compiler().reduces_in_place()
            && self.program.op_name(op) == "stablehlo.all_reduce"
    }
    /// Whether `op` is an all-reduce that writes its results over its operands, whatever else is in their memory.
    pub(in crate::compilers::xla_cpu) fn is_over(&self, op: OpId) -> bool {
        self.layouts.compiler().reduces_over_operands() && self.is_in_place(op)
    }
    /// The kernels of a set of concatenated all-reduces, of which `op` is the first; no op is added yet.
    pub(in crate::compilers::xla_cpu) fn flat_set(&mut self, op: OpId) -> SetKernels {
        let value = self.program.result(op, 0);
        let first = self.kernel(op, false, false);
        let is_elementwise = self.is_in_place(op);
        let last = self.kernel(op, is_elementwise && !self.is_over(op), true);
        let flat = [first, last].map(|kernel| self.make_beside(value, 0, kernel));
        if self.is_over(op) {
            self.graph.items[flat[1] as usize].over = flat[0];
        }
        self.reads.push((last, Read { is_elementwise, ..Read::whole(flat[0]) }));
        SetKernels { first, last, flat }
    }
    /// Adds `op` to a set of concatenated all-reduces.
    pub(in crate::compilers::xla_cpu) fn add_to_flat_set(
        &mut self,
        op: OpId,
        set: &mut SetKernels,
    ) {
        self.graph.ops.push((op, set.last));
        self.note_joined(set.last, op);
        let first = self.reads.len();
        self.read_operands(set.first, op, &[]);
        self.reads[first..].iter_mut().for_each(|(_, read)| read.view |= 1);
        let value = self.program.result(op, 0);
        let bytes = self.bytes(value);
        let counted = self.in_space(value, bytes);
        for item in set.flat {
            let whole = &mut self.graph.items[item as usize].bytes;
            *whole = whole.saturating_add(counted);
        }
        let slice = self.kernel(op, false, false);
        let part = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.reads.push((slice, Read { bytes: part, ..Read::whole(set.flat[1]) }));
        let part = self.make(value, bytes, slice);
        self.flat.insert(part);
    }
    /// Records that `kernel` computes `op`, too.
    fn note_joined(&mut self, kernel: u32, op: OpId) {
        let is_other = self.graph.kernels[kernel as usize].op != op;
        if let Some(fused) = self.fused.as_mut().filter(|_| is_other) {
            fused.push((kernel, op));
        }
    }
    /// Adds an item that is attributed to `value` but does not hold it.
    pub(in crate::compilers::xla_cpu) fn make_beside(
        &mut self,
        value: ValueId,
        bytes: u128,
        kernel: u32,
    ) -> u32 {
        let own = self.items[value.index()];
        let made = self.make(value, bytes, kernel);
        self.items[value.index()] = own;
        made
    }
    /// Adds `op` to a set of collectives, whose results are all available when the last one is.
    pub(in crate::compilers::xla_cpu) fn add_to_set(&mut self, op: OpId, set: &mut SetKernels) {
        if set.first == NONE {
            set.first = self.kernel(op, self.is_in_place(op) && !self.is_over(op), true);
            set.last = self.kernel(op, false, false);
        }
        let kernel = set.first;
        self.graph.ops.push((op, kernel));
        self.note_joined(kernel, op);
        let copies = self.copies_for(op);
        self.read_operands(kernel, op, &copies);
        self.operand_copies = copies;
        let value = self.program.result(op, 0);
        let whole = self.whole_bytes(op);
        let item = self.make(value, whole, kernel);
        if self.is_over(op) {
            self.graph.items[item as usize].over = self.item(self.program.operand(op, 0));
        }
        self.reads.push((set.last, Read::whole(item)));
        self.name(value, item, set.last);
        if self.storage.has_tail(value) {
            self.add_tail(op, value, self.items[value.index()]);
        }
    }
}
