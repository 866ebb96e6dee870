//! XLA's passes before fusion, as far as they change which values are in memory or what is computed.
//!
//! Each file is named after the pass that it models. [`simplification`] returns a rewritten copy of the program; the others mostly
//! say what the pass would find.

pub mod algebraic_simplifier;
pub mod collective_combiner;
pub mod combined_from_last;
pub mod combined_sets;
pub mod common_subexpressions;
pub mod conditional_simplifier;
pub mod dot_decomposer;
pub mod dot_strength_reduction;
pub mod float_normalization;
pub mod hoisted_conversions;
pub mod loop_invariant_code_motion;
pub mod scatter_sums;
pub mod select_and_scatter_expander;
pub mod simplification;
pub mod tree_reduction_rewriter;
