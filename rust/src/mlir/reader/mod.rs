//! Reading: ops from text to the tables of a program.
//!
//! [`Parser`](parser::Parser) holds the position in the text and one field for each concern: the types seen so
//! far, the names of values, the parts of ops that are not complete, what is to be made sense of at the
//! end. The files add to it what reads each form: `generic`, `own_syntax` with `formats`, `function`,
//! `regions`, `sdy`. `read` is the loop over all of them.

mod aliases;
mod arity;
mod blocks;
mod dict;
mod finish;
mod format_table;
mod formats;
mod function;
mod generic;
mod location_aliases;
mod locations;
mod op_names;
mod operands;
mod own_syntax;
mod parser;
mod parts;
mod read;
mod regions;
mod repeat;
mod sdy;
mod signature;
mod templates;
mod types;

pub use read::{parse, parse_shared, read, Parsed};
