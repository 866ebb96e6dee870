//! Export passes: turn a propagated program into one for the partitioner.
//!
//! Each pass is in the file of its name. A pass on functions takes the `func.func` op as an
//! argument. In the order of the propagation pipeline:
//!
//! | pass | what it does |
//! | --- | --- |
//! | [`export_named_computations`] | turns named computations back into functions and calls |
//! | [`propagate_to_func_results`] | copies the shardings of returned values to function results |
//! | [`unflatten_call_graph`] | merges the functions that were cloned for each call |
//! | [`insert_func_call_reshards`] | reshards call results where caller and function disagree |
//! | [`constant_or_scalar_merger`] | merges constants that import cloned, where their shardings are equal |
//! | [`sink_data_flow_edges`] | moves the shardings of data-flow edges to their owners, and erases the edge ops |
//! | [`remove_sharding_groups`] | drops sharding groups |
//! | [`sharding_constraint_to_reshard`] | turns sharding constraints into reshards |
//! | [`update_non_divisible_input_output_shardings`] | trims the shardings of inputs and outputs to axes that divide their dims evenly |
//! | [`remove_sub_axes_in_input_output_shardings`] | trims open dims of inputs and outputs to full axes |
//! | [`close_shardings`] | closes every dim, drops replicated axes |
//! | [`verify_unreduced_axes`] | fails if an op drops or changes unreduced axes without a reduction |
//!
//! [`pad_for_divisibility`] is not in this pipeline.
//!
//! The passes that insert reshards and collectives come after these; they are in
//! [`crate::partition`].
//!
//! Source: Shardy's export passes.

pub mod close_shardings;
pub mod constant_or_scalar_merger;
pub mod drop_sharding_and_mesh;
pub mod drop_sharding_rules;
pub mod export_named_computations;
pub mod insert_func_call_reshards;
pub mod pad_for_divisibility;
pub mod propagate_to_func_results;
pub mod remove_propagation_debug_info;
pub mod remove_sharding_groups;
pub mod remove_sub_axes_in_input_output_shardings;
pub mod sharding_constraint_to_reshard;
pub mod sink_data_flow_edges;
pub mod sink_func_data_flow_edges;
pub mod unflatten_call_graph;
pub mod update_non_divisible_input_output_shardings;
pub mod verify_unreduced_axes;
