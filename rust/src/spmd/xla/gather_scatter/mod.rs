//! Gathers and scatters in XLA's partitioner.
//!
//! The partitioner has one method for each kind of dim. A method splits devices into groups along the dims of its kind; within a
//! group the op is partitioned again. Explicit batch dims come first. Then the method is taken that needs the least memory if
//! tensors were replicated within its groups, and among equal ones the one that sends the fewest bytes. Memory is that of the op or
//! collective with the largest operands and results.
//!
//! Digits are split so that any two are equal or disjoint.
//!
//! Source: `gather_scatter_handler.cc`; `GroupShardingOnReplicatedDim` in `hlo_sharding_util.cc`.

mod cost;
mod methods;
mod model;
mod parallel_dims;

pub use methods::primes;
pub use model::{Groups, Indexed, Role, Tensor};
