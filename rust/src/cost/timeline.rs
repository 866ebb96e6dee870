//! A schedule of the program of one device: when ops and collectives run, given how long each takes.
//!
//! There is one compute stream, and one for each kind of link. A collective starts when its operand is ready and the stream of its
//! links is free; ops that need its result wait, and others run meanwhile. Among the tasks that are ready, a stream takes the first
//! in program order, and is idle only if there is none: list scheduling, as in XLA's latency-hiding scheduler.
//!
//! - An op with regions runs alone: it overlaps only with ops inside it. A loop runs its trips one after the other.
//! - A collective that can be split in n chunks ([`chunks`](super::times::Transfer::chunks)) overlaps with the dot that produces its operand, or consumes
//!   its result: the later of the two starts when the first chunk is ready, and ends one chunk after the other has ended. XLA calls
//!   that a windowed einsum, or a collective matmul.
//! - Ops are slowed by a share of the time of a concurrent collective ([`slows`](super::times::Transfer::slows)).
//! - A collective whose steps kernels of products take ([`in_products`](super::times::Transfer::in_products)) stands still beside
//!   other ops.
//! - A collective of stream 0 does not overlap with ops.
//! - A copy to or from the host is like a collective, on a stream for its direction, and does not slow ops.
//! - In a loop whose copies are pipelined ([`pipelines_copies`](Times::pipelines_copies)), nothing waits for a copy: each has the length of an
//!   iteration to end, so that an iteration takes no less than the copies of either direction. XLA for TPUs starts those to the host
//!   at the begin of the next iteration, and those from it in the one before (`dynamic-update-slice-start`, `dynamic-slice-start`).
//!   The copies of the first and the last iteration, which nothing hides, are not counted.
//! - Time in which no op runs is exposed communication, attributed to the collective that the next op waits for.
//!
//! Takes `n log n` time for n ops, once for each block.

use super::dataflow::{Dataflow, TaskBlock};
use super::stream::Stream;
use super::task_kinds::{kinds, Kind};
use super::times::Times;
use crate::work::seconds::Seconds;

/// The schedule of a program.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Seconds of the whole program.
    pub seconds: f64,
    /// Exposed seconds of each row of `ProgramCost::collectives` and of each group of copies, over all its runs.
    pub exposed: Vec<f64>,
}

/// Schedules `flow`, whose entry block is the first.
pub fn timeline(flow: &Dataflow, times: &Times<'_>) -> Timeline {
    let mut run = Run {
        flow,
        times,
        left: flow.tasks.iter().map(|task| task.num_needs).collect(),
        states: vec![State::default(); flow.tasks.len()],
        sent: Vec::new(),
        kinds: Vec::new(),
        streams: Vec::new(),
        block_seconds: vec![0.0; flow.blocks.len()],
        exposed: vec![0.0; times.transfers.len()],
        lost: 0.0,
        open: Vec::new(),
    };
    (run.kinds, run.sent) = kinds(flow, times);
    for at in (0..flow.blocks.len()).rev() {
        run.block_seconds[at] = run.schedule(&flow.blocks[at]);
    }
    Timeline { seconds: run.block_seconds.first().copied().unwrap_or(0.0), exposed: run.exposed }
}

/// No task.
const NONE: u32 = u32::MAX;

/// The state of a task in the schedule.
#[derive(Clone, Copy, Debug)]
struct State {
    /// The earliest time at which it can start, given the scheduled tasks that it depends on.
    ready: f64,
    /// The collective that determines this time; [`NONE`] if it was no collective.
    waits_for: u32,
    /// The task of that collective, whose end may still move; [`NONE`] if it does not need all of it.
    after: u32,
    /// The end of the collective or dot with which it overlaps chunk by chunk, and the number of chunks.
    ends_after: (f64, f64),
    /// For a task that takes no time: the task whose result it forwards, and the time when all others that it depends on end.
    passes_on: (u32, f64),
    start: f64,
    end: f64,
}

