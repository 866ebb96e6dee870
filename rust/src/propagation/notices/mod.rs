//! Who is to hear of a change of a value.
//!
//! Two things follow from a change. Every op whose visit reads the sharding becomes dirty. And the
//! ops that the reference notifies are queued, in its order, for that order is part of the result:
//! the users of the other targets of an edge, the defining op, the users of the value, with edges in
//! the place of ops that only let values flow. Of users the one added last comes first.
//!
//! Most values change once or never, so lists are made when values change. Where a value has nothing
//! special, they are its definition and uses; for all others see [`walk`].

pub mod op_facts;
pub mod readers;
pub mod walk;

use crate::index::ValueId;
use crate::ir::{Program, ValueDef};
use crate::propagation::plan::edges::Edges;
use op_facts::{OpFacts, OpFactsTable};
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

/// What the dependents of a value follow from.
#[derive(Clone, Copy)]
pub struct DependencyGraph<'a> {
    pub program: &'a Program,
    pub edges: &'a Edges,
    pub facts: &'a OpFactsTable,
}

/// Puts into `out` who hears of a change of `value`.
#[inline]
pub fn list(dependency_graph: DependencyGraph<'_>, value: ValueId, out: &mut Vec<Notice>) {
    out.clear();
    if dependency_graph.edges.has_followers() || !list_simply(dependency_graph, value, out) {
        out.clear();
        Walk::new(dependency_graph, out).value_changed(value);
    }
}

/// Lists who defines and who uses `value`; false if that is not all.
#[inline]
fn list_simply(
    dependency_graph: DependencyGraph<'_>,
    value: ValueId,
    out: &mut Vec<Notice>,
) -> bool {
    let DependencyGraph { program, facts, .. } = dependency_graph;
    let row = &program.values[value];
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
