//! The kernels of collectives that run as one.
//!
//! On GPUs all-reduces that are combined sum one array: what they sum is put side by side, and each result is a slice. Source:
//! XLA's `AllReduceContiguous`.

use crate::compilers::xla_cpu::kernels::builder::Builder;
use crate::compilers::xla_cpu::kernels::graph::{Read, NONE};
use crate::index::{Id, OpId, ValueId};
use rustc_hash::FxHashMap;

/// The kernels of a set.
#[derive(Clone, Copy)]
pub(in crate::compilers::xla_cpu) struct SetKernels {
    /// What reads the operands: the collective, or what puts them side by side.
    first: u32,
    /// What is after the collective; or the collective itself, where operands are put side by side.
    last: u32,
    /// The items of what is side by side, before and after.
    flat: [u32; 2],
}

impl Default for SetKernels {
    fn default() -> Self {
        Self { first: NONE, last: NONE, flat: [NONE; 2] }
    }
}

/// How many collectives each of `sets`, given by op, has.
pub(in crate::compilers::xla_cpu) fn sizes_of(sets: &FxHashMap<OpId, u32>) -> FxHashMap<u32, u32> {
    let mut sizes = FxHashMap::default();
    let all: Vec<u32> = sets.values().copied().collect();
    for set in all {
        *sizes.entry(set).or_default() += 1;
    }
    sizes
}

impl Builder<'_, '_, '_> {
    /// Whether `op`, of a set of so many, is an all-reduce whose operands are put side by side.
    pub(in crate::compilers::xla_cpu) fn is_contiguous(&self, op: OpId, size: u32) -> bool {
        size > 1
            && self.layouts.compiler().fuses_by_priority()
            && self.program.op_name(op) == "stablehlo.all_reduce"
            && self.program.num_results(op) == 1
    }
    /// The kernels of a set of all-reduces, of which `op` is the first, without any of them yet.
    pub(in crate::compilers::xla_cpu) fn flat_set(&mut self, op: OpId) -> SetKernels {
        let value = self.program.result(op, 0);
        let first = self.kernel(op, false, false);
        let last = self.kernel(op, false, true);
        let flat = [first, last].map(|kernel| self.make_beside(value, 0, kernel));
        self.reads.push((last, Read::whole(flat[0])));
        SetKernels { first, last, flat }
    }
    /// Adds `op` to a set of all-reduces that sum one array.
    pub(in crate::compilers::xla_cpu) fn add_to_flat_set(
        &mut self,
        op: OpId,
        set: &mut SetKernels,
    ) {
        self.graph.ops.push((op, set.last));
        self.note_joined(set.last, op);
        self.read_operands(set.first, op, &[]);
        let value = self.program.result(op, 0);
        let bytes = self.bytes(value);
        for item in set.flat {
            let whole = &mut self.graph.items[item as usize].bytes;
            *whole = whole.saturating_add(bytes);
        }
        let slice = self.kernel(op, false, false);
        let part = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.reads.push((slice, Read { bytes: part, ..Read::whole(set.flat[1]) }));
        self.make(value, bytes, slice);
    }
    /// Notes that `kernel` runs `op`, too.
    fn note_joined(&mut self, kernel: u32, op: OpId) {
        let is_other = self.graph.kernels[kernel as usize].op != op;
        if let Some(fused) = self.fused.as_mut().filter(|_| is_other) {
            fused.push((kernel, op));
        }
    }
    /// Makes something that is not `value` itself, but is there on its account.
    fn make_beside(&mut self, value: ValueId, bytes: u128, kernel: u32) -> u32 {
        let own = self.items[value.index()];
        let made = self.make(value, bytes, kernel);
        self.items[value.index()] = own;
        made
    }
    /// Adds `op` to a set of collectives, whose results are there as soon as all are.
    pub(in crate::compilers::xla_cpu) fn add_to_set(&mut self, op: OpId, set: &mut SetKernels) {
        if set.first == NONE {
            set.first = self.kernel(op, false, true);
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
        self.reads.push((set.last, Read::whole(item)));
        self.name(value, item, set.last);
        if self.storage.has_tail(value) {
            self.add_tail(op, value, self.items[value.index()]);
        }
    }
}
