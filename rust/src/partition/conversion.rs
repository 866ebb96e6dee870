//! What MLIR's dialect conversion does to ops that it has no pattern for.
//!
//! It walks in pre-order, and tries to fold each op that is not known to be legal. A fold that fails is
//! rolled back by setting all operands again, which makes them the newest uses of their values. So
//! uses end up in program order, the last one newest, ahead of those by legal ops; only that of an op
//! with regions and one inside them come in another order from the parser. Nothing folds but the
//! order of constant operands.

use super::canonicalize::commute::move_constants_back;
use crate::index::{Id, OpId, UseId};
use crate::ir::Program;

/// Brings operands and uses inside `root` into the order in which a conversion leaves them.
/// `is_legal` says which ops it does not look at.
pub fn fold_all(program: &mut Program, root: OpId, is_legal: impl Fn(&Program, OpId) -> bool) {
    const LEGAL: u32 = 0;
    let ops: Vec<OpId> = program.pre_order(root).collect();
    let mut places = vec![LEGAL; program.ops.len()];
    for (place, &op) in (1..).zip(&ops) {
        if !is_legal(program, op) {
            places[op.index()] = place;
            move_constants_back(program, op);
        }
    }
    let key = |program: &Program, slot: UseId| {
        let place = places[program.operands[slot].owner.index()];
        (place, if place == LEGAL { 0 } else { slot.index() })
    };
    for value in program.values_of(root) {
        let keys = program.uses(value).map(|slot| key(program, slot));
        if !keys.is_sorted_by(|newer, older| newer >= older) {
            let mut order: Vec<UseId> = program.uses(value).collect();
            order.sort_by_key(|&slot| std::cmp::Reverse(key(program, slot)));
            program.set_use_order(value, &order);
        }
    }
}
