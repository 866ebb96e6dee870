//! Gathers and scatters as XLA's partitioner computes them.
//!
//! The partitioner has one method for each kind of dim. A method splits devices into groups along the dims of its kind; within
//! a group what is left is partitioned again. Explicit batch dims come first. Of the others that is taken which needs the least
//! memory if tensors were whole within its groups, then that which sends the fewest bytes: the largest of the op itself and
//! of collectives counts, with operands and results.
//!
//! Digits are cut so that any two are equal or have nothing in common.
//!
//! Source: `gather_scatter_handler.cc`; `GroupShardingOnReplicatedDim` in `hlo_sharding_util.cc`.

mod cost;
mod methods;
mod model;
mod parallel_dims;

pub use methods::primes;
pub use model::{Groups, Indexed, Role, Tensor};
