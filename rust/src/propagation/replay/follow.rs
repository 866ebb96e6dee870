//! Follows a trace from other shardings at its start.

use super::agenda::Agenda;
use super::differences::Differences;
use super::readers::SlotReaders;
use super::times::{Stage, Time};
use super::trace::{Log, Trace, Write};
use crate::index::ShardingId;
use crate::propagation::engine::Engine;

/// Memory that is used from replay to replay.
#[derive(Clone)]
pub struct Scratch {
    due: Vec<u32>,
    readers: Vec<u32>,
    written: Vec<Write>,
    taken: Vec<u32>,
    changed: Changed,
}

impl Scratch {
    /// Memory for a program of `num_slots` slots.
    pub fn new(num_slots: usize) -> Self {
        let changed = Changed {
            turn: 0,
            turns: vec![0; num_slots],
            recorded: vec![ShardingId::NONE; num_slots],
            slots: Vec::new(),
        };
        let (due, readers, written, taken) = Default::default();
        Self { due, readers, written, taken, changed }
    }
}

/// The slots that change in a turn, here or in the trace.
#[derive(Clone, Default)]
struct Changed {
    /// The number of the turn.
    turn: u32,
    /// By slot: the last turn in which it changed.
    turns: Vec<u32>,
    /// By slot that changes: its sharding in the trace.
    recorded: Vec<ShardingId>,
    slots: Vec<u32>,
}

impl Changed {
    /// Starts another turn.
    fn start(&mut self) {
        self.turn += 1;
        self.slots.clear();
    }
    /// Adds `slot` with its sharding in the trace before the turn, if it is not there yet.
    fn add(&mut self, slot: u32, recorded: impl FnOnce() -> ShardingId) {
        if std::mem::replace(&mut self.turns[slot as usize], self.turn) != self.turn {
            self.slots.push(slot);
            self.recorded[slot as usize] = recorded();
        }
    }
    /// Adds `slot` with its sharding in the trace now.
    fn set(&mut self, slot: u32, recorded: ShardingId) {
        self.add(slot, || recorded);
        self.recorded[slot as usize] = recorded;
    }
}

/// A replay in progress.
pub struct Follow<'a, 'p> {
    pub engine: &'a mut Engine<'p>,
    pub log: &'a Log,
    pub trace: &'a Trace,
    pub readers: &'a mut SlotReaders,
    pub differences: &'a mut Differences,
    pub agenda: &'a mut Agenda,
    pub scratch: &'a mut Scratch,
    /// The first turn of the trace that has not been followed.
    pub next_turn: usize,
}

/// A replay that cannot be finished: more visits than a new run is worth, or what the trace says does not hold.
pub struct GivenUp;

impl Follow<'_, '_> {
    /// Gives `slot` another sharding at the start.
    pub fn edit(&mut self, slot: u32, recorded: ShardingId, new: ShardingId) {
        let target = self.readers.slot(slot);
        self.engine.state().restore(target, new);
        self.update_difference(slot, recorded, Time::START, true);
    }

    /// Makes all turns in which something may differ from the trace, with at most `most_visits` visits.
    pub fn run(&mut self, most_visits: usize) -> Result<(), GivenUp> {
        let mut visits = 0;
        while let Some(time) = self.agenda.next_time() {
            self.scratch.due.clear();
            while let Some(reader) = self.agenda.take(time) {
                if self.differences.is_read_by(reader) {
                    self.scratch.due.push(reader);
                }
            }
            if self.scratch.due.is_empty() {
                continue;
            }
            self.follow_to(time)?;
            self.mark_due(time);
            visits += self.turn(time);
            if visits > most_visits {
                return Err(GivenUp);
            }
            for index in 0..self.scratch.due.len() {
                self.schedule(self.scratch.due[index], time);
            }
        }
        Ok(())
    }

    /// Marks the ops that are due because the trace takes them at `time`: something that they read changed since their last
    /// visit, which is not told of changes that are followed.
    fn mark_due(&mut self, time: Time) {
        for &reader in &self.scratch.due {
            if self.readers.result(reader).is_none()
                && self.trace.next_of_op(reader, self.next_turn) == Some(time)
            {
                self.engine.mark(reader);
            }
        }
    }

    /// Makes the changes of all turns of the trace before `time`: none of their visits reads a slot that differs.
    fn follow_to(&mut self, time: Time) -> Result<(), GivenUp> {
        let (writes, next) = self.trace.before(self.next_turn, time);
        self.next_turn = next;
        let state = self.engine.state();
        for &Write { slot, new, .. } in writes {
            if self.differences.contains(slot) {
                return Err(GivenUp);
            }
            state.restore(self.readers.slot(slot), new);
        }
        Ok(())
    }

