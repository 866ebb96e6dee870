//! `sdy-sharding-constraint-to-reshard`: turns every sharding constraint into a reshard.
//!
//! A reshard has no side effect and may be erased if it has no uses; a constraint may not. The ops
//! are renamed in place, but the order of uses becomes that of MLIR's conversion, which first makes
//! all reshards, then moves the uses of each constraint, newest first, to its reshard.

use crate::context::Context;
use crate::error::Result;
use crate::index::{OpId, UseId};
use crate::ir::{OpKind, Program};
use crate::partition::conversion::fold_all;
use rustc_hash::FxHashSet;

/// Runs the pass on `func`.
pub fn run(program: &mut Program, _context: &mut Context, func: OpId) -> Result<()> {
    let mut constraints: Vec<OpId> = Vec::new();
    fold_all(program, func, |program, op| {
        let kind = program.kind(op);
        if kind == OpKind::ShardingConstraint {
            constraints.push(op);
        }
        kind == OpKind::Reshard
    });
    program.rename_ops(&constraints, "sdy.reshard");
    let converted_ops: FxHashSet<OpId> = constraints.iter().copied().collect();
    for &op in &constraints {
        let result = program.result(op, 0);
        let is_converted = |slot: &UseId| {
            let user = program.user(*slot);
            converted_ops.contains(&user)
        };
        let (converted, others): (Vec<UseId>, Vec<UseId>) =
            program.uses(result).partition(is_converted);
        let order: Vec<UseId> = others.into_iter().rev().chain(converted).collect();
        program.set_use_order(result, &order);
    }
    Ok(())
}
