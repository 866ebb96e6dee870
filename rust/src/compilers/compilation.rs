//! A request to a compiler: which one, and for which memory space.

use crate::compilers::target::Compiler;
use crate::compilers::xla_gpu::priority_fusion::Fused;
use crate::work::spaces::Space;
use std::sync::OnceLock;

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
    /// The fusion decisions of `compiler` for this program, if they were computed before.
    pub fused: &'f OnceLock<Fused>,
}
