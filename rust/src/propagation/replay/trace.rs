//! The trace of a run, turn by turn.
//!
//! A *turn* is what happens at one [`Time`]: the visit of a result of the main function, or of the op at which the
//! queue stands together with the visits of all ops that are queued again by that. Between turns nothing is queued
//! but what is still to come, so the state is the shardings alone.

use super::times::Time;
use crate::index::ShardingId;
use crate::propagation::observe::{Change, Observer};
use std::cell::RefCell;
use std::ops::Range;

/// A sharding that changes in a turn.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    /// What has the sharding, by its number; see [`super::slots`].
    pub slot: u32,
    /// The sharding before.
    pub old: ShardingId,
    /// The sharding after.
    pub new: ShardingId,
}

/// The changes of the turn at hand, to which the engine adds while others hold it.
pub struct Log {
    writes: RefCell<Vec<Write>>,
    num_values: usize,
}

impl Log {
    /// An empty log of a program of `num_values` values.
    pub fn new(num_values: usize) -> Self {
        Self { writes: RefCell::default(), num_values }
    }
    /// Whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        self.writes.borrow().is_empty()
    }
    /// Moves all changes to the end of `out`.
    pub fn drain_to(&self, out: &mut Vec<Write>) {
        out.append(&mut self.writes.borrow_mut());
    }
}

impl Observer for &Log {
    fn changed(&mut self, Change { slot, old, new, .. }: Change) {
        let slot = super::slots::number(slot, self.num_values);
        self.writes.borrow_mut().push(Write { slot, old, new });
    }
}

/// A turn.
#[derive(Clone, Copy, Debug)]
struct Turn {
    time: Time,
    /// The number of changes before it.
    first_write: u32,
}

/// All turns of a run in which something changed or an op was visited that was marked.
#[derive(Default)]
pub struct Trace {
    turns: Vec<Turn>,
    writes: Vec<Write>,
    /// For each turn and each op taken in it, the position of the op and the index of the turn.
    taken: Vec<(u32, u32)>,
    /// By position: where the turns of the op start in `turns_of_ops`.
    first_of_op: Vec<u32>,
    turns_of_ops: Vec<u32>,
}

impl Trace {
    /// Adds the turn at `time`, in which the ops at the positions `taken` were taken, and `log` has the changes.
    pub fn add(&mut self, time: Time, log: &Log, taken: impl IntoIterator<Item = u32>) {
        let turn = self.turns.len() as u32;
        self.turns.push(Turn { time, first_write: self.writes.len() as u32 });
        log.drain_to(&mut self.writes);
        self.taken.extend(taken.into_iter().map(|position| (position, turn)));
    }
    /// Lists the turns by op, of which there are `num_ops`; no turn is added after that.
    pub fn finish(&mut self, num_ops: usize) {
        let taken = std::mem::take(&mut self.taken);
        let mut next = vec![0; num_ops + 1];
        for &(position, _) in &taken {
            next[position as usize + 1] += 1;
        }
        for at in 0..num_ops {
            next[at + 1] += next[at];
        }
        self.first_of_op.clone_from(&next);
        self.turns_of_ops = vec![0; taken.len()];
        // In the order of turns, so that those of each op stay in it.
        for (position, turn) in taken {
            let at = &mut next[position as usize];
            self.turns_of_ops[*at as usize] = turn;
            *at += 1;
        }
    }
    /// The time of the turn at `index`, if there is one.
    #[inline]
    pub fn time(&self, index: usize) -> Option<Time> {
        self.turns.get(index).map(|turn| turn.time)
    }
    fn write_range(&self, index: usize) -> Range<usize> {
        let next = self.turns.get(index + 1);
        let end = next.map_or(self.writes.len(), |next| next.first_write as usize);
        self.turns[index].first_write as usize..end
    }
    /// The changes of the turn at `index`.
    #[inline]
    pub fn writes(&self, index: usize) -> &[Write] {
        &self.writes[self.write_range(index)]
    }
    /// The changes of the turns from `from` to the last one before `time`, and the index of the turn after them.
    pub fn before(&self, from: usize, time: Time) -> (&[Write], usize) {
        let rest = &self.turns[from..];
        // It is near, most times.
        let is_before = |turn: &Turn| turn.time < time;
        let mut reach = 1;
        while rest.get(reach).is_some_and(is_before) {
            reach *= 2;
        }
        let near = &rest[..reach.min(rest.len())];
        let end = from + near.partition_point(is_before);
        let at = |index: usize| {
            self.turns.get(index).map_or(self.writes.len(), |turn| turn.first_write as usize)
        };
        (&self.writes[at(from)..at(end)], end)
    }
    /// The time of the first turn, from the one at index `from` on, in which the op at `position` is taken.
    pub fn next_of_op(&self, position: u32, from: usize) -> Option<Time> {
        let (start, end) = (position as usize, position as usize + 1);
        let range = self.first_of_op[start] as usize..self.first_of_op[end] as usize;
        let turns = &self.turns_of_ops[range];
        let next = turns.partition_point(|&turn| (turn as usize) < from);
        turns.get(next).map(|&turn| self.turns[turn as usize].time)
    }
}
