//! MLIR text: parses it to a [`Program`](crate::ir::Program), and prints one.
//!
//! The parser reads every op of `StableHLO`, CHLO, `func` and Shardy in the dialect's custom syntax
//! and any op in generic form. It parses structure, names, types and Shardy's attributes, and
//! stores everything else as spans. The printer copies the text of unchanged ops and splices edits
//! into that of changed ones.
//!
//! Source: MLIR's language reference; the assembly formats of `StableHLO`, CHLO and Shardy.

mod attributes;
mod cursor;
mod escapes;
mod grammar;
mod groups_by_axes;
mod locations;
mod meaning;
mod names;
mod print;
mod reader;
mod topology;

#[cfg(test)]
mod tests;

pub use attributes::{
    attributes, element_bytes, op_attribute, op_attributes, past_space, signature_attributes,
    text_is_of, AttrValue, Field, Fields,
};
pub use grammar::field;
pub use groups_by_axes::{GroupsByAxes, REPLICA_GROUPS};
pub use locations::{is_installed, CallSites, Origin};
pub use meaning::{misfit, wrong_count, wrong_visibility};
pub use names::{Denoted, QualifiedNames};
pub use print::{print, print_in_pieces};
pub use reader::{parse, parse_shared, read, Parsed};
pub use topology::{function_around, topology, MeshTensor, TOPOLOGY};
