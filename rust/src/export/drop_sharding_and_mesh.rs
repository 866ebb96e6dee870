//! `sdy-drop-sharding-and-mesh`: removes `sdy.sharding` attributes and meshes.
//!
//! Shardings that are properties of an op of the `sdy` dialect, such as a reshard's, are kept; an
//! `sdy.sharding` attribute of such an op is removed.

use crate::context::Context;
use crate::error::Result;
use crate::index::{OpId, ShardingId};
use crate::ir::{OpKind, Program};
use crate::shardy::Change;

/// Runs the pass on the module.
pub fn run(
    program: &mut Program,
    _context: &mut Context,
    keep_module_sharding_metadata: bool,
) -> Result<()> {
    if program.shardy().has(Change::ModuleShardingsDropped) && !keep_module_sharding_metadata {
        for name in ["sdy.parameters_shardings", "sdy.output_shardings"] {
            program.remove_attr(program.module_op(), name);
        }
    }
    let ops: Vec<OpId> = program.pre_order(program.module_op()).collect();
    for op in ops {
        match program.kind(op) {
            OpKind::Mesh => program.erase_op(op),
            OpKind::Func => drop_function_shardings(program, op),
            kind if kind.has_own_sharding() => {
                program.remove_attr(op, "sdy.sharding");
            }
            _ => {
                for result in program.op_results(op) {
                    program.set_sharding(result, ShardingId::NONE);
                }
                if program.remove_no_result_shardings(op) {
                    program.mark_attrs_changed(op);
                }
            }
        }
    }
    Ok(())
}

/// Removes the shardings of the arguments and results of the `func.func` op `op`.
fn drop_function_shardings(program: &mut Program, op: OpId) {
    let Some(func) = program.function_of(op).get() else { return };
    if let Some(body) = program.func_body(func).get() {
        for arg in program.block_args(body) {
            program.set_sharding(arg, ShardingId::NONE);
        }
    }
    for index in 0..program.func_args(func).len() {
        program.set_declared_arg_sharding(func, index, ShardingId::NONE);
    }
    for index in 0..program.func_results(func).len() {
        program.set_func_result_sharding(func, index, ShardingId::NONE);
    }
    program.mark_attrs_changed(op);
}
