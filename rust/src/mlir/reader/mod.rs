//! Ops from text to the tables of a program.

mod aliases;
mod blocks;
mod dict;
pub(super) mod finish;
mod formats;
mod function;
pub(super) mod generic;
mod operands;
mod own_syntax;
pub(super) mod parser;
mod regions;
mod repeated;
mod sdy;
mod signature;
pub(super) mod types;

pub use parser::{parse, parse_shared, read, Parsed};
