//! The replayer: runs a recorded propagation again, visiting only the ops that an edit may change.

use super::agenda::Agenda;
use super::differences::Differences;
use super::follow::{Follow, Scratch, Stop};
use super::readers::SlotReaders;
use super::record::record;
use super::recording::{Recording, Replayed};
use super::slots;
use super::times::Time;
use super::trace::{Log, Trace, Turns};
use crate::index::{FuncId, Id, ShardingId};
use crate::ir::Program;
use crate::propagation::engine::{Engine, EngineParts};
use crate::propagation::observe::Slot;
use crate::propagation::state::State;
use crate::sharding::{ShardingTable, TensorSharding};

/// The fraction of the recorded run's visits that a replay may make by following the trace. Beyond
/// that, the rest is made as a new run, which would hardly be slower.
const MOST_VISITS: (usize, usize) = (1, 2);

/// A replay that takes at least this fraction of the ops that the recorded run takes is long.
const LONG: (usize, usize) = (1, 4);

/// The most memo entries, and the most shardings, that are kept from replay to replay.
const MOST_REMEMBERED: usize = 1 << 17;

/// The most cached visits and shardings that are kept for the next recorded run, unless the program
/// has more values.
const MOST_INHERITED: usize = 1 << 8;

/// The program of a recording, and the state of replays. Each thread that replays has its own.
#[derive(Clone)]
pub struct Replayer {
    /// Only its shardings change.
    program: Program,
    /// The engine, while no replay runs.
    parts: Option<EngineParts>,
    readers: SlotReaders,
    differences: Differences,
    agenda: Agenda,
    scratch: Scratch,
    /// The number of entries in the memo.
    num_remembered: usize,
}

/// How a replay went, from which a recording of its run can be made. Sharding ids are those of the
/// replayer.
pub struct Path {
    start: Vec<(u32, ShardingId)>,
    end: Vec<(u32, ShardingId)>,
    made: Turns,
    /// Whether the replay was long compared with making a recording of it.
    is_long: bool,
}

impl Path {
    /// Whether the replay was so long that a recording of its run pays off if similar replays
    /// follow.
    pub fn is_long(&self) -> bool {
        self.is_long
    }
}

/// The result of a replay.
pub enum Followed {
    /// The trace was followed to its end.
    ToEnd(Replayed, Path),
    /// The trace was followed up to some time; the rest was made as a new run. The recording is
    /// that of the whole run, and refers to the program of the replayer.
    InPart(Box<Recording>),
}

impl Replayer {
    /// A replayer for the run on `program` that the engine with these parts made.
    pub(super) fn new(
        program: Program,
        parts: EngineParts,
        readers: SlotReaders,
        run: &Recording,
    ) -> Self {
        let num_slots = run.start.len();
        Self {
            differences: Differences::new(num_slots, readers.len(num_slots - run.num_values)),
            agenda: Agenda::new(run.times.len()),
            scratch: Scratch::new(num_slots),
            program,
            parts: Some(parts),
            readers,
            num_remembered: 0,
        }
    }
    /// Whether the table of shardings is so large that a new recording should be made.
    pub fn is_full(&self) -> bool {
        self.shardings().len() >= MOST_REMEMBERED
    }
    /// The id of `sharding`, which is over a mesh of the program.
    pub fn intern(&mut self, sharding: TensorSharding) -> ShardingId {
        self.program.intern_sharding(sharding)
    }
    /// The shardings of the program of this replayer.
    pub fn shardings(&self) -> &ShardingTable {
        self.program.shardings()
    }

