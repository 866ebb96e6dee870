//! A request to a compiler: which one, and for which memory space.

use crate::compilers::target::Compiler;
use crate::compilers::xla_cpu::kernels::graph::Graph;
use crate::compilers::xla_gpu::priority_fusion::Fused;
use crate::work::spaces::Space;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// What a compiler knows of a chip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChipFacts {
    /// The size of the memory before the main one: the cache of a GPU or a host, the vector memory of a TPU's core.
    pub fast_bytes: u128,
    /// Whether collectives read and write that memory; if not, what they do is in the main memory.
    pub fast_collectives: bool,
    /// The size of the main memory, if kernels are ordered to hide the latency of collectives (`LatencyHidingScheduler`).
    pub overlapped_bytes: Option<u128>,
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
    /// The kernels of the entry function for a compiler, in a memory space, until they are taken.
    entry: Arc<Mutex<Option<(Place, EntryKernels)>>>,
}

/// A compiler, and the memory space that it simulates.
type Place = (Compiler, Option<Space>);

/// The kernel graph of the entry block, and the donations: pairs of the index of a result and an item.
pub type EntryKernels = (Graph, Vec<(usize, u32)>);

impl Known {
    /// Keeps `kernels`, which are those at `place`.
    pub fn keep_entry(&self, place: Place, kernels: EntryKernels) {
        *self.entry.lock().unwrap_or_else(PoisonError::into_inner) = Some((place, kernels));
    }
    /// Takes the kernels at `place`, if they were kept.
    pub fn take_entry(&self, place: Place) -> Option<EntryKernels> {
        let mut kept = self.entry.lock().unwrap_or_else(PoisonError::into_inner);
        kept.take_if(|(at, _)| *at == place).map(|(_, kernels)| kernels)
    }
}