impl State {
    /// Records that the task cannot start before `ready`, when a dependence ends; `waits_for` and `after` as in the fields.
    #[inline]
    fn wait(&mut self, ready: f64, waits_for: u32, after: u32) {
        if ready >= self.ready {
            (self.ready, self.waits_for, self.after) = (ready, waits_for, after);
        }
    }
}

impl Default for State {
    fn default() -> Self {
        let [ready, start, end] = [0.0; 3];
        let (ends_after, passes_on) = ((0.0, 1.0), (NONE, 0.0));
        Self { ready, waits_for: NONE, after: NONE, ends_after, passes_on, start, end }
    }
}

/// The times that a finished task propagates to its users.
struct Made {
    end: f64,
    /// The task whose result it forwards, itself unless it takes no time; and the time when all others that it depends on end.
    source: u32,
    others: f64,
    kind: Kind,
    /// When the source starts and ends.
    from: (f64, f64),
    /// The row of the source if that can be split in chunks, or is a collective.
    row: Option<u32>,
    /// The collective that its users wait for.
    waits_for: u32,
}

impl Made {
    /// The task of the collective that makes it; [`NONE`] if none does.
    fn after(&self) -> u32 {
        self.row.map_or(NONE, |_| self.source)
    }
    /// Whether tasks of `kind` may use it chunk by chunk.
    #[inline]
    fn may_overlap(&self, kind: Kind) -> bool {
        matches!((self.kind, kind), (Kind::Split, Kind::Product) | (Kind::Product, Kind::Split))
    }
}

struct Run<'a> {
    flow: &'a Dataflow,
    times: &'a Times<'a>,
    /// For each task the number of dependences that are not scheduled yet.
    left: Vec<u32>,
    states: Vec<State>,
    kinds: Vec<Kind>,
    /// The transfer of each task; [`NONE`] if it sends nothing, or nothing waits for it.
    sent: Vec<u32>,
    streams: Vec<Stream>,
    block_seconds: Vec<f64>,
    exposed: Vec<f64>,
    /// The seconds by which started collectives slow ops, as far as no op has been slowed yet.
    lost: f64,
    /// Ready tasks that take no time; a field to reuse its memory.
    open: Vec<u32>,
}

