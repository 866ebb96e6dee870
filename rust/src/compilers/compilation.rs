//! A request to a compiler: which one, and for which memory space; and what it found out of the program before.

use crate::compilers::target::Compiler;
use crate::compilers::xla_cpu::fusion::materialization::Storage;
use crate::compilers::xla_cpu::kernels::graph::Graph;
use crate::compilers::xla_cpu::layout_assignment::operand_copies::Layouts;
use crate::compilers::xla_gpu::priority_fusion::Fused;
use crate::work::spaces::Space;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// What a compiler knows of a chip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChipFacts {
    /// The size of the memory before the main one: the cache of a GPU or a host, the vector memory of a TPU's core.
    pub fast_bytes: u128,
    /// Whether all kernels write that memory; if not, only fusions without products do.
    pub fast_results: bool,
    /// The size of the main memory, if kernels are ordered to hide the latency of collectives (`LatencyHidingScheduler`).
    pub overlapped_bytes: Option<u128>,
    /// The most FLOPs of products in `bf16`, in a second.
    pub flops_per_second: u64,
    /// The most bytes of the main memory that are read or written, in a second.
    pub bytes_per_second: u64,
    /// The most bytes that a link to another chip sends, in a second.
    pub link_bytes_per_second: u64,
    /// The most bytes of combined collectives, if fewer than the compiler's own threshold.
    pub combined_bytes: Option<u128>,
    /// The elements that a matrix unit sums over at a time.
    pub lanes: i64,
}

/// What is compiled, and what is already known of it.
#[derive(Clone, Copy, Debug)]
pub struct Target<'f> {
    /// The compiler.
    pub compiler: Compiler,
    /// What it knows of the chip.
    pub facts: ChipFacts,
    /// The memory space to simulate; `None` on CPUs, which have only one.
    pub space: Option<Space>,
    /// What was found out of the program before.
    pub known: &'f Known,
}

/// What was found out of a program, for what else is asked of it.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The fusion decisions, once they were computed.
    pub fused: OnceLock<Fused>,
    /// What was found out for a compiler and a memory space, until it is taken.
    kept: Arc<Mutex<Option<(Place, Kept)>>>,
}

/// A compiler, and the memory space that it simulates.
type Place = (Compiler, Option<Space>);

/// The kernel graph of the entry block, and the donations: pairs of the index of a result and an item.
pub type EntryKernels = (Graph, Vec<(usize, u32)>);

/// How a compiler stores the values of a program, and the kernels of the entry function.
pub struct Kept {
    /// The layouts of operands.
    pub layouts: Layouts,
    /// Which values are written.
    pub storage: Storage,
    /// The kernels of the entry function.
    pub entry: EntryKernels,
}

impl fmt::Debug for Kept {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Kept").field("entry", &self.entry).finish_non_exhaustive()
    }
}

impl Known {
    /// Keeps what was found out for `place`.
    pub fn keep(&self, place: Place, kept: Kept) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some((place, kept));
    }
    /// Takes what was found out for `place`.
    pub fn take(&self, place: Place) -> Option<Kept> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.take_if(|(at, _)| *at == place).map(|(_, kept)| kept)
    }
}
