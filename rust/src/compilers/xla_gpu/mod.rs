//! What XLA's compiler for GPUs does that the one for hosts does not.
//!
//! Each file is named after the pass of XLA that it stands for.

pub mod priority_fusion;
pub mod splitk_rewriter;
