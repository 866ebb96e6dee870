//! Propagates one program again and again from different shardings of its arguments and results.
//!
//! A [`Recording`] has the [`trace`] of one run. From other shardings at the start, [`Recording::replay`] follows the
//! trace and makes those visits only that may go another way, with the engine that made the trace. The result is,
//! sharding by sharding, that of a new run:
//!
//! 1. The queue goes over the ops by their positions, and what is queued again by the visit of an op is taken before
//!    the queue goes on ([`crate::propagation::schedule`]). So a run consists of *turns*, one for each position in each
//!    greedy run, and between two turns the shardings are the whole state: every turn has a fixed [`times::Time`].
//! 2. A visit is a function of the shardings it reads. A turn in which no op is taken that reads a slot whose sharding
//!    differs from the trace's takes the same ops and makes the same changes as in the trace ([`differences`]).
//! 3. All other turns are made anew ([`follow`]): those of the trace in which such an op is taken, and those at which
//!    the queue comes to such an op while it is marked. A mark says, as in any run, that a visit may do something; an
//!    op gets one when a slot that it reads begins to differ, or changes; and when the trace takes it, since something that
//!    it reads may have changed there.
//! 4. After each turn that was made anew, the slots that changed in it or in the trace are compared. A slot that
//!    has the sharding of the trace again differs no longer; once no slot is left that an op reads at a later time, the
//!    rest of the trace holds as it is.
//!
//! What replays do not cover has no recording, see [`Recording::new`].

mod agenda;
mod differences;
mod follow;
mod readers;
mod slots;
mod times;
mod trace;

use super::engine::{Engine, EngineParts};
use super::memo::Memo;
use super::observe::Slot;
use super::options::Options;
use super::plan::groups::ShardingGroups;
use super::plan::{preconditions, Plan, WIDE};
use super::schedule::func_results::main_function;
use super::state::State;
use crate::context::Context;
use crate::error::Result;
use crate::index::{FuncId, Id, ShardingId, ValueId};
use crate::ir::Program;
use crate::sharding::{ShardingTable, TensorSharding};
use agenda::Agenda;
use differences::Differences;
use follow::{Follow, Scratch};
use readers::SlotReaders;
use times::{Stage, Time};
use trace::{Log, Trace};

/// The part of the visits of the recorded run that a replay may make before it is given up: beyond that, a new run is
/// hardly slower.
const MOST_VISITS: (usize, usize) = (1, 2);

/// The most visits an op of a greedy run that is recorded.
const MOST_VISITS_OF_RUN: usize = 1_000;

/// The most different visits that are remembered from replay to replay, and the most shardings.
const MOST_REMEMBERED: usize = 1 << 17;

/// The most visits that are remembered from a run to the next one, and the most shardings, unless the program has more values.
const MOST_INHERITED: usize = 1 << 8;

/// A run, from which others are worked out.
pub struct Recording {
    main: FuncId,
    num_values: usize,
    trace: Trace,
    /// The shardings of all slots at the start, and at the end.
    start: Vec<ShardingId>,
    end: Vec<ShardingId>,
    /// The number of visits.
    num_visits: usize,
    /// The number of shardings in the table of the program at the end.
    num_shardings: usize,
}

/// The program of a recording, and all that a replay changes. Each thread that replays has its own.
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
    /// The number of different visits that are remembered.
    num_remembered: usize,
}

/// What a replay leads to: how the shardings at its end differ from those of the recorded run.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    /// The slots that differ in order, and their shardings.
    changes: Vec<(u32, ShardingId)>,
    /// The shardings that are not in the table of the recorded run: their ids follow those of that table.
    added: Vec<TensorSharding>,
}

/// A recorded run, the program with the rules that propagation leaves on its ops but with the shardings that it had,
/// and what replays.
pub type Recorded = (Recording, Program, Replayer);

