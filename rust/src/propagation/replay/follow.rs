//! Follows a trace from other initial shardings.

use super::agenda::Agenda;
use super::differences::Differences;
use super::readers::SlotReaders;
use super::times::{Moment, Place, Time, Times};
use super::trace::{Log, Trace, Turns, Write};
use crate::index::ShardingId;
use crate::propagation::engine::Engine;
use std::ops::Range;

/// Buffers that are reused from replay to replay.
#[derive(Clone)]
pub struct Scratch {
    /// The readers whose visits in the current turn may differ.
    due: Vec<u32>,
    /// The ops that are taken in it.
    taken: Vec<u32>,
    changed: Changed,
    /// The turns that were made anew.
    pub made: Turns,
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
        let (due, taken, made) = Default::default();
        Self { due, taken, changed, made }
    }
}

/// The slots that change in a turn, in the replay or in the trace.
#[derive(Clone, Default)]
struct Changed {
    /// The number of the current turn.
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
        self.turn = self.turn.wrapping_add(1);
        if self.turn == 0 {
            self.turns.fill(0);
            self.turn = 1;
        }
        self.slots.clear();
    }
    /// Adds `slot` with its sharding in the trace before the turn, unless it was added already.
    #[inline]
    fn add(&mut self, slot: u32, recorded: impl FnOnce() -> ShardingId) {
        if std::mem::replace(&mut self.turns[slot as usize], self.turn) != self.turn {
            self.slots.push(slot);
            self.recorded[slot as usize] = recorded();
        }
    }
    /// Adds `slot`, or sets its sharding in the trace now.
    fn set(&mut self, slot: u32, recorded: ShardingId) {
        self.add(slot, || recorded);
        self.recorded[slot as usize] = recorded;
    }
}

/// A replay in progress.
pub struct Follow<'a, 'p> {
    pub engine: &'a mut Engine<'p>,
    pub log: &'a Log,
    pub times: Times,
    pub trace: &'a Trace,
    pub readers: &'a mut SlotReaders,
    pub differences: &'a mut Differences,
    pub agenda: &'a mut Agenda,
    pub scratch: &'a mut Scratch,
    /// The index of the first turn of the trace that was not followed.
    pub next_turn: usize,
}

/// Why a replay is not finished.
#[derive(Clone, Copy)]
pub enum Stop {
    /// So many visits were made up to this time that a new run from there is faster.
    At(Time),
    /// The replay contradicts the trace.
    Contradiction,
}

impl Follow<'_, '_> {
    /// Sets the sharding of `slot` at the start to `new`; it is `recorded` in the recording.
    pub fn edit(&mut self, slot: u32, recorded: ShardingId, new: ShardingId) {
        let target = self.readers.slot(slot);
        self.engine.state().restore(target, new);
        self.update_difference(slot, recorded, Moment::START, true);
    }

    /// Makes all turns anew that may differ from the trace, with at most `most_visits` visits.
    pub fn run(&mut self, most_visits: usize) -> Result<(), Stop> {
        let mut visits = 0;
        while let Some(time) = self.agenda.take() {
            let (now, place) = self.times.moment(time);
            let (turn, is_recorded) = self.trace.find(time);
            let end = turn + usize::from(is_recorded);
            self.list_due(place, turn..end);
            if self.is_different(now, place) {
                self.follow_to(turn)?;
                self.next_turn = end;
                visits += self.turn(now, place);
                self.compare(now, turn..end);
            } else if let (Place::Op(position), false) = (place, is_recorded) {
                // A new run visits the op if it is marked. The trace has a visit with the same
                // shardings before, so that this visit changes nothing.
                if self.engine.marks(position) & 1 << now.run != 0 {
                    self.scratch.made.add(time, self.log, &[position]);
                }
            }
            for index in 0..self.scratch.due.len() {
                self.schedule(self.scratch.due[index], now);
            }
            if visits > most_visits {
                return Err(Stop::At(time));
            }
        }
        Ok(())
    }

    /// Lists the readers whose visits may happen at this time: the one at `place`, and those that
    /// the trace takes in `turns`. Of the latter, those that read a differing slot are marked: a
    /// sharding that they read has changed since their last visit, but followed changes do not
    /// notify.
    fn list_due(&mut self, place: Place, turns: Range<usize>) {
        let due = &mut self.scratch.due;
        due.clear();
        match place {
            Place::Result(index) => due.push(self.readers.of_result(index)),
            Place::Op(position) if turns.is_empty() => due.push(position),
            Place::Op(_) => {
                for &position in self.trace.turns().taken(turns) {
                    if self.differences.is_read_by(position) {
                        self.engine.mark(position);
                    }
                    due.push(position);
                }
            }
        }
    }

