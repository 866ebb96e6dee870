//! Finds ops that are dead if they have no uses.

use crate::index::OpId;
use crate::ir::{OpKind, OpTraits, Program};

/// Whether `op` has no side effects and is not a terminator, so that it is dead if its results have
/// no uses. Takes linear time in the ops inside it.
pub fn has_no_effect(program: &Program, op: OpId) -> bool {
    let Some(known) = program.traits(op) else { return false };
    if known.has(OpTraits::TERMINATOR) {
        return false;
    }
    if known.has(OpTraits::PURE) {
        return true;
    }
    if program.num_regions(op) == 0 && program.kind(op) != OpKind::CustomCall {
        return known.has(OpTraits::RECURSIVE_EFFECTS);
    }
    let mut inside = program.pre_order(op);
    while let Some(inner) = inside.next() {
        let Some(known) = program.traits(inner) else { return false };
        if known.has(OpTraits::RECURSIVE_EFFECTS) {
            continue;
        }
        let is_free = known.has(OpTraits::PURE)
            || (program.kind(inner) == OpKind::CustomCall && !has_side_effect(program, inner));
        if !is_free {
            return false;
        }
        inside.skip_inside();
    }
    true
}

/// Whether a custom call has `has_side_effect = true`.
fn has_side_effect(program: &Program, op: OpId) -> bool {
    program.attr(op, "has_side_effect").is_some_and(|value| value.trim() == "true")
}