    /// Makes the turn at `time`, and compares what it changes with what the trace says. Returns the number of visits.
    fn turn(&mut self, time: Time) -> usize {
        let recorded: &[Write] = if self.trace.time(self.next_turn) == Some(time) {
            self.next_turn += 1;
            self.trace.writes(self.next_turn - 1)
        } else {
            &[]
        };
        let run = usize::from(time.run);
        let visits = match time.stage {
            Stage::Queue => self.engine.turn(time.place, run, true, &mut self.scratch.taken),
            Stage::Start | Stage::Before | Stage::After => {
                self.engine.visit_func_result(time.place as usize, run);
                1
            }
        };
        self.scratch.taken.clear();
        self.compare(time, recorded);
        visits
    }

    /// Updates the differences after a turn in which the trace has the changes `recorded`, and the log those made.
    fn compare(&mut self, time: Time, recorded: &[Write]) {
        let mut written = std::mem::take(&mut self.scratch.written);
        let mut changed = std::mem::take(&mut self.scratch.changed);
        written.clear();
        changed.start();
        self.log.drain_to(&mut written);
        for &Write { slot, old, .. } in &written {
            // The first change of a slot has the sharding before the turn.
            changed.add(slot, || self.differences.recorded(slot).unwrap_or(old));
        }
        let num_written = changed.slots.len();
        for &Write { slot, new, .. } in recorded {
            changed.set(slot, new);
        }
        for index in 0..changed.slots.len() {
            let slot = changed.slots[index];
            let recorded = changed.recorded[slot as usize];
            self.update_difference(slot, recorded, time, index < num_written);
        }
        (self.scratch.written, self.scratch.changed) = (written, changed);
    }

    /// Compares `slot` with the trace, in which it is `recorded` now. `is_written` is whether it has changed here.
    fn update_difference(&mut self, slot: u32, recorded: ShardingId, time: Time, is_written: bool) {
        let mut readers = std::mem::take(&mut self.scratch.readers);
        let target = self.readers.slot(slot);
        let state = self.engine.state();
        let now = state.sharding_at(target);
        self.readers.list(state, slot, &mut readers);
        let is_new = now != recorded && !self.differences.contains(slot);
        if now == recorded {
            self.differences.remove(slot, &readers);
        } else {
            self.differences.insert(slot, recorded, &readers);
        }
        for &reader in &readers {
            if is_new || is_written {
                if self.readers.result(reader).is_none() {
                    self.engine.mark(reader);
                }
                self.schedule(reader, time);
            }
        }
        self.scratch.readers = readers;
    }

    /// Makes `reader` due at the next time after `time` at which a visit of it may differ from the trace, if it reads a
    /// slot that differs.
    fn schedule(&mut self, reader: u32, time: Time) {
        if !self.differences.is_read_by(reader) {
            return;
        }
        let next = if let Some(index) = self.readers.result(reader) {
            self.next_of_result(index, time)
        } else {
            // The next turn of the trace is the first one after `time`.
            let recorded = self.trace.next_of_op(reader, self.next_turn);
            match (recorded, self.next_of_mark(reader, time)) {
                (Some(recorded), Some(own)) => Some(recorded.min(own)),
                (recorded, own) => recorded.or(own),
            }
        };
        if let Some(next) = next {
            self.agenda.add(reader, next);
        }
    }

    /// The next time after `time` at which the queue comes to the op at `position` in a run for which it is marked.
    fn next_of_mark(&mut self, position: u32, time: Time) -> Option<Time> {
        let is_past = (time.stage, time.place) >= (Stage::Queue, position);
        let first = u32::from(time.run) + u32::from(is_past);
        let runs = (1_u32 << self.engine.num_runs()) - 1;
        let marks = u32::from(self.engine.marks(position)) & runs & (u32::MAX << first);
        let run = marks.trailing_zeros() as u16;
        (marks != 0).then_some(Time { run, stage: Stage::Queue, place: position })
    }

    /// The next time after `time` at which the result of the main function at `index` is visited.
    fn next_of_result(&mut self, index: u32, time: Time) -> Option<Time> {
        let runs = time.run..self.engine.num_runs() as u16;
        let stages = [Stage::Before, Stage::After];
        let times = runs.flat_map(|run| stages.map(|stage| Time { run, stage, place: index }));
        times.into_iter().find(|&next| next > time)
    }
}
