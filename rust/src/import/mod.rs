//! Import passes, which prepare a program for propagation.
//!
//! Each pass is in the file of its name. In the order of the pipeline:
//!
//! | pass | what it does |
//! | --- | --- |
//! | [`symbol_dce`] | erases private functions that nothing refers to |
//! | [`lift_inlined_meshes`] | gives every mesh a name, and equal meshes the same name |
//! | [`remove_size_one_axes`] | drops axes of size 1 from shardings |
//! | [`propagate_sharding_from_func_to_call`] | copies result shardings of functions to their calls |
//! | [`constant_or_scalar_splitter`] | clones constants for each of their uses |
//! | [`manual_axes_cleanup`] | completes and sorts the manual axes of manual computations |
//! | [`add_data_flow_edges`] | puts an edge op on every value that owns a data-flow edge |
//! | [`flatten_call_graph`] | clones functions so that each has one call |
//! | [`import_func_calls`] | turns calls into named computations |
//! | [`add_func_data_flow_edges`] | an alternative to the previous two: inserts edge ops on arguments and calls |
//! | [`apply_sharding_constraints`] | gives the input of a constraint the constraint's sharding |
//! | [`sharding_group_import`] | merges groups that share a member, and checks them |
//! | [`pre_order_funcs`] | puts callers before callees |
//! | [`inline_meshes`] | the inverse of [`lift_inlined_meshes`] |
//! | [`explicit_gather_scatter_batching`] | makes batch dims of gathers and scatters explicit; not in the pipeline |
//!
//! [`hlo_shardings`] and [`sdy_round_trip`] are not passes: they convert shardings in GSPMD's
//! notation, and the form in which Shardy exports to XLA, to `sdy`.
//!
//! The order in which uses are added affects propagation, so each pass adds, replaces and clones
//! uses in the reference's order.
//!
//! Source: the import passes of Shardy.

pub mod add_data_flow_edges;
pub mod add_func_data_flow_edges;
pub mod apply_sharding_constraints;
mod call_graph;
mod clone_function;
pub mod constant_or_scalar_splitter;
mod distinct_computations;
mod edge_ops;
pub mod explicit_gather_scatter_batching;
pub mod flatten_call_graph;
pub mod hlo_annotations;
mod hlo_bodies;
pub mod hlo_captures;
pub mod hlo_dead;
pub mod hlo_form;
pub mod hlo_loops;
mod hlo_manual;
pub mod hlo_order;
pub mod hlo_shardings;
pub mod hlo_simplified;
pub mod hlo_single_device;
pub mod import_func_calls;
pub mod inline_meshes;
pub mod lift_inlined_meshes;
pub mod manual_axes_cleanup;
pub mod pre_order_funcs;
pub mod propagate_sharding_from_func_to_call;
pub mod remove_size_one_axes;
mod replica_group_meshes;
pub mod sdy_round_trip;
pub mod sharding_group_import;
pub mod symbol_dce;
#[cfg(test)]
mod tests;

pub use call_graph::CallGraph;
pub use clone_function::FunctionCloner;

use crate::error::{Code, Diagnostic};
use crate::index::{FuncId, OpId};
use crate::ir::{Payload, Program, SymbolTable};

/// An error at `op`.
pub(crate) fn mistake(
    program: &Program,
    op: OpId,
    code: Code,
    message: impl Into<String>,
) -> Diagnostic {
    Diagnostic::new(code, message).at_op(program, op)
}

/// The function that `call` calls.
pub(crate) fn callee(
    program: &Program,
    symbols: &SymbolTable,
    call: OpId,
) -> Result<FuncId, Diagnostic> {
    let Some(&Payload::Call(name)) = program.payload(call) else { return Ok(FuncId::NONE) };
    symbols.function(name).ok_or_else(|| {
        let message = format!("no function @{} in this module", program.str(name));
        mistake(program, call, Code::UnknownSymbol, message)
    })
}
