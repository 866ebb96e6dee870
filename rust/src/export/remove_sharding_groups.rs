//! `sdy-remove-sharding-groups`: removes every `sdy.sharding_group`.

use crate::context::Context;
use crate::error::Result;
use crate::index::OpId;
use crate::ir::{OpKind, Program};

/// Runs the pass on the module.
pub fn run(program: &mut Program, _context: &mut Context) -> Result<()> {
    let is_group = |op: &OpId| program.kind(*op) == OpKind::ShardingGroup;
    let groups: Vec<OpId> = program.pre_order(program.module).filter(is_group).collect();
    for op in groups {
        program.erase_op(op);
    }
    Ok(())
}
