//! MLIR text: parsing it to a [`Program`](crate::ir::Program), and printing one.
//!
//! The parser reads every op of `StableHLO`, CHLO, `func` and Shardy in the dialect's own syntax and any
//! op in generic form. It takes apart what shardings need (structure, names, types, Shardy's
//! attributes) and keeps the rest as spans. The printer copies the text of what was not touched and
//! splices changes into the text of what was.
//!
//! Source: MLIR's language reference; the assembly formats of `StableHLO`, CHLO and Shardy.

mod aliases;
mod attr_cursor;
mod attr_reader;
pub mod attr_value;
mod attrs;
mod blocks;
mod conv_dims;
mod cursor;
mod custom;
mod finish;
mod formats;
mod function;
mod generic;
mod grammar;
mod location;
mod meaning;
mod names;
mod op_attributes;
mod operands;
mod parser;
mod places;
mod print;
mod regions;
mod repeated;
mod resolve;
mod scopes;
mod sdy;
mod signature;
mod target;
mod types;
mod values;
mod verify;

#[cfg(test)]
mod tests;

pub use op_attributes::{attributes, op_attribute, signature_attributes};
pub use parser::{parse, parse_shared, read, Parsed};
pub use places::Frame;
pub use print::{print, print_in_pieces};
