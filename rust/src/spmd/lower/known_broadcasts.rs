//! The local values that are broadcasts.

use super::held::{Held, Shard};
use crate::index::{Id, ValueId};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// The operand of a broadcast.
#[derive(Clone, Debug)]
pub(super) struct Broadcast {
    pub operand: Held,
    /// For each dim of the operand that of the result.
    pub dims: Rc<[i64]>,
}

/// The values that are broadcasts, and of what.
#[derive(Default)]
pub(super) struct Broadcasts {
    known: FxHashMap<Shard, Broadcast>,
    /// Whether each value is a broadcast, as the shard of some tensor.
    are: Vec<bool>,
}

impl Broadcasts {
    pub(super) fn get(&self, shard: &Shard) -> Option<&Broadcast> {
        if self.has(shard.0) {
            self.known.get(shard)
        } else {
            None
        }
    }
    pub(super) fn insert(&mut self, shard: Shard, new: Broadcast) {
        let at = shard.0.index();
        if self.are.len() <= at {
            self.are.resize(at + 1, false);
        }
        self.are[at] = true;
        self.known.insert(shard, new);
    }
    /// Whether `value` is a broadcast, as the shard of some tensor.
    pub(super) fn has(&self, value: ValueId) -> bool {
        self.are.get(value.index()).copied().unwrap_or(false)
    }
    /// Whether `shard` is a broadcast.
    pub(super) fn contains(&self, shard: &Shard) -> bool {
        self.get(shard).is_some()
    }
}
