//! The table of local values that are broadcasts, with their operands.

use crate::index::{Id, ValueId};
use crate::spmd::lower::emission::local_value::{LocalValue, Shard};
use std::rc::Rc;

/// The operand of a broadcast.
#[derive(Clone, Debug)]
pub(in crate::spmd::lower) struct Broadcast {
    pub operand: LocalValue,
    /// For each dim of the operand that of the result.
    pub dims: Rc<[i64]>,
}

/// The values that are broadcasts, with their operands.
#[derive(Default)]
pub(in crate::spmd::lower) struct Broadcasts {
    known: Vec<Known>,
    /// By value: the index of the entry that was added last for it, as the shard of some tensor.
    last: Vec<Option<u32>>,
}

/// A shard that is a broadcast.
struct Known {
    shard: Shard,
    broadcast: Broadcast,
    /// The index of the next entry for this value.
    next: Option<u32>,
}

impl Broadcasts {
    pub(in crate::spmd::lower) fn get(&self, shard: &Shard) -> Option<&Broadcast> {
        self.place(shard).map(|place| &self.known[place].broadcast)
    }
    fn place(&self, shard: &Shard) -> Option<usize> {
        let mut next = self.last.get(shard.0.index()).copied().flatten();
        while let Some(place) = next {
            let known = &self.known[place as usize];
            if known.shard == *shard {
                return Some(place as usize);
            }
            next = known.next;
        }
        None
    }
    pub(in crate::spmd::lower) fn insert(&mut self, shard: Shard, broadcast: Broadcast) {
        if let Some(place) = self.place(&shard) {
            self.known[place].broadcast = broadcast;
            return;
        }
        let at = shard.0.index();
        if self.last.len() <= at {
            self.last.resize(at + 1, None);
        }
        let next = self.last[at].replace(self.known.len() as u32);
        self.known.push(Known { shard, broadcast, next });
    }
    /// Whether `value` is a broadcast, as the shard of some tensor.
    #[inline]
    pub(in crate::spmd::lower) fn has(&self, value: ValueId) -> bool {
        self.last.get(value.index()).is_some_and(Option::is_some)
    }
    /// Whether `shard` is a broadcast.
    pub(in crate::spmd::lower) fn contains(&self, shard: &Shard) -> bool {
        self.get(shard).is_some()
    }
}
