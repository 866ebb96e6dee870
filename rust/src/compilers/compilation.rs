//! A request to a compiler: which one, and for which memory space.

use crate::compilers::target::Compiler;
use crate::compilers::xla_gpu::priority_fusion::Fused;
use crate::work::spaces::Space;
use std::sync::OnceLock;

/// The memory before the main one: the cache of a GPU or a host, the vector memory of a TPU's core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastMemory {
    /// Its size.
    pub bytes: u128,
    /// Whether collectives read and write it; if not, what they do is in the main memory.
    pub has_collectives: bool,
}

/// What is compiled, and what is already known of it.
#[derive(Clone, Copy, Debug)]
pub struct Target<'f> {
    /// The compiler.
    pub compiler: Compiler,
    /// The fast memory of the chip.
    pub fast: FastMemory,
    /// The memory space to simulate; `None` on CPUs, which have only one.
    pub space: Option<Space>,
    /// The fusion decisions of `compiler` for this program, if they were computed before.
    pub fused: &'f OnceLock<Fused>,
}
