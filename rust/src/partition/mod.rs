//! Passes that insert reshards, and lower them to collectives.
//!
//! Source: Shardy's export passes from `sdy-insert-explicit-reshards` on.

pub mod across_reshapes;
pub mod axis_sets;
pub mod canonicalize;
pub mod channels;
pub mod common_axes;
pub mod conversion;
pub mod device_id;
pub mod insert_explicit_reshards;
mod insertion;
pub mod optimize_collectives;
pub mod remove_all_gather_reduce_scatter_for_cmv1;
pub mod reshard_to_collectives;
pub mod resolve_permutation_factors;
pub mod resolve_single_device_sharding;
mod single_device;
pub(crate) mod stablehlo_ops;
