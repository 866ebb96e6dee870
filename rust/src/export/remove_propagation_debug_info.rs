//! `sdy-remove-propagation-debug-info`: removes the attributes in which propagation records the origins
//! of shardings.

use crate::context::Context;
use crate::error::Result;
use crate::index::{FuncId, OpId};
use crate::ir::Program;

const DEBUG_ATTRS: [&str; 6] = [
    "sdy.propagation_edges",
    "sdy.block_arg_propagation_edges",
    "sdy.result_propagation_edges",
    "sdy.sharding_origins",
    "sdy.block_arg_sharding_origins",
    "sdy.result_sharding_origins",
];

/// Runs the pass on the module.
pub fn run(program: &mut Program, _context: &mut Context) -> Result<()> {
    if DEBUG_ATTRS.iter().all(|name| program.strings().find(name).is_none()) {
        return Ok(());
    }
    let ops: Vec<OpId> = program.pre_order(program.module_op()).collect();
    for op in ops {
        if let Some(func) = program.function_of(op).get() {
            clean_function(program, func);
            continue;
        }
        for name in DEBUG_ATTRS {
            program.remove_attr(op, name);
        }
    }
    Ok(())
}

/// Removes the attributes from arguments and results of `func`.
fn clean_function(program: &mut Program, func: FuncId) {
    let is_kept = |name: &str| !DEBUG_ATTRS.contains(&name);
    for index in 0..program.func_args(func).len() {
        program.retain_arg_attrs(func, index, is_kept);
    }
    for index in 0..program.func_results(func).len() {
        program.retain_result_attrs(func, index, is_kept);
    }
}