    /// Whether the current turn may differ from the trace.
    fn is_different(&self, now: Moment, place: Place) -> bool {
        let mut due = self.scratch.due.iter();
        due.any(|&reader| self.differences.is_read_by(reader))
            && match place {
                Place::Result(_) => true,
                // Without a turn in the trace it is visited only if it is marked.
                Place::Op(position) => {
                    self.scratch.due.len() > 1 || self.engine.marks(position) & 1 << now.run != 0
                }
            }
    }

    /// Applies the changes of all turns of the trace before `turn`; none of their visits reads a
    /// differing slot.
    fn follow_to(&mut self, turn: usize) -> Result<(), Stop> {
        let state = self.engine.state();
        for &Write { slot, new, .. } in self.trace.turns().writes(self.next_turn..turn) {
            if self.differences.contains(slot) {
                return Err(Stop::Contradiction);
            }
            state.restore(self.readers.slot(slot), new);
        }
        Ok(())
    }

    /// Makes the turn at `now` anew. Returns the number of visits.
    fn turn(&mut self, now: Moment, place: Place) -> usize {
        let (run, Scratch { taken, made, .. }) = (now.run as usize, &mut *self.scratch);
        taken.clear();
        let visits = match place {
            Place::Op(position) => {
                taken.push(position);
                self.engine.turn(position, run, true, taken)
            }
            Place::Result(index) => {
                self.engine.visit_func_result(index as usize, run);
                1
            }
        };
        made.add(now.time, self.log, taken);
        visits
    }

    /// Updates the differences after a turn that was made anew, in place of `turns` of the trace.
    fn compare(&mut self, now: Moment, turns: Range<usize>) {
        let mut changed = std::mem::take(&mut self.scratch.changed);
        changed.start();
        let made = &self.scratch.made;
        for &Write { slot, old, .. } in made.writes(made.len() - 1..made.len()) {
            // The first change of a slot has the sharding before the turn.
            changed.add(slot, || self.differences.recorded(slot).unwrap_or(old));
        }
        let num_written = changed.slots.len();
        for &Write { slot, new, .. } in self.trace.turns().writes(turns) {
            changed.set(slot, new);
        }
        for index in 0..changed.slots.len() {
            let slot = changed.slots[index];
            let recorded = changed.recorded[slot as usize];
            self.update_difference(slot, recorded, now, index < num_written);
        }
        self.scratch.changed = changed;
    }

    /// Compares `slot` with the trace, where it is `recorded` now. `is_written` is whether it has
    /// changed in this turn.
    fn update_difference(
        &mut self,
        slot: u32,
        recorded: ShardingId,
        now: Moment,
        is_written: bool,
    ) {
        let target = self.readers.slot(slot);
        let state = self.engine.state();
        let sharding = state.sharding_at(target);
        let range = self.readers.list(state, slot);
        let readers = self.readers.at(range.clone());
        let is_new = sharding != recorded && !self.differences.contains(slot);
        if sharding == recorded {
            self.differences.remove(slot, readers);
        } else {
            self.differences.insert(slot, recorded, readers);
        }
        if !is_new && !is_written {
            return;
        }
        for index in range {
            let reader = self.readers.at(index..index + 1)[0];
            if self.readers.result(reader).is_none() {
                self.engine.mark(reader);
            }
            self.schedule(reader, now);
        }
    }

    /// Adds the next time after `now` at which a visit of `reader` may differ from the trace to the
    /// agenda: when it is marked, or, if it reads a differing slot, when the trace visits it.
    fn schedule(&mut self, reader: u32, now: Moment) {
        let is_different = self.differences.is_read_by(reader);
        let next = if let Some(index) = self.readers.result(reader) {
            is_different.then(|| self.next_of_result(index, now)).flatten()
        } else {
            let recorded = is_different.then(|| self.trace.next_of_op(reader, now.time)).flatten();
            match (recorded, self.next_of_mark(reader, now)) {
                (Some(recorded), Some(own)) => Some(recorded.min(own)),
                (recorded, own) => recorded.or(own),
            }
        };
        if let Some(next) = next {
            self.agenda.add(next);
        }
    }

    /// The next time after `now` at which the op at `position` is taken in a run for which it is
    /// marked.
    #[inline]
    fn next_of_mark(&self, position: u32, now: Moment) -> Option<Time> {
        let first = self.times.next_run_of_op(now, position);
        let runs = (1_u32 << self.times.num_runs()) - 1;
        let marks = u32::from(self.engine.marks(position)) & runs & (u32::MAX << first);
        (marks != 0).then(|| self.times.of_op(marks.trailing_zeros(), position))
    }

    /// The next time after `now` at which result `index` of the main function is visited.
    fn next_of_result(&self, index: u32, now: Moment) -> Option<Time> {
        let mut times =
            (now.run..self.times.num_runs()).flat_map(|run| self.times.of_result(run, index));
        times.find(|&next| next > now.time)
    }
}
