//! `sdy-pre-order-funcs`: callers before callees, after everything else in the module.

use super::CallGraph;
use crate::context::Context;
use crate::error::Result;
use crate::ir::{Place, Program};

/// Runs the pass.
pub fn run(program: &mut Program, _: &mut Context<'_>) -> Result<()> {
    let end = Place::End(program.module_block());
    for func in CallGraph::new(program).post_order.into_iter().rev() {
        program.move_op(program.functions[func].op, end);
    }
    Ok(())
}
