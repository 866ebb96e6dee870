//! The kernel graph of a block: the kernels, and the items that each reads and writes.

pub mod builder;
mod carried;
mod collective_sets;
pub mod graph;
pub mod hoisted;
pub mod kernel_row;
mod merged_dots;
mod of_block;
pub mod operands;
mod slice_updates;
mod stored_values;
mod whole_results;
