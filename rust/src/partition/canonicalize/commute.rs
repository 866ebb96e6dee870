//! Moves constant operands of commutative ops after the others.

use super::constants::Constants;
use crate::index::{OpId, UseId, ValueId};
use crate::ir::Program;

/// CHLO ops that MLIR knows to be commutative.
const COMMUTATIVE: [&str; 8] = [
    "chlo.broadcast_add",
    "chlo.broadcast_and",
    "chlo.broadcast_maximum",
    "chlo.broadcast_minimum",
    "chlo.broadcast_multiply",
    "chlo.broadcast_or",
    "chlo.broadcast_xor",
    "chlo.mulhi",
];

/// Whether `program` may have commutative ops.
pub fn has_commutative_ops(program: &Program) -> bool {
    COMMUTATIVE.iter().any(|name| program.strings().find(name).is_some())
}

/// Moves the constant operands of a commutative op after the others; returns whether any moved.
pub fn move_constants_back(program: &mut Program, op: OpId) -> bool {
    let name = program.op_name(op);
    if !name.starts_with("chlo.") || !COMMUTATIVE.contains(&name) {
        return false;
    }
    let is_constant = |value: ValueId| {
        let def = program.defining_op(value);
        def.is_some_and(|def| Constants::is_constant(program, def))
    };
    let slots: Vec<UseId> = program.op_uses(op).collect();
    let old: Vec<ValueId> = slots.iter().map(|&slot| program.used_value(slot)).collect();
    let (constants, mut new): (Vec<ValueId>, Vec<ValueId>) =
        old.iter().partition(|&&value| is_constant(value));
    new.extend(constants);
    for ((slot, old), &new) in slots.into_iter().zip(&old).zip(&new) {
        if *old != new {
            program.set_operand(slot, new);
        }
    }
    if old == new {
        return false;
    }
    // The operands may have different types.
    program.update_types(op);
    true
}
