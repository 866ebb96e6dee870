//! The kernels of a block: what each reads and makes.

pub mod builder;
pub mod graph;
pub mod hoisted;
pub mod operands;
