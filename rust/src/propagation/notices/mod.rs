//! Who hears of a change: the ops that depend on the sharding of a value.
//!
//! Two things follow from a change. Every op whose visit reads the sharding is marked. And the
//! ops that the reference notifies are queued, in its order, for that order is part of the result:
//! the users of the other targets of an edge, the defining op, the users of the value, with edges in
//! the place of ops that only let values flow. Of users the one added last comes first.
//!
//! Most values change once or never, so lists are made when values change. Where a value has nothing
//! special, they are its definition and uses; for all others see [`walk`].

pub mod readers;
mod walk;

use crate::index::ValueId;
use crate::ir::{Program, ValueDef};
use crate::propagation::plan::op_facts::OpFacts;
use crate::propagation::plan::Plan;
use walk::Walk;

/// What is done with an op that depends on a sharding that has changed.
///
/// *Marked* ops are those whose next visit may do something; *queued* ones are taken next, in the order
/// of the reference's worklist. A mark without a queue entry is worked off when the op's turn comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// It is marked, and queued unless it is the op whose visit made the change.
    MarkAndQueue,
    /// It is marked only.
    Mark,
    /// It is queued only, if the last `MarkAndQueue` before it queued its op, which is inside this one.
    QueueWithPrevious,
    /// It is queued only: it encloses an op that is not visited.
    Queue,
}

/// One op that depends on a sharding that has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notice {
    /// Where the op stands.
    pub position: u32,
    /// What is done with it.
    pub action: Action,
}

/// Puts into `out` the ops that depend on the sharding that `holder` holds.
#[inline]
pub fn list(program: &Program, plan: &Plan, holder: ValueId, out: &mut Vec<Notice>) {
    out.clear();
    if plan.edges.has_followers() || !list_simply(program, plan, holder, out) {
        out.clear();
        Walk::new(program, plan, out).sharding_changed(holder);
    }
}

/// Lists the op that defines `holder` and those that use it; false if that is not all.
#[inline]
fn list_simply(program: &Program, plan: &Plan, holder: ValueId, out: &mut Vec<Notice>) -> bool {
    let facts = &plan.facts;
    let row = &program.values[holder];
    let owner = match row.def() {
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
    let mut next = row.first_use;
    while next.is_some() {
        let slot = &program.operands[next];
        let user = facts.of(slot.owner);
        if user.has_any(OpFacts::IN_VISITED_OP | OpFacts::FORWARDS_OPERANDS) {
            return false;
        }
        if user.has_any(OpFacts::VISITED) {
            out.push(Notice { position: user.position(), action: Action::MarkAndQueue });
        }
        next = slot.next_use;
    }
    true
}
