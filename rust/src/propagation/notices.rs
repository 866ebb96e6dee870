//! Who is to hear of a change of each value, worked out once.
//!
//! Two things follow from a change. Every op whose visit reads the sharding becomes dirty. And the
//! ops that the reference notifies are queued, in its order, for that order is part of the result:
//! the users of the other targets of an edge, the defining op, the users of the value, with edges in
//! the place of ops that only let values flow. Of users the one added last comes first.
//!
//! Where values cross calls a list could be as long as the program for each of many values. Those
//! are listed when they change ([`super::notify`]).

use super::edges::Edges;
use super::notify::Walk;
use super::spots::{Spot, Spots};
use crate::bitset::BitSet;
use crate::index::{Id, ValueId};
use crate::ir::{Program, ValueDef};

/// How an op hears of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum How {
    /// It is marked, and queued unless it is the op in hand.
    Visited,
    /// It is marked only.
    Marked,
    /// It is queued only, if the last one that was `Visited` was: it is around that one.
    Around,
    /// It is queued only: it is around an op that is not visited.
    Queued,
}

/// One op that hears of a change: its position, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Notice(u32);

impl Notice {
    /// The op at `position` hears in this way.
    #[inline]
    pub const fn new(position: u32, how: How) -> Self {
        Self(position << 2 | how as u32)
    }
    /// Where the op stands.
    #[inline]
    pub const fn position(self) -> u32 {
        self.0 >> 2
    }
    /// How it hears.
    #[inline]
    pub const fn how(self) -> How {
        match self.0 & 3 {
            0 => How::Visited,
            1 => How::Marked,
            2 => How::Around,
            _ => How::Queued,
        }
    }
}

/// What lists are made from.
#[derive(Clone, Copy)]
pub(super) struct Listing<'a> {
    pub program: &'a Program,
    pub edges: &'a Edges,
    pub spots: &'a Spots,
}

/// A list for each value.
#[derive(Default)]
pub(super) struct Notices {
    /// By value, and one more.
    starts: Vec<u32>,
    notices: Vec<Notice>,
    /// Values whose lists are too long to be kept.
    crossing: Option<BitSet<ValueId>>,
}

impl Notices {
    /// Lists who hears of each value.
    pub fn new(listing: Listing<'_>) -> Self {
        let program = listing.program;
        let mut lists = Self {
            starts: Vec::with_capacity(program.values.len() + 1),
            notices: Vec::with_capacity(program.operands.len() + program.values.len()),
            crossing: None,
        };
        for value in program.values.ids() {
            let start = lists.notices.len();
            lists.starts.push(start as u32);
            if lists.list_simply(listing, value) {
                continue;
            }
            lists.notices.truncate(start);
            let mut walk = Walk::new(listing, &mut lists.notices, false);
            walk.value_changed(value);
            if walk.has_crossed() {
                lists.notices.truncate(start);
                let none = || BitSet::new(program.values.len());
                lists.crossing.get_or_insert_with(none).insert(value);
            }
        }
        lists.starts.push(lists.notices.len() as u32);
        lists
    }
    /// Lists who hears of `value` if that is only who defines it and who uses it; otherwise false.
    #[inline]
    fn list_simply(&mut self, listing: Listing<'_>, value: ValueId) -> bool {
        let Listing { program, edges, spots } = listing;
        let row = &program.values[value];
        let owner = match row.def {
            ValueDef::Result(op) => op,
            ValueDef::Arg(block) => program.block_parent_op(block),
        };
        let owner = spots.of(owner);
        if owner.has_any(Spot::INSIDE | Spot::EDGE) || edges.has_followers() {
            return false;
        }
        if owner.has_any(Spot::VISITED) {
            self.notices.push(Notice::new(owner.position(), How::Visited));
        }
        let mut next = row.first_use;
        while next.is_some() {
            let slot = &program.operands[next];
            let user = spots.of(slot.owner);
            if user.has_any(Spot::INSIDE | Spot::HANDS_ON) {
                return false;
            }
            if user.has_any(Spot::VISITED) {
                self.notices.push(Notice::new(user.position(), How::Visited));
            }
            next = slot.next_use;
        }
        true
    }
    /// Who hears of `value`; `None` if that has to be found out.
    #[inline]
    pub fn of(&self, value: ValueId) -> Option<&[Notice]> {
        if self.crossing.as_ref().is_some_and(|crossing| crossing.contains(value)) {
            return None;
        }
        let Some(&[start, end]) = self.starts.get(value.index()..value.index() + 2) else {
            return None;
        };
        Some(&self.notices[start as usize..end as usize])
    }
}
