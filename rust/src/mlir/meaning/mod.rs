//! Resolves symbols, meshes, shardings, rules and calls after all ops have been parsed.
//!
//! The parser of ops records their spans in [`Notes`]; when all ops are in the tables of the program,
//! [`Notes::resolve`] parses them, checks them, and stores them in the program.

mod calls;
mod notes;
mod regions;
mod resolve;
mod resolver;
mod shardings;
mod symbols;
mod target;
mod wording;

pub(super) use notes::{axes_attribute, Annotations, Notes, NotesMark};
pub(super) use symbols::symbol_name;
pub use target::misfit;
pub(super) use target::Target;
pub(super) use wording::{in_own_syntax, plural};
pub use wording::{wrong_count, wrong_visibility};
