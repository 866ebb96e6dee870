//! Computes the sharding rules of ops.
//!
//! [`table`] maps ops to *families*; a family is a function from a [`SignatureView`] (name, shapes,
//! attributes) to an [`OpShardingRule`], written with a [`RuleBuilder`]. A [`Registry`] calls the
//! family once for each signature of a program, unless users have registered their own rule for the
//! op: a function, or a string in the [`notation`] `"i k, k j -> i j"`.
//!
//! Source: Shardy's op sharding rule registry.
//!
//! [`OpShardingRule`]: crate::op_sharding_rule::OpShardingRule
//! [`RuleBuilder`]: builder::RuleBuilder
//! [`SignatureView`]: view::SignatureView
//! [`Registry`]: registry::Registry

pub mod answers;
pub mod builder;
pub mod cache;
mod chlo;
mod collectives;
mod contract;
mod conv;
mod custom_call;
mod gather_scatter;
mod instantiate;
mod linalg;
pub mod notation;
pub mod notation_text;
mod notation_tuples;
mod pointwise;
mod ragged_dot;
mod reduce;
pub mod registry;
#[cfg(test)]
mod registry_tests;
mod reshape;
mod slices;
mod stored_shardings;
mod surroundings;
pub mod table;
#[cfg(test)]
mod tests;
pub mod user_edges;
pub mod user_rule;
pub mod view;

/// The families of ops that have rules only if CHLO is legalized, see
/// [`Registry::legalizing_chlo`].
pub fn legalized_families() -> &'static [table::Family] {
    chlo::FAMILIES
}

pub use registry::Registry;
pub use stored_shardings::write_stored;
pub use user_edges::UserEdges;
pub use user_rule::UserRule;
pub use view::{Shapes, SignatureView};
