//! The readers that are to be visited, by the time at which that is due.

use super::times::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The agenda: at most one time for each reader counts.
#[derive(Clone, Default)]
pub struct Agenda {
    /// Times and readers, as one number each, so that they are compared at once.
    heap: BinaryHeap<Reverse<u128>>,
    /// By reader: the time at which it is due.
    due: Vec<Option<Time>>,
}

fn entry(time: Time, reader: u32) -> Reverse<u128> {
    Reverse(u128::from(time.number()) << 32 | u128::from(reader))
}

/// The number of the time of an entry, and its reader.
fn parts(Reverse(entry): Reverse<u128>) -> (u64, u32) {
    ((entry >> 32) as u64, entry as u32)
}

impl Agenda {
    /// An empty agenda for `num_readers` readers.
    pub fn new(num_readers: usize) -> Self {
        Self { heap: BinaryHeap::new(), due: vec![None; num_readers] }
    }
    /// Forgets everything.
    pub fn clear(&mut self) {
        for entry in self.heap.drain() {
            self.due[parts(entry).1 as usize] = None;
        }
    }
    /// Makes `reader` due at `time`, unless it is due before.
    pub fn add(&mut self, reader: u32, time: Time) {
        let due = &mut self.due[reader as usize];
        if due.is_none_or(|due| time < due) {
            *due = Some(time);
            self.heap.push(entry(time, reader));
        }
    }
    /// The time at which the next reader is due.
    pub fn next_time(&mut self) -> Option<Time> {
        loop {
            let (time, reader) = parts(*self.heap.peek()?);
            let due = self.due[reader as usize].filter(|due| due.number() == time);
            if due.is_some() {
                return due;
            }
            self.heap.pop();
        }
    }
    /// Takes the next reader that is due at `time`, the next time.
    pub fn take(&mut self, time: Time) -> Option<u32> {
        if self.next_time()? != time {
            return None;
        }
        let (_, reader) = parts(self.heap.pop()?);
        self.due[reader as usize] = None;
        Some(reader)
    }
}
