//! The times of a run at which something may change, in order.

use std::cmp::Ordering;

/// A stage of a greedy run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stage {
    /// Nothing has happened yet.
    Start,
    /// Results of the main function and returned values, before the queue.
    Before,
    /// The queue, which goes over the ops by their positions.
    Queue,
    /// Results of the main function and returned values, after the queue.
    After,
}

/// A time: the greedy run, its stage, and the place at which the stage is: the index of a result of the main
/// function, or the position at which the queue stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Time {
    /// The index of the greedy run.
    pub run: u16,
    /// The stage.
    pub stage: Stage,
    /// The index or position.
    pub place: u32,
}

impl Time {
    /// Before everything.
    pub const START: Self = Self { run: 0, stage: Stage::Start, place: 0 };

    /// A number that is larger for a later time.
    #[inline]
    pub const fn number(self) -> u64 {
        (self.run as u64) << 40 | (self.stage as u64) << 32 | self.place as u64
    }
}

impl Ord for Time {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.number().cmp(&other.number())
    }
}

impl PartialOrd for Time {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
