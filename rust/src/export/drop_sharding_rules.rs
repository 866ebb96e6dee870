//! `sdy-drop-sharding-rules`: removes the sharding rules of ops, but for those users wrote.

use crate::context::Context;
use crate::error::Result;
use crate::index::OpId;
use crate::ir::Program;

/// Runs the pass on `func`.
pub fn run(program: &mut Program, _context: &mut Context, func: OpId) -> Result<()> {
    if program.op_rules.is_empty() {
        return Ok(());
    }
    let ops: Vec<OpId> = program.pre_order(func).collect();
    for op in ops {
        program.drop_rule(op);
    }
    Ok(())
}
