//! One program with many annotations: what a session edits.
//!
//! [`annotate`] puts annotations on a program as a user would write them into its text. The program it leaves
//! is the one that its print parses to: values are used in the order of the text, and meshes are named.
//!
//! [`Prepared`] works out what other annotations of arguments and results lead to, by replaying the run of one program.
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
