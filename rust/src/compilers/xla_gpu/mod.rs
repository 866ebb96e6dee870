//! The passes of XLA:GPU that XLA:CPU does not have.
//!
//! Each file is named after the pass that it models.

pub mod added_products;
pub mod dot_merger;
pub mod latency_estimator;
pub mod merged_dots;
pub mod priority_fusion;
pub mod splitk_rewriter;
pub mod topk_decomposer;
