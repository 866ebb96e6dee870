//! The grammar of attributes, types and locations: checks and skips them, and rejects what MLIR
//! rejects.
//!
//! Most attributes of a program are not needed and are stored as text. Every attribute that is
//! accepted here is accepted by MLIR's parser. Attributes of unknown dialects may be any bracketed
//! text, as in MLIR for unregistered dialects.
//!
//! Source: MLIR's language reference, and `StableHLO`'s attribute definitions.

mod bounds;
mod conv;
mod dialect;
mod dot_algorithm;
mod elements;
mod enumerations;
mod literal;
mod location;
mod mesh_axes;
mod mpmd;
mod number;
mod position;
mod registered_dialects;
mod resources;
mod shaped;
mod sparse;
mod structures;
mod types;
mod value;

pub(super) use enumerations::{cases, known_case};
pub(super) use location::problem_of_alias;
pub use mesh_axes::field;
pub(super) use position::Grammar;
pub(super) use registered_dialects::{known_dialect, Ops};
pub(super) use shaped::{split_tensor, TensorParts};
pub(super) use types::skip_type;
pub(super) use value::skip_attribute;
