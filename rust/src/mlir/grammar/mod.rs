//! What attributes, types and locations look like: steps over them, and refuses what MLIR refuses.
//!
//! Most of a program's attributes are never read. They stay text, but text that is an attribute:
//! whatever is accepted here is accepted by MLIR's parser. What stands inside attributes of dialects
//! that the engine does not know is bracketed text, as it is to MLIR for dialects it does not know.
//!
//! Source: MLIR's language reference, and `StableHLO`'s attribute definitions.

mod dialect;
mod dialects;
mod elements;
mod location;
mod number;
mod position;
mod resources;
mod types;
mod value;

pub(super) use dialect::cases;
pub(super) use dialects::{known_dialect, Ops};
pub(super) use location::problem_of_alias;
pub(super) use position::Grammar;
pub(super) use types::{skip_type, split_tensor};
