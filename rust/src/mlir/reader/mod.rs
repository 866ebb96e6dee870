//! Reading: ops from text to the tables of a program.
//!
//! [`Parser`](parser::Parser) has the position in the text and one field for each concern: the
//! types seen so far, the names of values, the parts of incomplete ops, the records that are
//! resolved at the end. Each file adds the methods that parse one form: `generic`, `custom_syntax`
//! with `formats`, `function`, `regions`, `sdy`. `read` has the loop over ops.

mod aliases;
mod arity;
mod blocks;
mod custom_syntax;
mod dict;
mod finish;
mod format_table;
mod formats;
mod function;
mod generic;
mod location_aliases;
mod locations;
mod mesh_tensor;
mod mpmd;
mod nuls;
mod op_names;
mod operands;
mod parser;
mod parts;
mod read;
mod reductions;
mod regions;
mod repeat;
mod sdy;
mod signature;
mod strict;
mod templates;
mod types;

pub use read::{parse, parse_shared, read, Parsed};
