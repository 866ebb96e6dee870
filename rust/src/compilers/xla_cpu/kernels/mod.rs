//! The kernel graph of a block: the kernels, and the items that each reads and writes.

pub mod builder;
mod collective_sets;
mod concatenated_operands;
pub mod graph;
pub mod hoisted;
mod of_block;
pub mod operands;
