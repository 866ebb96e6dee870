//! A program that is annotated again and again, as an interactive session does.
//!
//! [`annotate`] puts annotations on a program as a user would write them into its text. The resulting program equals the one that
//! its printed text parses to: uses are in the order of the text, and meshes are named.
//!
//! [`Prepared`] computes the shardings for other annotations of arguments and results, by replaying the recorded propagation of one
//! program.
//!
//! Source: Shardy's sharding representation; JAX's `with_sharding_constraint`.

mod annotate;
mod completed;
mod meshes;
mod prepared;
#[cfg(test)]
mod tests;

pub use annotate::{annotate, annotated_values, annotation, Target};
pub use completed::placements;
pub use meshes::{mesh_for, with_mesh};
pub use prepared::{is_surely_exported, Course, Preparation, Prepared};
