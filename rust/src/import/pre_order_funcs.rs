//! `sdy-pre-order-funcs`: moves functions to the end of the module, callers before callees.

use super::CallGraph;
use crate::context::Context;
use crate::error::Result;
use crate::ir::{Place, Program, SymbolTable};

/// Runs the pass.
pub fn run(program: &mut Program, _: &mut Context<'_>) -> Result<()> {
    let end = Place::End(program.module_block());
    let symbols = SymbolTable::new(program);
    for func in CallGraph::new(program, &symbols).post_order.into_iter().rev() {
        program.move_op(program.func_op(func), end);
    }
    Ok(())
}