impl Recording {
    /// Propagates `program`, an imported one, and records that. `None` if the program has something that replays do not cover:
    /// sharding groups, user priorities, manual computations, calls, ops that nothing uses, ops with more than [`WIDE`]
    /// tensors, or if propagation does not end.
    ///
    /// # Errors
    /// Propagation fails.
    pub fn new(
        mut program: Program,
        context: &mut Context<'_>,
        options: &Options,
    ) -> Result<Option<Recorded>> {
        preconditions::check_shapes(&program)?;
        preconditions::check_meshes(&program)?;
        let main = main_function(&program)?;
        context.rules.prepare(&mut program, options.conservative)?;
        let groups = ShardingGroups::synchronised(&mut program, &*context.rules)?;
        let plan = Plan::new(&mut program, &*context.rules, options.conservative)?;
        if !groups.is_empty() || !is_covered(&plan) || has_priorities(&program, main) {
            return Ok(None);
        }
        let mut left = program.clone();
        plan.leave_rules(&mut left, options.keep_sharding_rules);
        let start = slots::shardings(&program, main);
        let num_values = program.num_value_ids();
        let num_results = start.len() - num_values;
        let log = Log::new(num_values);
        let mut observer = &log;
        let state = State::new(&mut program, plan, groups, None, Some(&mut observer));
        let mut engine = Engine::new(state, main, Memo::apart(options.runs()));
        let Some((trace, num_visits)) = record(&mut engine, &log, num_results) else {
            return Ok(None);
        };
        let returned: Vec<ValueId> = engine.returned_values();
        let readers = SlotReaders::new(engine.state(), main, &returned);
        let parts = Some(engine.into_parts());
        let (end, num_shardings) = (slots::shardings(&program, main), program.shardings().len());
        left.adopt_shardings(program.shardings());
        let num_slots = start.len();
        let recording = Self { main, num_values, trace, start, end, num_visits, num_shardings };
        let replayer = Replayer {
            differences: Differences::new(num_slots, readers.len(num_results)),
            agenda: Agenda::new(readers.len(num_results)),
            scratch: Scratch::new(num_slots),
            program,
            parts,
            readers,
            num_remembered: 0,
        };
        Ok(Some((recording, left, replayer)))
    }
    /// The id of the sharding of `slot` at the start.
    pub fn sharding_at_start(&self, slot: Slot) -> ShardingId {
        self.start[slots::number(slot, self.num_values) as usize]
    }
    /// The id of the sharding of `slot` at the end of what `replayed` is about.
    pub fn sharding(&self, replayed: &Replayed, slot: Slot) -> ShardingId {
        let slot = slots::number(slot, self.num_values);
        let found = replayed.changes.binary_search_by_key(&slot, |&(slot, _)| slot);
        found.map_or(self.end[slot as usize], |at| replayed.changes[at].1)
    }
    /// The sharding of `slot` at the end of what `replayed` is about, where `table` is that of the recorded run.
    pub fn sharding_in<'a>(
        &self,
        replayed: &'a Replayed,
        table: &'a ShardingTable,
        slot: Slot,
    ) -> Option<&'a TensorSharding> {
        self.by_id(replayed, table, self.sharding(replayed, slot))
    }
    /// The sharding with this id in what `replayed` is about, where `table` is that of the recorded run.
    pub fn by_id<'a>(
        &self,
        replayed: &'a Replayed,
        table: &'a ShardingTable,
        id: ShardingId,
    ) -> Option<&'a TensorSharding> {
        let id = id.get()?;
        let added = id.index().checked_sub(self.num_shardings);
        added.map_or_else(|| table.get(id), |at| replayed.added.get(at))
    }
    /// The slots that end otherwise than in the recorded run, each with the id of its sharding there and in what `replayed` is
    /// about.
    pub fn changes<'a>(
        &'a self,
        replayed: &'a Replayed,
    ) -> impl Iterator<Item = (Slot, [ShardingId; 2])> + 'a {
        replayed.changes.iter().map(|&(slot, sharding)| {
            let recorded = self.end[slot as usize];
            (slots::slot(slot, self.num_values, self.main), [recorded, sharding])
        })
    }
    /// All slots, each with the id of its sharding at the end of what `replayed` is about. The ids are those of the table of
    /// the recorded run, once [`Replayed::added`] is appended to it.
    pub fn shardings<'a>(
        &'a self,
        replayed: &'a Replayed,
    ) -> impl Iterator<Item = (Slot, ShardingId)> + 'a {
        let mut changes = replayed.changes.iter().peekable();
        self.end.iter().zip(0..).map(move |(&recorded, slot)| {
            let change = changes.next_if(|&&(changed, _)| changed == slot);
            let sharding = change.map_or(recorded, |&(_, sharding)| sharding);
            (slots::slot(slot, self.num_values, self.main), sharding)
        })
    }
}

impl Replayed {
    /// The shardings that are not in the table of the recorded run, in order of their ids.
    pub fn added(&self) -> &[TensorSharding] {
        &self.added
    }
}

impl Replayer {
    /// Whether so many shardings are known that a new recording is due.
    pub fn is_full(&self) -> bool {
        self.shardings().len() >= MOST_REMEMBERED
    }
    /// The id of `sharding`, which is over a mesh of the program.
    pub fn intern(&mut self, sharding: TensorSharding) -> ShardingId {
        self.program.intern_sharding(sharding)
    }

    /// What propagation leads to if the slots of `edits` have these shardings at the start, and all others those of
    /// `recording`; `None` if a new run is hardly slower.
    pub fn replay(
        &mut self,
        recording: &Recording,
        edits: &[(Slot, ShardingId)],
    ) -> Option<Replayed> {
        let log = Log::new(recording.num_values);
        let mut observer = &log;
        let parts = self.parts(MOST_REMEMBERED)?;
        let mut engine = Engine::again(&mut self.program, parts, &mut observer);
        restore(engine.state(), recording.main, recording.num_values, &recording.start);
        self.differences.clear();
        self.agenda.clear();
        let mut follow = Follow {
            engine: &mut engine,
            log: &log,
            trace: &recording.trace,
            readers: &mut self.readers,
            differences: &mut self.differences,
            agenda: &mut self.agenda,
            scratch: &mut self.scratch,
            next_turn: 0,
        };
        for &(slot, sharding) in edits {
            let slot = slots::number(slot, recording.num_values);
            follow.edit(slot, recording.start[slot as usize], sharding);
        }
        let outcome = follow.run(recording.num_visits * MOST_VISITS.0 / MOST_VISITS.1 + 1);
        let state = engine.state();
        let changed = self.differences.iter();
        let changes = changed.map(|slot| (slot, state.sharding_at(self.readers.slot(slot))));
        let changes = changes.collect();
        self.num_remembered = engine.num_remembered();
        self.parts = Some(engine.into_parts());
        outcome.is_ok().then(|| self.by_itself(changes, recording.num_shardings))
    }

