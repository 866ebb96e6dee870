//! Fusion: which values are materialized in memory, and which are computed in the kernels of their consumers.
//!
//! Source: XLA's `InstructionFusion`, `CpuInstructionFusion` and `LibraryRewriter`.

pub mod duplicated_producers;
pub mod instruction_fusion;
pub mod library_reductions;
pub mod library_rewriter;
pub mod materialization;
pub mod op_facts;
pub mod op_names;
mod op_regions;
