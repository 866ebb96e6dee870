//! What a compiler is asked to compile.

use crate::compilers::target::Compiler;
use crate::compilers::xla_gpu::priority_fusion::Fused;
use crate::work::spaces::Space;
use std::sync::OnceLock;

/// What is compiled, and what of it is known already.
#[derive(Clone, Copy, Debug)]
pub struct Target<'f> {
    /// The compiler.
    pub compiler: Compiler,
    /// Whose memory is looked at; hosts themselves have one: [`None`].
    pub space: Option<Space>,
    /// What `compiler` fuses of the program, if it was asked for before.
    pub fused: &'f OnceLock<Fused>,
}
