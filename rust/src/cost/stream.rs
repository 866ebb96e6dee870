//! An in-order resource of a device: the compute units, or the links of one kind. It runs one task at a time, and takes the first
//! in program order that is ready.

use super::priority_queue::PriorityQueue;
use crate::work::seconds::Seconds;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Tasks that wait for one stream.
#[derive(Default)]
pub(crate) struct Stream {
    /// When the tasks that it has taken end.
    pub free: f64,
    /// The collective that ran last.
    pub last: Option<u32>,
    /// The task that ran last.
    pub task: u32,
    /// Tasks that need it, and whose start depends on its end, which may still move.
    pub waiting: Vec<u32>,
    /// Tasks by the time at which they can start.
    later: BinaryHeap<Reverse<(Seconds, u32)>>,
    /// Ready tasks, counted from `first`.
    now: PriorityQueue,
    first: u32,
}

impl Stream {
    /// A stream for tasks from `first` to before `end`.
    pub fn of((first, end): (u32, u32)) -> Self {
        let now = PriorityQueue::below((end - first) as usize);
        Self { now, first, ..Self::default() }
    }
    /// Adds a task that can start at `ready`.
    pub fn add(&mut self, ready: f64, task: u32) {
        // A stream is never free earlier than it is now.
        if ready <= self.free {
            self.now.add((task - self.first) as usize);
        } else {
            self.later.push(Reverse((Seconds(ready), task)));
        }
    }
    /// When it starts its next task.
    pub fn next_start(&self) -> Option<f64> {
        if !self.now.is_empty() {
            return Some(self.free);
        }
        self.later.peek().map(|Reverse((ready, _))| ready.0.max(self.free))
    }
    /// Takes the first task in program order that can start at `start`.
    pub fn take(&mut self, start: f64) -> Option<u32> {
        let is_ready = |&Reverse((ready, _)): &Reverse<(Seconds, u32)>| ready.0 <= start;
        while self.later.peek().is_some_and(is_ready) {
            let Some(Reverse((_, task))) = self.later.pop() else { break };
            if self.now.is_empty() && !self.later.peek().is_some_and(is_ready) {
                return Some(task);
            }
            self.now.add((task - self.first) as usize);
        }
        self.now.take_first().map(|task| self.first + task as u32)
    }
}
