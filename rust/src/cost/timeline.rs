//! A schedule of the program of one device: when ops and collectives run, given how long each takes.
//!
//! There is one stream of computation, and one for each kind of links. A collective starts when its operand is there and
//! the stream of its links is free; whoever needs its result waits, and other ops run meanwhile. Among the tasks that could
//! start, a stream takes the first in program order, and is idle only if there is none: list scheduling, as XLA's
//! latency-hiding scheduler does it.
//!
//! - An op with regions runs alone: nothing overlaps with it but what is inside. A loop runs its body once after the other.
//! - A collective that can be split in n chunks ([`Transfer::chunks`]) overlaps with the product that makes its operand, or
//!   uses its result: the later of the two starts when the first chunk is there, and ends one chunk after the other has
//!   ended. XLA calls that a windowed einsum, or a collective matmul.
//! - Ops lose a share of the time of a collective that runs meanwhile ([`Times::contention`]).
//! - A collective of stream 0 does not overlap with ops.
//! - Time in which no op runs is exposed communication of the collective that the next op waited for.
//!
//! Takes `n log n` time for n ops, once for each block.

use super::dataflow::{Dataflow, Task, TaskBlock};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How long one run of some ops takes.
#[derive(Clone, Copy, Debug)]
pub struct Computation {
    /// Seconds.
    pub seconds: f64,
    /// Whether it can be computed chunk by chunk along with a collective.
    pub is_product: bool,
}

/// How long one run of some collectives takes.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Seconds.
    pub seconds: f64,
    /// The stream of its links; 0, that of computation, if nothing is computed meanwhile.
    pub stream: usize,
    /// The number of chunks that it is split in; 1 if it is not.
    pub chunks: f64,
}

/// The schedule of a program.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Seconds of the whole program.
    pub seconds: f64,
    /// Exposed seconds of each row of `ProgramCost::collectives`, over all its runs.
    pub exposed: Vec<f64>,
}

/// The times that a schedule is made of, by row of `ProgramCost::ops` and `ProgramCost::collectives`.
pub struct Times<'a> {
    /// Of the rows of ops.
    pub computations: &'a [Computation],
    /// Of the rows of collectives.
    pub transfers: &'a [Transfer],
    /// The number of streams, that of computation included.
    pub num_streams: usize,
    /// The share of the time of a collective that ops which overlap with it lose, as both use the memory.
    pub contention: f64,
}

/// Schedules `flow`, whose entry block is the first.
pub fn timeline(flow: &Dataflow, times: &Times<'_>) -> Timeline {
    let mut run = Run {
        flow,
        times,
        left: flow.tasks.iter().map(|task| task.num_needs).collect(),
        states: vec![State::default(); flow.tasks.len()],
        streams: Vec::new(),
        block_seconds: vec![0.0; flow.blocks.len()],
        exposed: vec![0.0; times.transfers.len()],
        lost: 0.0,
        open: Vec::new(),
        told: Vec::new(),
    };
    for at in (0..flow.blocks.len()).rev() {
        run.block_seconds[at] = run.schedule(&flow.blocks[at]);
    }
    Timeline { seconds: run.block_seconds.first().copied().unwrap_or(0.0), exposed: run.exposed }
}

/// A time in seconds, which is never NaN.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Seconds(f64);

impl Eq for Seconds {}