    /// Records the run in which the slots of `edits` have these shardings at the start, and all others those of `recording`.
    /// `None` if propagation does not end, or if so many shardings are known that it is time to begin with none. The recording
    /// is about the program of this replayer, which is to replay it.
    pub fn rerun(
        &mut self,
        recording: &Recording,
        edits: &[(Slot, ShardingId)],
    ) -> Option<Recording> {
        let &Recording { main, num_values, .. } = recording;
        let most = MOST_INHERITED.max(num_values);
        if self.shardings().len() > most {
            return None;
        }
        let mut start = recording.start.clone();
        for &(slot, sharding) in edits {
            start[slots::number(slot, num_values) as usize] = sharding;
        }
        let log = Log::new(num_values);
        let mut observer = &log;
        let restore = |state: &mut State<'_>| restore(state, main, num_values, &start);
        let parts = self.parts(most)?;
        let mut engine = Engine::anew(&mut self.program, parts, &mut observer, restore);
        let recorded = record(&mut engine, &log, start.len() - num_values);
        self.num_remembered = engine.num_remembered();
        self.parts = Some(engine.into_parts());
        let (trace, num_visits) = recorded?;
        let (end, num_shardings) =
            (slots::shardings(&self.program, main), self.program.shardings().len());
        Some(Recording { main, num_values, trace, start, end, num_visits, num_shardings })
    }
    /// The parts of the engine, which forgets the visits that it remembers if they are more than `most`.
    fn parts(&mut self, most: usize) -> Option<EngineParts> {
        let mut parts = self.parts.take()?;
        if self.num_remembered > most {
            parts.forget(most);
        }
        Some(parts)
    }
    /// The shardings of the program of this replayer.
    pub fn shardings(&self) -> &ShardingTable {
        self.program.shardings()
    }

    /// `changes` without ids that only the program of this replayer has.
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

/// Gives all slots the shardings `start`.
fn restore(state: &mut State<'_>, main: FuncId, num_values: usize, start: &[ShardingId]) {
    let (values, results) = start.split_at(num_values);
    state.restore_values(values);
    for (index, &sharding) in results.iter().enumerate() {
        state.restore(Slot::FuncResult(main, index), sharding);
    }
}

/// Whether `sharding` has a priority, with which no replay starts.
pub fn has_priority(sharding: &TensorSharding) -> bool {
    sharding.dims.iter().any(|dim| dim.priority.is_some())
}

/// Whether replays cover what `plan` says of a program.
fn is_covered(plan: &Plan) -> bool {
    let positions = 0..plan.order().len() as u32;
    plan.unused.is_empty()
        && !plan.edges.has_manual_ends()
        && plan.edges.calls.is_empty()
        && positions.map(|position| plan.row(position)).all(|row| row.tensors.len() <= WIDE)
}

/// Whether a sharding of a value or of a result of `main` has a priority.
pub fn has_priorities(program: &Program, main: FuncId) -> bool {
    let has_one = |id: ShardingId| program.shardings().get(id).is_some_and(has_priority);
    let any = program.shardings().ids().any(has_one);
    any && slots::shardings(program, main).into_iter().any(has_one)
}

/// Makes all greedy runs and records their turns. Returns the trace and the number of visits; `None` if there are too many.
fn record(engine: &mut Engine<'_>, log: &Log, num_results: usize) -> Option<(Trace, usize)> {
    let num_ops = engine.state().plan.order().len();
    let (mut trace, mut taken, mut visits) = (Trace::default(), Vec::new(), 0);
    for run in 0..engine.num_runs() {
        let at = |stage, place| Time { run: run as u16, stage, place };
        let results = |engine: &mut Engine<'_>, trace: &mut Trace, stage| {
            for index in 0..num_results {
                engine.visit_func_result(index, run);
                if !log.is_empty() {
                    trace.add(at(stage, index as u32), log, []);
                }
            }
        };
        results(engine, &mut trace, Stage::Before);
        engine.restart();
        let most_visits = visits + MOST_VISITS_OF_RUN * (num_ops + 1);
        while let Some(position) = engine.next_marked(run) {
            taken.push(position);
            visits += engine.turn(position, run, false, &mut taken);
            trace.add(at(Stage::Queue, position), log, taken.drain(..));
            if visits > most_visits {
                return None;
            }
        }
        results(engine, &mut trace, Stage::After);
    }
    trace.finish(num_ops);
    Some((trace, visits))
}
