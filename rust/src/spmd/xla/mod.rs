//! The strategies that XLA's SPMD partitioner takes: its handlers of ops (`spmd_partitioner.cc`, `dot_handler.cc` and
//! others) on placements.
//!
//! XLA has no list of strategies. Each of its handlers starts from the sharding of one tensor of the op, the *leader*: most
//! reshard operands to what the sharding of the result says, reductions compute on operands as they lie and
//! reshard the result. [`leader`] says which tensor that is; [`product`] decides for products, which look at all three
//! tensors ([`shards`]), and at how they are sharded within groups of devices ([`grouped_shardings`]); [`convolution`] says what is more of
//! convolutions, and [`halos`] whether their shards exchange halos.
//!
//! [`reshard`] says by which steps it leads a tensor from one sharding to another, where all digits of devices count, those
//! that are replicated included ([`tiles`]).
//!
//! Source: `xla/service/spmd`: `spmd_partitioner.cc`, `dot_handler.cc`, `convolution_handler.cc`.

mod convolution;
pub mod gather_scatter;
mod grouped_shardings;
pub mod halos;
pub mod leader;
pub mod product;
pub mod reshard;
pub mod shards;
pub mod spatial;
mod tiles;
