//! The kernel graph of a block: for each kernel the buffers that it reads and writes.

use crate::compilers::xla_cpu::ragged_rows::Rows;
use crate::index::{OpId, ValueId};
use std::cell::OnceCell;

/// No item, or no kernel.
pub const NONE: u32 = u32::MAX;

/// Something in memory: an argument, a result, a copy, or another name of one of these.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// The value that it has.
    pub value: ValueId,
    /// Its bytes; 0 if it is another name.
    pub bytes: u128,
    /// The kernel that makes it; [`NONE`] for an argument.
    pub made_by: u32,
    /// The item that it is another name of.
    pub name_of: u32,
    /// The item in whose memory it may be, besides those that are read element by element.
    pub over: u32,
}

/// An item that a kernel reads.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// The item.
    pub item: u32,
    /// Whether each element is read only for the element of the result at its place.
    pub is_elementwise: bool,
    /// The most bytes of it that are read, where a slice or a gather is between: [`u64::MAX`] if all may be.
    pub bytes: u64,
}

impl Read {
    /// A read of all of `item`, in any order.
    pub const fn whole(item: u32) -> Self {
        Self { item, is_elementwise: false, bytes: u64::MAX }
    }
}

/// A kernel: ops that run as one.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Its op; of a copy the op that it is made for.
    pub op: OpId,
    /// Whether it may write its result in place, over an operand that it reads element by element.
    pub is_elementwise: bool,
    /// Whether it is the op itself, not a copy or another name.
    pub is_op: bool,
    /// Whether its result is its operand under another name, as that of a bitcast.
    pub is_name: bool,
    /// Its place among the kernels before copies were inserted; [`NONE`] for such a copy.
    pub built: u32,
}

impl Kernel {
    /// A copy that is made for `op`.
    pub const fn copy_for(op: OpId) -> Self {
        Self { op, is_elementwise: false, is_op: false, is_name: false, built: NONE }
    }
}

/// The kernels of a block.
#[derive(Debug, Default)]
pub struct Graph {
    /// In the order of the program.
    pub kernels: Vec<Kernel>,
    /// Each op that is not computed in others, with its kernel.
    pub ops: Vec<(OpId, u32)>,
    /// Arguments first.
    pub items: Vec<Item>,
    /// The items that the block returns.
    pub returned: Vec<u32>,
    reads: Rows<Read>,
    /// The values that each kernel writes, computed at the first request.
    makes: OnceCell<Rows<u32>>,
    /// The order in which the kernels run, computed at the first request; see [`crate::compilers::xla_cpu::breadth_first_scheduler`].
    pub order: OnceCell<Order>,
    /// For each kernel, as bits, which of a few hub kernels need it and which it needs, computed at the first request; see [`crate::compilers::xla_cpu::copy_insertion::reads_before_writes`].
    pub hubs: OnceCell<(Vec<u128>, Vec<u128>)>,
}

impl Graph {
    /// The graph of `kernels`; `reads` are pairs of a kernel and a value that it reads.
    pub fn new(
        kernels: Vec<Kernel>,
        ops: Vec<(OpId, u32)>,
        items: Vec<Item>,
        returned: Vec<u32>,
        reads: &[(u32, Read)],
    ) -> Self {
        let reads = Rows::of(kernels.len(), reads);
        Self::with_rows(kernels, ops, items, returned, reads)
    }
    /// The graph of `kernels`, with the values that each of them reads.
    pub fn with_rows(
        kernels: Vec<Kernel>,
        ops: Vec<(OpId, u32)>,
        items: Vec<Item>,
        returned: Vec<u32>,
        reads: Rows<Read>,
    ) -> Self {
        let (makes, order, hubs) = Default::default();
        Self { kernels, ops, items, returned, reads, makes, order, hubs }
    }
    /// How many reads all kernels have.
    pub fn num_reads(&self) -> usize {
        self.reads.total()
    }
    /// The values that kernel `at` reads.
    #[inline]
    pub fn reads(&self, at: u32) -> &[Read] {
        self.reads.row(at)
    }
    /// The values that kernel `at` writes.
    #[inline]
    pub fn makes(&self, at: u32) -> &[u32] {
        self.all_makes().row(at)
    }
    /// The values that the kernels write.
    pub fn all_makes(&self) -> &Rows<u32> {
        self.makes.get_or_init(|| {
            let mut made = Vec::with_capacity(self.items.len());
            for (item, at) in self.items.iter().zip(0..) {
                if item.made_by != NONE {
                    made.push((item.made_by, at));
                }
            }
            Rows::of(self.kernels.len(), &made)
        })
    }
    /// Calls `visit` with the kernels that make what kernel `at` reads, one that makes several things once for each.
    #[inline]
    pub fn for_each_need(&self, at: u32, mut visit: impl FnMut(u32)) {
        for read in self.reads.row(at) {
            let by = self.items[read.item as usize].made_by;
            if by != NONE {
                visit(by);
            }
        }
    }
    /// For each item whether it is updated in place, or made so.
    pub fn updated_in_place(&self) -> Vec<bool> {
        let mut found = vec![false; self.items.len()];
        for (item, at) in self.items.iter().zip(0..).filter(|(item, _)| item.over != NONE) {
            found[self.stored_as(item.over) as usize] = true;
            found[at] = true;
        }
        found
    }
    /// The item whose memory `item` is in.
    #[inline]
    pub fn stored_as(&self, item: u32) -> u32 {
        match self.items[item as usize].name_of {
            NONE => item,
            other => other,
        }
    }
}

/// The order in which kernels run.
#[derive(Debug)]
pub struct Order {
    /// The kernels, each as soon as all that it needs have run.
    pub kernels: Vec<u32>,
    /// For each kernel the number of kernels on the longest path that leads to it.
    pub depths: Vec<u32>,
}
