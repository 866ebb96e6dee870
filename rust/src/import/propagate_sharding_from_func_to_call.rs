//! `sdy-propagate-sharding-from-func-to-call`: a call without result shardings gets those of its
//! callee, if any of them is over a mesh of more than one device.

use super::callee;
use crate::context::Context;
use crate::error::Result;
use crate::index::OpId;
use crate::ir::{OpKind, Program, SymbolTable};

/// Runs the pass.
pub fn run(program: &mut Program, _: &mut Context<'_>) -> Result<()> {
    let calls = program.ops_of(&[OpKind::Call]);
    if calls.is_empty() {
        return Ok(());
    }
    let symbols = SymbolTable::new(program);
    for call in calls {
        let func = callee(program, &symbols, call)?;
        if func.is_none() || has_shardings(program, call) {
            continue;
        }
        let shardings = program.func_result_shardings(func);
        for (result, sharding) in program.op_results(call).zip(shardings) {
            program.set_sharding(result, sharding);
        }
    }
    Ok(())
}

/// Whether `op` has a `sdy.sharding` attribute.
pub(super) fn has_shardings(program: &Program, op: OpId) -> bool {
    program.op_results(op).any(|result| program.sharding(result).is_some())
        || program.no_result_shardings(op).is_some()
}
