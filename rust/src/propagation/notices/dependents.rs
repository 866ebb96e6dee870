//! The ops that depend on the sharding of a value.
//!
//! Most values change at most once, so the list is made when a value changes. For a plain value it is the
//! defining op and the users; [`super::walk`] has the other cases.

use super::notice::{Action, Notice};
use super::walk::Walk;
use crate::index::ValueId;
use crate::ir::{Program, ValueDef};
use crate::propagation::plan::op_facts::OpFacts;
use crate::propagation::plan::Plan;

/// Appends to `out` the ops that depend on the sharding that `holder` holds.
#[inline]
pub fn list(program: &Program, plan: &Plan, holder: ValueId, out: &mut Vec<Notice>) {
    out.clear();
    if plan.edges.has_followers() || !list_simply(program, plan, holder, out) {
        out.clear();
        Walk::new(program, plan, out).sharding_changed(holder);
    }
}

/// Lists the op that defines `holder` and those that use it; false if there may be other
/// dependents.
#[inline]
fn list_simply(program: &Program, plan: &Plan, holder: ValueId, out: &mut Vec<Notice>) -> bool {
    let facts = &plan.facts;
    let owner = match program.def(holder) {
        ValueDef::Result(op) => op,
        ValueDef::Arg(block) => program.block_parent_op(block),
    };
    let owner = facts.of(owner);
    if owner.has_any(OpFacts::IN_VISITED_OP | OpFacts::EDGE) {
        return false;
    }
    if owner.has_any(OpFacts::VISITED) {
        out.push(Notice { position: owner.position(), action: Action::MarkAndQueue });
    }
    for user in program.users(holder) {
        let user = facts.of(user);
        if user.has_any(OpFacts::IN_VISITED_OP | OpFacts::FORWARDS_OPERANDS) {
            return false;
        }
        if user.has_any(OpFacts::VISITED) {
            out.push(Notice { position: user.position(), action: Action::MarkAndQueue });
        }
    }
    true
}