    /// The result of propagation if the slots of `edits` have these initial shardings, and all
    /// others those of `recording`; `None` if a new run is needed.
    pub fn replay(
        &mut self,
        recording: &Recording,
        edits: &[(Slot, ShardingId)],
    ) -> Option<Followed> {
        let start = numbered(edits, recording.num_values);
        let log = Log::new(recording.num_values);
        let mut observer = &log;
        let parts = self.parts(MOST_REMEMBERED)?;
        let mut engine = Engine::again(&mut self.program, parts, &mut observer);
        restore(engine.state(), recording.main, recording.num_values, &recording.start);
        self.differences.clear();
        self.agenda.clear();
        self.scratch.made.clear();
        let mut follow = Follow {
            engine: &mut engine,
            log: &log,
            times: recording.times,
            trace: &recording.trace,
            readers: &mut self.readers,
            differences: &mut self.differences,
            agenda: &mut self.agenda,
            scratch: &mut self.scratch,
            next_turn: 0,
        };
        for &(slot, sharding) in &start {
            follow.edit(slot, recording.start[slot as usize], sharding);
        }
        let stop = follow.run(recording.num_visits * MOST_VISITS.0 / MOST_VISITS.1 + 1);
        let made = std::mem::take(&mut self.scratch.made);
        let rest = match stop {
            Ok(()) | Err(Stop::Contradiction) => None,
            Err(Stop::At(_)) if is_many(engine.state().program().shardings(), recording) => None,
            Err(Stop::At(time)) => rest(&mut engine, &log, recording, &made, time),
        };
        let state = engine.state();
        let changed = self.differences.iter();
        let changes = changed.map(|slot| (slot, state.sharding_at(self.readers.slot(slot))));
        let end: Vec<(u32, ShardingId)> = changes.collect();
        self.num_remembered = engine.num_remembered();
        self.parts = Some(engine.into_parts());
        match stop {
            Ok(()) => {
                let replayed = self.by_itself(end.clone(), recording.num_shardings);
                let recorded = recording.trace.turns().num_taken();
                let is_long = made.num_taken() * LONG.1 > recorded * LONG.0;
                Some(Followed::ToEnd(replayed, Path { start, end, made, is_long }))
            }
            Err(Stop::At(_)) => {
                let end = slots::shardings(&self.program, recording.main);
                let made = self.made(recording, &start, end, rest?);
                Some(Followed::InPart(Box::new(made)))
            }
            Err(Stop::Contradiction) => None,
        }
    }

    /// A recording of the run that a replay of `recording` led to; `path` is how it went. It refers
    /// to the program of this replayer, which made the replay. `None` if the table of shardings is
    /// so large that it is better to start with an empty one.
    pub fn recorded(&self, recording: &Recording, path: &Path) -> Option<Recording> {
        if is_many(self.shardings(), recording) {
            return None;
        }
        let mut end = recording.end.clone();
        for &(slot, sharding) in &path.end {
            end[slot as usize] = sharding;
        }
        let turns = recording.trace.replaced(&path.made, None);
        let num_visits = recording.num_visits_in(turns.num_taken());
        Some(self.made(recording, &path.start, end, (turns, num_visits)))
    }
    /// The recording of a run with these turns and `num_visits` visits, in which the slots of
    /// `edits` have these initial shardings, and all others those of `recording`.
    fn made(
        &self,
        recording: &Recording,
        edits: &[(u32, ShardingId)],
        end: Vec<ShardingId>,
        (turns, num_visits): (Turns, usize),
    ) -> Recording {
        let &Recording { main, num_values, times, .. } = recording;
        let mut start = recording.start.clone();
        for &(slot, sharding) in edits {
            start[slot as usize] = sharding;
        }
        let (trace, num_shardings) = (Trace::new(turns, times), self.shardings().len());
        Recording { main, num_values, times, trace, start, end, num_visits, num_shardings }
    }

