//! The trace of a run, turn by turn.
//!
//! A *turn* is everything at one [`Time`]: the visit of a result of the main function; or the visit
//! of the next op in the queue, and of all ops that are queued again because of it. Between turns
//! the queue has only the following ops, so the state is the shardings alone.

use super::times::{Time, Times};
use crate::index::ShardingId;
use crate::propagation::observe::{Change, Observer};
use std::cell::RefCell;
use std::ops::Range;

/// A change of a sharding in a turn.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    /// The number of the slot, see [`super::slots`].
    pub slot: u32,
    /// The sharding before.
    pub old: ShardingId,
    /// The sharding after.
    pub new: ShardingId,
}

/// The changes of the current turn. Shared: the engine adds to it as an observer, and the replay
/// reads it.
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
    /// The number of ops that are taken before it.
    first_taken: u32,
}

/// Turns, in order of time.
#[derive(Clone, Default)]
pub struct Turns {
    turns: Vec<Turn>,
    writes: Vec<Write>,
    /// The positions of the ops that are taken, turn by turn.
    taken: Vec<u32>,
}

impl Turns {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.turns.clear();
        self.writes.clear();
        self.taken.clear();
    }
    /// The number of turns.
    #[inline]
    pub fn len(&self) -> usize {
        self.turns.len()
    }
    /// The number of ops that are taken; repeated ones count each time.
    pub fn num_taken(&self) -> usize {
        self.taken.len()
    }
    /// Adds the turn at `time`, with the taken ops at the positions `taken` and the changes in
    /// `log`.
    #[inline]
    pub fn add(&mut self, time: Time, log: &Log, taken: &[u32]) {
        let (first_write, first_taken) = (self.writes.len() as u32, self.taken.len() as u32);
        self.turns.push(Turn { time, first_write, first_taken });
        log.drain_to(&mut self.writes);
        self.taken.extend_from_slice(taken);
    }
    /// The time of the turn at `index`.
    #[inline]
    pub fn time(&self, index: usize) -> Time {
        self.turns[index].time
    }
    /// The number of changes before the turn at `index`.
    #[inline]
    fn first_write(&self, index: usize) -> usize {
        self.turns.get(index).map_or(self.writes.len(), |turn| turn.first_write as usize)
    }
    #[inline]
    fn first_taken(&self, index: usize) -> usize {
        self.turns.get(index).map_or(self.taken.len(), |turn| turn.first_taken as usize)
    }
    /// The changes of these turns.
    #[inline]
    pub fn writes(&self, turns: Range<usize>) -> &[Write] {
        &self.writes[self.first_write(turns.start)..self.first_write(turns.end)]
    }
    /// The positions of the ops that are taken in these turns.
    #[inline]
    pub fn taken(&self, turns: Range<usize>) -> &[u32] {
        &self.taken[self.first_taken(turns.start)..self.first_taken(turns.end)]
    }
    /// Adds `turns` of `other`, which come after all turns of `self`.
    fn append(&mut self, other: &Self, turns: Range<usize>) {
        let writes = self.writes.len().wrapping_sub(other.first_write(turns.start)) as u32;
        let taken = self.taken.len().wrapping_sub(other.first_taken(turns.start)) as u32;
        self.writes.extend_from_slice(other.writes(turns.clone()));
        self.taken.extend_from_slice(other.taken(turns.clone()));
        self.turns.extend(other.turns[turns].iter().map(|turn| Turn {
            time: turn.time,
            first_write: turn.first_write.wrapping_add(writes),
            first_taken: turn.first_taken.wrapping_add(taken),
        }));
    }
}

/// The turns of a run in which a sharding changed or a marked op was visited; other turns may be
/// included.
pub struct Trace {
    turns: Turns,
    /// For each 64 times a bit mask of those with a turn, and the number of turns before them.
    has_turn: Vec<(u64, u32)>,
    /// For each position the start of the op's times in `times_of_ops`.
    first_of_op: Vec<u32>,
    /// The times of the turns in which each op is taken, in order.
    times_of_ops: Vec<Time>,
}

impl Trace {
    /// The trace of `turns`.
    pub fn new(turns: Turns, times: Times) -> Self {
        let num_ops = times.num_ops() as usize;
        // Counted two places further, so that filling the lists moves each start to its place.
        let mut first_of_op = vec![0; num_ops + 2];
        for &position in &turns.taken {
            first_of_op[position as usize + 2] += 1;
        }
        for at in 2..first_of_op.len() {
            first_of_op[at] += first_of_op[at - 1];
        }
        let mut times_of_ops = vec![Time::START; turns.taken.len()];
        let mut has_turn = vec![(0, 0); times.len().div_ceil(64)];
        for (index, &Turn { time, .. }) in turns.turns.iter().enumerate() {
            has_turn[time.number() / 64].0 |= 1_u64 << (time.number() % 64);
            for &position in turns.taken(index..index + 1) {
                let at = &mut first_of_op[position as usize + 1];
                times_of_ops[*at as usize] = time;
                *at += 1;
            }
        }
        let mut count = 0;
        for (word, before) in &mut has_turn {
            *before = count;
            count += word.count_ones();
        }
        Self { turns, has_turn, first_of_op, times_of_ops }
    }
    /// The turns.
    #[inline]
    pub fn turns(&self) -> &Turns {
        &self.turns
    }
    /// The index of the first turn at `time` or later, and whether it is at `time`.
    #[inline]
    pub fn find(&self, time: Time) -> (usize, bool) {
        let (word, before) = self.has_turn[time.number() / 64];
        let bit = 1_u64 << (time.number() % 64);
        let index = before + (word & (bit - 1)).count_ones();
        (index as usize, word & bit != 0)
    }
    /// The time of the first turn after `time` in which the op at `position` is taken.
    #[inline]
    pub fn next_of_op(&self, position: u32, time: Time) -> Option<Time> {
        let start = self.first_of_op[position as usize] as usize;
        let end = self.first_of_op[position as usize + 1] as usize;
        let times = &self.times_of_ops[start..end];
        let next = times.partition_point(|&other| other <= time);
        times.get(next).copied()
    }
    /// The turns of this trace with those of `made` in place of turns at the same times; up to
    /// `last`, if given.
    pub fn replaced(&self, made: &Turns, last: Option<Time>) -> Turns {
        let (old, mut all) = (&self.turns, Turns::default());
        all.turns.reserve(old.turns.len() + made.turns.len());
        all.writes.reserve(old.writes.len() + made.writes.len());
        all.taken.reserve(old.taken.len() + made.taken.len());
        let mut next = 0;
        for index in 0..made.len() {
            let (end, is_replaced) = self.find(made.time(index));
            all.append(old, next..end);
            all.append(made, index..index + 1);
            next = end + usize::from(is_replaced);
        }
        let end = last.map_or(old.len(), |last| {
            let (end, is_last) = self.find(last);
            end + usize::from(is_last)
        });
        all.append(old, next..end.max(next));
        all
    }
}
