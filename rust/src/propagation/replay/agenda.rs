//! The readers that are to be visited, by the time at which that is due.

use super::times::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The agenda: at most one time for each reader counts.
#[derive(Clone, Default)]
pub struct Agenda {
    heap: BinaryHeap<Reverse<(Time, u32)>>,
    /// By reader: the time at which it is due.
    due: Vec<Option<Time>>,
}

impl Agenda {
    /// An empty agenda for `num_readers` readers.
    pub fn new(num_readers: usize) -> Self {
        Self { heap: BinaryHeap::new(), due: vec![None; num_readers] }
    }
    /// Forgets everything.
    pub fn clear(&mut self) {
        for Reverse((_, reader)) in self.heap.drain() {
            self.due[reader as usize] = None;
        }
    }
    /// Makes `reader` due at `time`, unless it is due before.
    pub fn add(&mut self, reader: u32, time: Time) {
        let due = &mut self.due[reader as usize];
        if due.is_none_or(|due| time < due) {
            *due = Some(time);
            self.heap.push(Reverse((time, reader)));
        }
    }
    /// The time at which the next reader is due.
    pub fn next_time(&mut self) -> Option<Time> {
        loop {
            let &Reverse((time, reader)) = self.heap.peek()?;
            if self.due[reader as usize] == Some(time) {
                return Some(time);
            }
            self.heap.pop();
        }
    }
    /// Takes the next reader that is due at `time`, the next time.
    pub fn take(&mut self, time: Time) -> Option<u32> {
        if self.next_time()? != time {
            return None;
        }
        let Reverse((_, reader)) = self.heap.pop()?;
        self.due[reader as usize] = None;
        Some(reader)
    }
}