impl PartialOrd for Seconds {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Seconds {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// No task.
const NONE: u32 = u32::MAX;

/// What is known of a task so far.
#[derive(Clone, Copy, Debug)]
struct State {
    /// When it can start, as far as the tasks that it needs are scheduled.
    ready: f64,
    /// The collective that it could not start before; [`NONE`] if that was no collective.
    waits_for: u32,
    /// When the collective or product ends with which it overlaps chunk by chunk, and the number of chunks.
    ends_after: (f64, f64),
    /// Of a task that takes no time: the task whose result it passes on, and when all others that it needs end.
    passes_on: (u32, f64),
    start: f64,
    end: f64,
}

impl Default for State {
    fn default() -> Self {
        let [ready, start, end] = [0.0; 3];
        let (ends_after, passes_on) = ((0.0, 1.0), (NONE, 0.0));
        Self { ready, waits_for: NONE, ends_after, passes_on, start, end }
    }
}

/// Tasks that wait for one stream.
#[derive(Default)]
struct Stream {
    free: f64,
    /// The collective that ran last.
    last: Option<u32>,
    /// Tasks by the time at which they can start.
    later: BinaryHeap<Reverse<(Seconds, u32)>>,
    /// Tasks that can start when the stream is free.
    now: BinaryHeap<Reverse<u32>>,
}

impl Stream {
    /// Adds a task that can start at `ready`.
    fn add(&mut self, ready: f64, task: u32) {
        // A stream is never free earlier than it is now.
        if ready <= self.free {
            self.now.push(Reverse(task));
        } else {
            self.later.push(Reverse((Seconds(ready), task)));
        }
    }
    /// When it starts its next task.
    fn next_start(&self) -> Option<f64> {
        if !self.now.is_empty() {
            return Some(self.free);
        }
        self.later.peek().map(|Reverse((ready, _))| ready.0.max(self.free))
    }
    /// Takes the first task in program order that can start at `start`.
    fn take(&mut self, start: f64) -> Option<u32> {
        while let Some(&Reverse((ready, task))) = self.later.peek() {
            if ready.0 > start {
                break;
            }
            self.later.pop();
            self.now.push(Reverse(task));
        }
        self.now.pop().map(|Reverse(task)| task)
    }
}

/// Whether `task` takes no time.
fn is_free(flow: &Dataflow, task: &Task) -> bool {
    task.row.is_none() && task.collective.is_none() && flow.bodies(task).is_empty()
}

struct Run<'a> {
    flow: &'a Dataflow,
    times: &'a Times<'a>,
    /// The number of tasks that each task needs and that are not scheduled yet.
    left: Vec<u32>,
    states: Vec<State>,
    streams: Vec<Stream>,
    block_seconds: Vec<f64>,
    exposed: Vec<f64>,
    /// What overlapping ops lose to the collectives that were started, as far as none has lost it yet.
    lost: f64,
    /// The tasks that are released together, and those that can start after one; fields to reuse their memory.
    open: Vec<u32>,
    told: Vec<u32>,
}

impl Run<'_> {
    /// Schedules one run of `block`, and returns its seconds.
    fn schedule(&mut self, block: &TaskBlock) -> f64 {
        self.streams.clear();
        self.lost = 0.0;
        self.streams.resize_with(self.times.num_streams.max(1), Stream::default);
        for task in block.tasks.0..block.tasks.1 {
            if self.flow.tasks[task as usize].num_needs == 0 {
                self.release(task);
            }
        }
        loop {
            let starts = self.streams.iter().enumerate().filter_map(|(at, stream)| {
                // At the same time collectives start first.
                Some((Seconds(stream.next_start()?), Reverse(at)))
            });
            let Some((Seconds(start), Reverse(at))) = starts.min() else { break };
            let Some(task) = self.streams[at].take(start) else { break };
            self.place(task, at, start, block.times);
        }
        let end = self.streams.iter().map(|stream| stream.free).fold(0.0, f64::max);
        self.expose_tail(end, block.times);
        end
    }
    /// Seconds of `task` by itself, and whether it runs alone.
    fn cost(&self, task: &Task) -> (f64, bool) {
        if let Some(row) = task.collective {
            return (self.times.transfers[row as usize].seconds, false);
        }
        let own = task.row.map_or(0.0, |row| self.times.computations[row as usize].seconds);
        let bodies = self.flow.bodies(task);
        let inside: f64 =
            bodies.iter().map(|&(block, times)| self.block_seconds[block as usize] * times).sum();
        (own + inside, !bodies.is_empty())
    }
    /// Puts a task that can start on its stream; one that takes no time is done at once.
    fn release(&mut self, task: u32) {
        let mut open = std::mem::take(&mut self.open);
        open.push(task);
        while let Some(task) = open.pop() {
            let state = &mut self.states[task as usize];
            let known = &self.flow.tasks[task as usize];
            if !is_free(self.flow, known) {
                let ready = state.ready;
                let stream =
                    known.collective.map_or(0, |row| self.times.transfers[row as usize].stream);
                self.streams[stream].add(ready, task);
                continue;
            }
            (state.start, state.end) = (state.ready, state.ready);
            self.tell_users(task, &mut open);
        }
        self.open = open;
    }
    /// Runs `task` on a stream from `start`.
    fn place(&mut self, task: u32, at: usize, start: f64, times: f64) {
        let known = self.flow.tasks[task as usize];
        let (mut seconds, is_alone) = self.cost(&known);
        let mut start = start;
        let mut waits_for = self.states[task as usize].waits_for;
        if is_alone {
            for stream in &self.streams[1..] {
                if stream.free > start {
                    (start, waits_for) = (stream.free, stream.last.unwrap_or(NONE));
                }
            }
        }
        if at == 0 && !is_alone {
            let idle = start - self.streams[0].free;
            seconds += (self.lost - idle * self.times.contention).max(0.0);
            self.lost = 0.0;
        } else if at > 0 {
            self.lost += seconds * self.times.contention;
        }
        let state = &mut self.states[task as usize];
        let (other, chunks) = state.ends_after;
        let after = if chunks > 1.0 { other + seconds / chunks } else { start };
        let undelayed = start + seconds;
        let end = undelayed.max(after);
        (state.start, state.end) = (start, end);
        if let (0, Some(row)) = (at, known.collective) {
            self.exposed[row as usize] += seconds * times;
        }
        if at == 0 && waits_for != NONE {
            let idle = start - self.streams[0].free;
            self.exposed[waits_for as usize] += (idle + (end - undelayed)).max(0.0) * times;
        }
        if is_alone {
            self.streams.iter_mut().for_each(|stream| stream.free = end);
        }
        let stream = &mut self.streams[at];
        stream.free = end;
        stream.last = known.collective;
        let mut told = std::mem::take(&mut self.told);
        self.tell_users(task, &mut told);
        for user in told.drain(..) {
            self.release(user);
        }
        self.told = told;
    }
    /// Tells the tasks that need `task` when it ends; those that can start now go to `open`.
    fn tell_users(&mut self, task: u32, open: &mut Vec<u32>) {
        let flow = self.flow;
        for &user in flow.users(task) {
            self.tell(task, user);
            let left = &mut self.left[user as usize];
            *left -= 1;
            if *left == 0 {
                open.push(user);
            }
        }
    }
    /// Tells `user`, which needs `task`, when that ends.
    fn tell(&mut self, task: u32, user: u32) {
        let (flow, made) = (self.flow, self.states[task as usize]);
        let known = self.flow.tasks[task as usize];
        // What a task without work passes on may be split in chunks as if it was used directly.
        let is_free = is_free(flow, &known);
        let (source, others) = match made.passes_on {
            (source, others) if is_free && source != NONE => (source, others),
            _ => (task, 0.0),
        };
        let from = self.states[source as usize];
        let chunks = self.chunks(source, user);
        let first =
            if chunks > 1.0 { from.start + (from.end - from.start) / chunks } else { made.end };
        let ready = first.max(others);
        let collective = match self.flow.tasks[source as usize].collective {
            Some(row) => row,
            None if source == task && !is_free => NONE,
            None => made.waits_for,
        };
        let state = &mut self.states[user as usize];
        if chunks > 1.0 && from.end > state.ends_after.0 {
            state.ends_after = (from.end, chunks);
        }
        if ready >= state.ready {
            (state.ready, state.waits_for) = (ready, collective);
        }
        let (known, end) = state.passes_on;
        if known == NONE {
            state.passes_on = (source, others.max(end));
        } else if made.end > self.states[known as usize].end {
            let end = self.states[known as usize].end.max(end).max(others);
            self.states[user as usize].passes_on = (source, end);
        } else {
            self.states[user as usize].passes_on = (known, end.max(made.end));
        }
    }
    /// The number of chunks that `user` uses what `source` makes in; 1 if it needs all of it.
    fn chunks(&self, source: u32, user: u32) -> f64 {
        let (source, user) = (&self.flow.tasks[source as usize], &self.flow.tasks[user as usize]);
        let is_product = |task: &Task| {
            task.row.is_some_and(|row| self.times.computations[row as usize].is_product)
        };
        let chunks = |row: u32| self.times.transfers[row as usize].chunks;
        match (source.collective, user.collective) {
            (Some(row), None) if is_product(user) => chunks(row),
            (None, Some(row)) if is_product(source) => chunks(row),
            _ => 1.0,
        }
    }
    /// Counts what collectives take after the last op.
    fn expose_tail(&mut self, end: f64, times: f64) {
        let idle = end - self.streams[0].free;
        let last = self.streams[1..].iter().find(|stream| stream.free >= end);
        if let (true, Some(row)) = (idle > 0.0, last.and_then(|stream| stream.last)) {
            self.exposed[row as usize] += idle * times;
        }
    }
}
