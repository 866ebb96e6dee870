//! The kernels of a block: what each reads and makes.

pub mod builder;
mod collective_sets;
pub mod graph;
pub mod hoisted;
mod of_block;
pub mod operands;
