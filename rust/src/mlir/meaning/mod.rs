//! Meaning: what ops say beyond their form, of symbols, meshes, shardings, rules and calls.
//!
//! Whoever reads the text of ops leaves [`Notes`], by where things stand; when all ops are in the tables of
//! the program, [`Notes::resolve`] reads what is there and puts it where it belongs.

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
pub(super) use target::Target;
pub use wording::wrong_count;
pub(super) use wording::{in_own_syntax, plural};