impl Run<'_> {
    /// Schedules one run of `block`, and returns its seconds.
    fn schedule(&mut self, block: &TaskBlock) -> f64 {
        self.streams.clear();
        self.lost = 0.0;
        self.streams.resize_with(self.times.num_streams.max(1), || Stream::of(block.tasks));
        for task in block.tasks.0..block.tasks.1 {
            if self.flow.tasks[task as usize].num_needs == 0 {
                if self.kinds[task as usize].is_free() {
                    self.open.push(task);
                    self.run_free();
                } else {
                    self.release(task);
                }
            }
        }
        loop {
            let mut first: Option<(f64, usize)> = None;
            for (at, stream) in self.streams.iter().enumerate() {
                let Some(start) = stream.next_start() else { continue };
                // At the same time collectives start first.
                if first.is_none_or(|(least, _)| Seconds(start) <= Seconds(least)) {
                    first = Some((start, at));
                }
            }
            if self.wake(first.map(|(start, _)| start)) {
                continue;
            }
            let Some((start, at)) = first else { break };
            let Some(task) = self.streams[at].take(start) else { break };
            let after = self.states[task as usize].after;
            if self.states.get(after as usize).is_some_and(|state| state.end > start) {
                // Since it was ready, ops delayed the collective, which is the last of its stream.
                let links = self.stream_of(after);
                self.streams[links].waiting.push(task);
                continue;
            }
            self.place(task, at, start, block.times);
        }
        let end = self.streams.iter().map(|stream| stream.free).fold(0.0, f64::max);
        self.expose_tail(end, block.times);
        self.copy_in_background(block, end)
    }
    /// Copies to and from the host what an iteration that ends at `end` needs or makes, while it runs; returns when all that ends.
    fn copy_in_background(&mut self, block: &TaskBlock, end: f64) -> f64 {
        let mut last = end;
        for stream in 1..self.streams.len() {
            let tasks = (block.tasks.0..block.tasks.1)
                .filter(|&task| self.kinds[task as usize] == Kind::InBackground)
                .filter_map(|task| self.times.sent(self.flow, &self.flow.tasks[task as usize]))
                .filter(|&row| self.times.transfers[row as usize].stream == stream);
            let (mut busy, mut row) = (0.0, NONE);
            for copies in tasks {
                (busy, row) = (busy + self.times.transfers[copies as usize].seconds, copies);
            }
            if busy > last {
                self.exposed[row as usize] += (busy - last) * block.times;
                last = busy;
            }
        }
        last
    }
    /// The transfer of `task`, as an index; `None` if nothing waits for it.
    #[inline]
    fn sent(&self, task: u32) -> Option<u32> {
        Some(self.sent[task as usize]).filter(|&row| row != NONE)
    }
    /// Seconds of `task` by itself.
    fn seconds(&self, task: u32) -> f64 {
        let known = &self.flow.tasks[task as usize];
        if let Some(row) = self.sent(task) {
            return self.times.transfers[row as usize].seconds;
        }
        let own = known.row.map_or(0.0, |row| self.times.computations[row as usize].seconds);
        if self.kinds[task as usize] != Kind::Alone {
            return own;
        }
        let bodies = self.flow.bodies(known).iter();
        let inside: f64 =
            bodies.map(|&(block, times)| self.block_seconds[block as usize] * times).sum();
        own + inside
    }
    /// The stream of `task`.
    fn stream_of(&self, task: u32) -> usize {
        self.sent(task).map_or(0, |row| self.times.transfers[row as usize].stream)
    }
    /// Puts a task that is ready and takes time on its stream.
    fn release(&mut self, task: u32) {
        let stream = self.stream_of(task);
        self.streams[stream].add(self.states[task as usize].ready, task);
    }
    /// Releases the tasks that wait for collectives that nothing can delay, as all that is left starts at `next` or later; whether
    /// there are any.
    fn wake(&mut self, next: Option<f64>) -> bool {
        let mut has_any = false;
        for at in 0..self.streams.len() {
            let stream = &mut self.streams[at];
            if stream.waiting.is_empty() || next.is_some_and(|next| stream.free > next) {
                continue;
            }
            let end = stream.free;
            for task in std::mem::take(&mut stream.waiting) {
                self.states[task as usize].ready = end;
                self.release(task);
                has_any = true;
            }
        }
        has_any
    }
    /// Runs the ready tasks that take no time.
    fn run_free(&mut self) {
        while let Some(task) = self.open.pop() {
            let state = &mut self.states[task as usize];
            (state.start, state.end) = (state.ready, state.ready);
            self.tell_users(task);
        }
    }
    /// Runs `task` on a stream from `start`.
    fn place(&mut self, task: u32, at: usize, start: f64, times: f64) {
        let collective = self.sent(task);
        let (mut seconds, kind) = (self.seconds(task), self.kinds[task as usize]);
        let is_alone = kind == Kind::Alone;
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
        } else if let Some(row) = collective {
            self.lost += self.times.transfers[row as usize].slows;
        }
        let state = &mut self.states[task as usize];
        let (other, chunks) = state.ends_after;
        let after = if chunks > 1.0 { other + seconds / chunks } else { start };
        let undelayed = start + seconds;
        let end = undelayed.max(after);
        (state.start, state.end) = (start, end);
        if let (0, Some(row)) = (at, collective) {
            self.exposed[row as usize] += seconds * times;
        }
        if at == 0 && waits_for != NONE {
            let idle = start - self.streams[0].free;
            self.exposed[waits_for as usize] += (idle + (end - undelayed)).max(0.0) * times;
        }
        if is_alone {
            self.streams.iter_mut().for_each(|stream| stream.free = end);
        } else if at == 0 && kind != Kind::Product {
            self.delay_collectives(start, end - start);
        }
        let stream = &mut self.streams[at];
        stream.free = end;
        (stream.last, stream.task) = (collective, task);
        self.tell_users(task);
        // The first is on top.
        self.open.reverse();
        self.run_free();
    }
    /// Delays the collectives that run at `start`, and stand still beside an op of `seconds` that is no product.
    fn delay_collectives(&mut self, start: f64, seconds: f64) {
        let transfers = self.times.transfers;
        for stream in self.streams[1..].iter_mut().filter(|stream| stream.free > start) {
            if stream.last.is_some_and(|row| transfers[row as usize].in_products) {
                stream.free += seconds;
                self.states[stream.task as usize].end = stream.free;
            }
        }
    }
    /// Propagates the end of `task` to its users; those that are now ready and take no time go to `open`.
    fn tell_users(&mut self, task: u32) {
        let (flow, made) = (self.flow, self.made(task));
        let ready = made.end.max(made.others);
        for &user in flow.users(task) {
            let kind = self.kinds[user as usize];
            if kind.is_free() || made.may_overlap(kind) {
                self.tell(&made, user, kind);
            } else {
                self.states[user as usize].wait(ready, made.waits_for, made.after());
            }
            let left = &mut self.left[user as usize];
            *left -= 1;
            if *left > 0 {
                continue;
            }
            if kind.is_free() {
                self.open.push(user);
            } else {
                self.release(user);
            }
        }
    }
    /// The times that `task`, which has finished, propagates to its users.
    fn made(&self, task: u32) -> Made {
        let state = &self.states[task as usize];
        // What a task without work passes on may be split in chunks as if it was used directly.
        let is_free = self.kinds[task as usize].is_free();
        let (source, others) = match state.passes_on {
            (source, others) if is_free && source != NONE => (source, others),
            _ => (task, 0.0),
        };
        let (from, sent) = (&self.states[source as usize], self.sent(source));
        let waits_for = match sent {
            Some(row) => row,
            None if source == task && !is_free => NONE,
            None => state.waits_for,
        };
        let (kind, row) = (self.kinds[source as usize], sent);
        Made { end: state.end, source, others, kind, from: (from.start, from.end), row, waits_for }
    }
    /// Propagates `made` to `user`, which is of `kind`.
    fn tell(&mut self, made: &Made, user: u32, kind: Kind) {
        let chunks = self.chunks(made, user, kind);
        let (start, end) = made.from;
        let first = if chunks > 1.0 { start + (end - start) / chunks } else { made.end };
        let ready = first.max(made.others);
        let state = &mut self.states[user as usize];
        if chunks > 1.0 && end > state.ends_after.0 {
            state.ends_after = (end, chunks);
        }
        state.wait(ready, made.waits_for, if chunks > 1.0 { NONE } else { made.after() });
        if !kind.is_free() {
            return;
        }
        let (known, other) = state.passes_on;
        if known == NONE {
            state.passes_on = (made.source, made.others.max(other));
        } else if made.end > self.states[known as usize].end {
            let end = self.states[known as usize].end.max(other).max(made.others);
            self.states[user as usize].passes_on = (made.source, end);
        } else {
            self.states[user as usize].passes_on = (known, other.max(made.end));
        }
    }
    /// The number of chunks in which `user`, which is of `kind`, overlaps with `made`; 1 if it needs the whole result.
    fn chunks(&self, made: &Made, user: u32, kind: Kind) -> f64 {
        let row = match (made.kind, kind) {
            (Kind::Split, Kind::Product) => made.row,
            (Kind::Product, Kind::Split) => self.sent(user),
            _ => None,
        };
        row.map_or(1.0, |row| self.times.transfers[row as usize].chunks)
    }
    /// Counts as exposed the time of collectives after the last op.
    fn expose_tail(&mut self, end: f64, times: f64) {
        let idle = end - self.streams[0].free;
        let last = self.streams[1..].iter().find(|stream| stream.free >= end);
        if let (true, Some(row)) = (idle > 0.0, last.and_then(|stream| stream.last)) {
            self.exposed[row as usize] += idle * times;
        }
    }
}
