//! `sdy-remove-sharding-groups`: removes every `sdy.sharding_group`.

use crate::context::Context;
use crate::error::Result;
use crate::ir::{OpKind, Program};

/// Runs the pass on the module.
pub fn run(program: &mut Program, _context: &mut Context) -> Result<()> {
    for op in program.ops_of(&[OpKind::ShardingGroup]) {
        program.erase_op(op);
    }
    Ok(())
}
