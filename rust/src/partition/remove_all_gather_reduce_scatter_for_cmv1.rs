//! `sdy-remove-all-gather-reduce-scatter-for-cmv1`: removes all-gathers before dots and
//! reduce-scatters after them, for compilers that fuse these with the dot (collective matmul).
//!
//! If an operand was gathered, the reduce-scatter of the result is kept.

use crate::context::Context;
use crate::error::Result;
use crate::index::OpId;
use crate::ir::{OpKind, Program};

/// Runs the pass on `func`.
pub fn run(program: &mut Program, _context: &mut Context, func: OpId) -> Result<()> {
    let is_dot = |op: &OpId| matches!(program.kind(*op), OpKind::Dot | OpKind::DotGeneral);
    let dots: Vec<OpId> = program.post_order(func).filter(is_dot).collect();
    let mut undone = Vec::new();
    for dot in dots {
        let gathers: Vec<OpId> = gathered_operands(program, dot);
        if gathers.is_empty() {
            undone.extend(take_scattered_sharding(program, dot));
        }
        undone.extend(gathers);
    }
    for op in undone {
        program.replace_all_uses(program.result(op, 0), program.operand(op, 0));
        program.erase_op(op);
    }
    Ok(())
}

/// The all-gathers that only `dot` uses.
fn gathered_operands(program: &Program, dot: OpId) -> Vec<OpId> {
    let defs = program.operands(dot).filter_map(|value| program.defining_op(value));
    let is_gather = |op: &OpId| {
        program.kind(*op) == OpKind::AllGather && program.has_one_use(program.result(*op, 0))
    };
    defs.filter(is_gather).collect()
}

/// Gives `dot` the sharding of the reduce-scatter that is its only user; returns that op.
fn take_scattered_sharding(program: &mut Program, dot: OpId) -> Option<OpId> {
    let result = program.result(dot, 0);
    let slot = program.newest_use(result).get().filter(|_| program.has_one_use(result))?;
    let scatter = program.user(slot);
    let sharding = program.sharding_of(result);
    let is_reduced = program.unreduced_axes(sharding).is_empty();
    if program.kind(scatter) != OpKind::ReduceScatter || !is_reduced {
        return None;
    }
    let scattered = program.sharding(program.result(scatter, 0));
    program.set_sharding(result, scattered);
    Some(scatter)
}
