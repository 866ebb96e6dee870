//! The strategies that XLA's SPMD partitioner takes: its op handlers (`spmd_partitioner.cc`, `dot_handler.cc` and others), in terms
//! of placements.
//!
//! XLA has no list of strategies. Each of its handlers starts from the sharding of one tensor of the op, the *leader*: most reshard
//! the operands to the sharding of the result; reductions compute on operands as they are sharded and reshard the result.
//! [`leader`] says which tensor that is; [`product`] decides about dots, which look at all three tensors ([`shards`]), and at their
//! shardings within groups of devices ([`grouped_shardings`]); [`convolution`] adds the cases of convolutions, and [`halos`]
//! whether shards exchange halos.
//!
//! [`reshard`] makes its reshards, which depend on all digits of devices, replicated ones included ([`tiles`]).
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
