//! Ops without side effects, which MLIR's greedy driver erases once their results have no uses.
//!
//! An op is trivially dead if its results have no uses, it is not a terminator, defines no symbol,
//! and neither it nor an op inside it has memory effects.
//!
//! Source: `isOpTriviallyDead` of MLIR's side effect interfaces.

use crate::index::OpId;
use crate::ir::{OpKind, OpTraits, Program};

/// Whether `op` is trivially dead.
pub fn is_trivially_dead(program: &Program, op: OpId) -> bool {
    if program.op_results(op).any(|result| program.has_uses(result)) {
        return false;
    }
    if matches!(program.kind(op), OpKind::Func | OpKind::Module | OpKind::Mesh) {
        return false;
    }
    !program.has_traits(op, OpTraits::TERMINATOR) && has_no_effects(program, op)
}

fn has_no_effects(program: &Program, root: OpId) -> bool {
    let mut walk = program.pre_order(root);
    while let Some(op) = walk.next() {
        let Some(traits) = program.traits(op) else { return false };
        let is_pure = traits.has(OpTraits::PURE)
            || (program.kind(op) == OpKind::CustomCall && !has_side_effect(program, op));
        if traits.has(OpTraits::RECURSIVE_EFFECTS) {
            continue;
        }
        if !is_pure {
            return false;
        }
        walk.skip_inside();
    }
    true
}

/// Whether `op`, a custom call, has `has_side_effect = true`.
fn has_side_effect(program: &Program, op: OpId) -> bool {
    program.attr(op, "has_side_effect").is_some_and(|value| value.trim() == "true")
}
