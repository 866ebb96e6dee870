//! A request to a compiler: which one, and for which memory space.

use crate::compilers::target::Compiler;
use crate::compilers::xla_gpu::priority_fusion::Fused;
use crate::work::spaces::Space;
use std::sync::OnceLock;

/// What is compiled, and what is already known of it.
#[derive(Clone, Copy, Debug)]
pub struct Target<'f> {
    /// The compiler.
    pub compiler: Compiler,
    /// The size of the chip's cache, or of the vector memory of a TPU's core, in bytes.
    pub cache_bytes: u128,
    /// The memory space to simulate; `None` on CPUs, which have only one.
    pub space: Option<Space>,
    /// The fusion decisions of `compiler` for this program, if they were computed before.
    pub fused: &'f OnceLock<Fused>,
}
