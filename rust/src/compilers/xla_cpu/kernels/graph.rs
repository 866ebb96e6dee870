//! The kernel graph of a block: for each kernel the buffers that it reads and writes.

use crate::compilers::xla_cpu::ragged_rows::Rows;
use crate::index::{OpId, ValueId};
use std::cell::OnceCell;

/// No item, or no kernel.
pub const NONE: u32 = u32::MAX;

/// A buffer, or an alias of one: an argument, a result, or a copy.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// The value that it holds.
    pub value: ValueId,
    /// Its bytes; 0 for an alias.
    pub bytes: u128,
    /// The kernel that writes it; [`NONE`] for an argument.
    pub made_by: u32,
    /// The item that it is an alias of.
    pub name_of: u32,
    /// The operand whose buffer it may overwrite, besides operands that are read elementwise.
    pub over: u32,
}

/// A read of an item by a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// The item.
    pub item: u32,
    /// Whether it is elementwise: an element is read only for the element of the result at the same index.
    pub is_elementwise: bool,
    /// The dims in which it is read, if they are not its own: a hash of them, or 0.
    pub view: u16,
    /// An upper bound of the bytes that are read, through slices and gathers; [`u64::MAX`] for all of them.
    pub bytes: u64,
}

impl Read {
    /// A read of all of `item`, in any order.
    pub const fn whole(item: u32) -> Self {
        Self { item, is_elementwise: false, view: 0, bytes: u64::MAX }
    }
}

/// A read of an item by an op in a kernel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    /// The kernel.
    pub kernel: u32,
    /// The item.
    pub item: u32,
    /// The op, and the index of the operand; [`OpId::NONE`] for a copy.
    pub user: (OpId, u32),
}

/// A kernel: an op with the producers that are fused into it.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Its op; for a copy the op that reads the copy.
    pub op: OpId,
    /// Whether it may write its result over an operand that it reads elementwise.
    pub is_elementwise: bool,
    /// Whether it computes its op, and is not a copy or an alias.
    pub is_op: bool,
    /// Whether its result is an alias of its operand, as that of a bitcast.
    pub is_name: bool,
    /// Its index before copies were inserted; [`NONE`] for an inserted copy.
    pub built: u32,
    /// Microseconds that it takes by the model from which XLA for GPUs decides what to fuse; 0 if that has none.
    pub micros: f32,
}

impl Kernel {
    /// A copy of an operand of `op`.
    pub const fn copy_for(op: OpId) -> Self {
        Self { op, is_elementwise: false, is_op: false, is_name: false, built: NONE, micros: 0.0 }
    }
}

/// The kernels of a block.
#[derive(Debug, Default)]
pub struct Graph {
    /// In program order.
    pub kernels: Vec<Kernel>,
    /// Each op that is not fused into others, with its kernel.
    pub ops: Vec<(OpId, u32)>,
    /// All items, arguments first.
    pub items: Vec<Item>,
    /// The items that the block returns.
    pub returned: Vec<u32>,
    reads: Rows<Read>,
    /// The items that each kernel writes, computed at the first request.
    makes: OnceCell<Rows<u32>>,
    /// The order in which the kernels run, computed at the first request; see [`crate::compilers::xla_cpu::breadth_first_scheduler`].
    pub order: OnceCell<Order>,
    /// For each kernel two bit sets of a few hub kernels: those that depend on it, and those that it depends on. Computed at the
    /// first request; see [`crate::compilers::xla_cpu::copy_insertion::reads_before_writes`].
    pub hubs: OnceCell<(Vec<u128>, Vec<u128>)>,
}

impl Graph {
    /// The graph of `kernels`; `reads` are pairs of a kernel and an item that it reads.
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
    /// The graph of `kernels`, with the items that each of them reads.
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
    /// The number of reads of all kernels.
    pub fn num_reads(&self) -> usize {
        self.reads.total()
    }
    /// The items that kernel `at` reads.
    #[inline]
    pub fn reads(&self, at: u32) -> &[Read] {
        self.reads.row(at)
    }
    /// The items that kernel `at` writes.
    #[inline]
    pub fn makes(&self, at: u32) -> &[u32] {
        self.all_makes().row(at)
    }
    /// Whether all results of kernel `at` are aliases of its operands.
    pub fn makes_names(&self, at: u32) -> bool {
        let makes = self.makes(at);
        !makes.is_empty() && makes.iter().all(|&item| self.items[item as usize].name_of != NONE)
    }
    /// Whether kernel `at` may write a result over an operand.
    pub fn overwrites(&self, at: u32) -> bool {
        let is_over = |&item: &u32| self.items[item as usize].over != NONE;
        self.kernels[at as usize].is_elementwise || self.makes(at).iter().any(is_over)
    }
    /// The items that each kernel writes.
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
    /// Calls `visit` with the producers of the items that kernel `at` reads, once for each item.
    #[inline]
    pub fn for_each_need(&self, at: u32, mut visit: impl FnMut(u32)) {
        for read in self.reads.row(at) {
            let by = self.items[read.item as usize].made_by;
            if by != NONE {
                visit(by);
            }
        }
    }
    /// For each item whether it is the operand or the result of an in-place update.
    pub fn updated_in_place(&self) -> Vec<bool> {
        let mut found = vec![false; self.items.len()];
        for (item, at) in self.items.iter().zip(0..).filter(|(item, _)| item.over != NONE) {
            found[self.stored_as(item.over) as usize] = true;
            found[at] = true;
        }
        found
    }
    /// The item whose buffer holds `item`: itself, unless it is an alias.
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
    /// The kernels, each as soon as all of its producers have run.
    pub kernels: Vec<u32>,
    /// For each kernel the number of kernels on the longest dependence path to it.
    pub depths: Vec<u32>,
}
