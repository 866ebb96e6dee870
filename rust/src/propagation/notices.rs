//! Who is to hear of a change of each value, worked out once.
//!
//! Two things follow from a change. Every op whose visit reads the sharding becomes dirty. And the
//! ops that the reference notifies are queued, in its order, for that order is part of the result:
//! the users of the other targets of an edge, the defining op, the users of the value, with edges in
//! the place of ops that only let values flow. Of users the one added last comes first.
//!
//! Where values cross calls a list could be as long as the program for each of many values. Those
//! lists are made when the values change ([`super::notify`]).

use super::edges::Edges;
use super::notify::Walk;
use super::spots::{Spot, Spots};
use crate::bitset::BitSet;
use crate::index::{Id, ValueId};
use crate::ir::{Program, Value, ValueDef};

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
    /// Values whose lists are made when they change: those that would be too long, and those inside of
    /// ops that are visited, which are the scalars of reductions and hardly ever change.
    unlisted: Option<BitSet<ValueId>>,
}

/// Whether the list of a value is made of its definition and uses.
enum Listed {
    Simply,
    Specially,
    Never,
}

impl Notices {
    /// Lists who hears of each value.
    pub fn new(listing: Listing<'_>) -> Self {
        let program = listing.program;
        let mut lists = Self {
            starts: Vec::with_capacity(program.values.len() + 1),
            notices: Vec::with_capacity(program.operands.len() + program.values.len()),
            unlisted: None,
        };
        let has_followers = listing.edges.has_followers();
        for (index, row) in program.values.iter().enumerate() {
            let start = lists.notices.len();
            lists.starts.push(start as u32);
            let mut is_listed = match lists.list_simply(listing, row) {
                Listed::Simply if !has_followers => continue,
                Listed::Never => false,
                Listed::Simply | Listed::Specially => true,
            };
            let value = ValueId::from_index(index);
            lists.notices.truncate(start);
            if is_listed {
                let mut walk = Walk::new(listing, &mut lists.notices, false);
                walk.value_changed(value);
                is_listed = !walk.has_crossed();
            }
            if !is_listed {
                lists.notices.truncate(start);
                let none = || BitSet::new(program.values.len());
                lists.unlisted.get_or_insert_with(none).insert(value);
            }
        }
        lists.starts.push(lists.notices.len() as u32);
        lists
    }
    /// Lists who defines and who uses the value of this row, as far as that is all.
    #[inline]
    fn list_simply(&mut self, listing: Listing<'_>, row: &Value) -> Listed {
        let Listing { program, spots, .. } = listing;
        let owner = match row.def() {
            ValueDef::Result(op) => op,
            ValueDef::Arg(block) => program.block_parent_op(block),
        };
        let owner = spots.of(owner);
        if owner.has_any(Spot::INSIDE) {
            return Listed::Never;
        }
        if owner.has_any(Spot::VISITED) {
            self.notices.push(Notice::new(owner.position(), How::Visited));
        }
        let mut is_simple = !owner.has_any(Spot::EDGE);
        let mut next = row.first_use;
        while next.is_some() && is_simple {
            let slot = &program.operands[next];
            let user = spots.of(slot.owner);
            if user.has_any(Spot::VISITED) {
                self.notices.push(Notice::new(user.position(), How::Visited));
            }
            is_simple = !user.has_any(Spot::INSIDE | Spot::HANDS_ON);
            next = slot.next_use;
        }
        if is_simple {
            Listed::Simply
        } else {
            Listed::Specially
        }
    }
    /// Who hears of `value`; `None` if that has to be found out.
    #[inline]
    pub fn of(&self, value: ValueId) -> Option<&[Notice]> {
        if self.unlisted.as_ref().is_some_and(|unlisted| unlisted.contains(value)) {
            return None;
        }
        let Some(&[start, end]) = self.starts.get(value.index()..value.index() + 2) else {
            return None;
        };
        Some(&self.notices[start as usize..end as usize])
    }
}
