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
use op_facts::{Spot, Spots};
use walk::Walk;

/// How an op hears of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// It is marked, and queued unless it is the op in hand.
    Visited,
    /// It is marked only.
    Marked,
    /// It is queued only, if the last one that was `Visited` was: it is around that one.
    Around,
    /// It is queued only: it is around an op that is not visited.
    Queued,
}

/// One op that hears of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notice {
    /// Where the op stands.
    pub position: u32,
    /// How it hears.
    pub how: How,
}

/// What lists are made from.
#[derive(Clone, Copy)]
pub struct Listing<'a> {
    pub program: &'a Program,
    pub edges: &'a Edges,
    pub spots: &'a Spots,
}

/// Puts into `out` who hears of a change of `value`.
#[inline]
pub fn list(listing: Listing<'_>, value: ValueId, out: &mut Vec<Notice>) {
    out.clear();
    if listing.edges.has_followers() || !list_simply(listing, value, out) {
        out.clear();
        Walk::new(listing, out).value_changed(value);
    }
}

/// Lists who defines and who uses `value`; false if that is not all.
#[inline]
fn list_simply(listing: Listing<'_>, value: ValueId, out: &mut Vec<Notice>) -> bool {
    let Listing { program, spots, .. } = listing;
    let row = &program.values[value];
    let owner = match row.def() {
        ValueDef::Result(op) => op,
        ValueDef::Arg(block) => program.block_parent_op(block),
    };
    let owner = spots.of(owner);
    if owner.has_any(Spot::INSIDE | Spot::EDGE) {
        return false;
    }
    if owner.has_any(Spot::VISITED) {
        out.push(Notice { position: owner.position(), how: How::Visited });
    }
    let mut next = row.first_use;
    while next.is_some() {
        let slot = &program.operands[next];
        let user = spots.of(slot.owner);
        if user.has_any(Spot::INSIDE | Spot::HANDS_ON) {
            return false;
        }
        if user.has_any(Spot::VISITED) {
            out.push(Notice { position: user.position(), how: How::Visited });
        }
        next = slot.next_use;
    }
    true
}
