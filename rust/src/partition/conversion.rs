//! Reproduces the effects of MLIR's dialect conversion on ops for which it has no pattern.
//!
//! The conversion walks in pre-order, and tries to fold each op that is not known to be legal. A
//! fold that fails is rolled back by setting all operands again, which makes them the newest uses
//! of their values. So uses end up in program order, the last one newest, ahead of those by legal
//! ops; an op with regions has newer uses than the ops inside it. The only fold that succeeds is
//! the reordering of constant operands.

use super::canonicalize::commute::{has_commutative_ops, move_constants_back};
use crate::index::OpId;
use crate::ir::Program;

/// Brings the operands and uses inside `root` into the order in which MLIR's conversion leaves
/// them. `is_legal` is called in pre-order; ops for which it is true are skipped.
pub fn fold_all(
    program: &mut Program,
    root: OpId,
    mut is_legal: impl FnMut(&Program, OpId) -> bool,
) {
    let may_commute = has_commutative_ops(program);
    let mut next = Some(root);
    while let Some(op) = next {
        next = program.next_in_pre_order(op, root);
        if is_legal(program, op) {
            continue;
        }
        if may_commute {
            move_constants_back(program, op);
        }
        program.make_newest_uses(op);
    }
}