    /// Records the run in which the slots of `edits` have these initial shardings, and all others
    /// those of `recording`. `None` if propagation does not converge, or if the table of shardings
    /// is so large that it is better to start with an empty one. The recording refers to the
    /// program of this replayer, which is to replay it.
    pub fn rerun(
        &mut self,
        recording: &Recording,
        edits: &[(Slot, ShardingId)],
    ) -> Option<Recording> {
        let &Recording { main, num_values, times, .. } = recording;
        if is_many(self.shardings(), recording) {
            return None;
        }
        let edits = numbered(edits, num_values);
        let mut start = recording.start.clone();
        for &(slot, sharding) in &edits {
            start[slot as usize] = sharding;
        }
        let log = Log::new(num_values);
        let mut observer = &log;
        let restore = |state: &mut State<'_>| restore(state, main, num_values, &start);
        let parts = self.parts(most_inherited(recording))?;
        let mut engine = Engine::anew(&mut self.program, parts, &mut observer, restore);
        let mut turns = Turns::default();
        let visits = record(&mut engine, &log, times, Time::START, &mut turns);
        self.num_remembered = engine.num_remembered();
        self.parts = Some(engine.into_parts());
        let end = slots::shardings(&self.program, main);
        Some(self.made(recording, &edits, end, (turns, visits?)))
    }
    /// The parts of the engine. The memo is cleared if it has more than `most` entries.
    fn parts(&mut self, most: usize) -> Option<EngineParts> {
        let mut parts = self.parts.take()?;
        if self.num_remembered > most {
            parts.forget(most);
        }
        Some(parts)
    }
    /// `changes` as a result that does not depend on the replayer: ids of new shardings are
    /// replaced by indices into `Replayed::added`.
    fn by_itself(&self, mut changes: Vec<(u32, ShardingId)>, num_shardings: usize) -> Replayed {
        let mut added: Vec<ShardingId> = Vec::new();
        let is_added = |id: ShardingId| id.is_some() && id.index() >= num_shardings;
        for (_, id) in changes.iter_mut().filter(|&&mut (_, id)| is_added(id)) {
            let known = added.iter().position(|other| other == id);
            let at = known.unwrap_or_else(|| {
                added.push(*id);
                added.len() - 1
            });
            *id = ShardingId::from_index(num_shardings + at);
        }
        let table = self.program.shardings();
        Replayed { changes, added: added.into_iter().map(|id| table[id].clone()).collect() }
    }
}

/// The turns of a replay's run: those of `recording` up to `time`, with `made` in place of those at
/// the same times, and the rest, which is made as a new run. Also the number of visits. `None` if
/// propagation does not converge.
fn rest(
    engine: &mut Engine<'_>,
    log: &Log,
    recording: &Recording,
    made: &Turns,
    time: Time,
) -> Option<(Turns, usize)> {
    let Recording { trace, times, .. } = recording;
    let mut turns = trace.replaced(made, Some(time));
    // Ops that the recorded run takes later may be marked by now in that run, but not here, since
    // followed changes do not mark.
    let (next, is_made) = trace.find(time);
    for &position in trace.turns().taken(next + usize::from(is_made)..trace.turns().len()) {
        engine.mark(position);
    }
    let before = recording.num_visits_in(turns.num_taken());
    let visits = record(engine, log, *times, time, &mut turns)?;
    Some((turns, before + visits))
}

/// The most cached visits and shardings that are kept from `recording` for the recording of another
/// run.
fn most_inherited(recording: &Recording) -> usize {
    MOST_INHERITED.max(recording.num_values)
}

/// Whether `table` is so large that a new recording, with an empty table, should be made.
fn is_many(table: &ShardingTable, recording: &Recording) -> bool {
    table.len() > most_inherited(recording)
}

/// `edits` with slot numbers.
fn numbered(edits: &[(Slot, ShardingId)], num_values: usize) -> Vec<(u32, ShardingId)> {
    edits.iter().map(|&(slot, sharding)| (slots::number(slot, num_values), sharding)).collect()
}

/// Sets the shardings of all slots to `start`.
fn restore(state: &mut State<'_>, main: FuncId, num_values: usize, start: &[ShardingId]) {
    let (values, results) = start.split_at(num_values);
    state.restore_values(values);
    for (index, &sharding) in results.iter().enumerate() {
        state.restore(Slot::FuncResult(main, index), sharding);
    }
}
