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
//! 5. A replay of too many visits goes on as a new run: between two turns that is the shardings and the marks, and what the
//!    trace takes later is marked.
//! 6. The turns that were made anew, in the place of those of the trace at the same times, are the trace of the new run,
//!    with the visits of marked ops that change nothing: a later replay may have to make them.
//!
//! What replays do not cover has no recording, see [`Recording::new`].

mod agenda;
mod differences;
mod follow;
mod readers;
mod record;
mod recording;
mod replayer;
mod slots;
mod times;
mod trace;

pub use recording::{Recording, Replayed};
pub use replayer::{Followed, Path, Replayer};

use super::engine::Engine;
use super::memo::Memo;
use super::options::Options;
use super::plan::groups::ShardingGroups;
use super::plan::{preconditions, Plan, WIDE};
use super::schedule::func_results::main_function;
use super::state::State;
use crate::context::Context;
use crate::error::Result;
use crate::index::{FuncId, ShardingId, ValueId};
use crate::ir::Program;
use crate::sharding::TensorSharding;
use readers::SlotReaders;
use record::record;
use times::{Time, Times};
use trace::{Log, Trace, Turns};

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
        let num_ops = engine.state().plan.order().len();
        let Some(times) = Times::new(num_results, num_ops, engine.num_runs()) else {
            return Ok(None);
        };
        let mut turns = Turns::default();
        let Some(num_visits) = record(&mut engine, &log, times, Time::START, &mut turns) else {
            return Ok(None);
        };
        let returned: Vec<ValueId> = engine.returned_values();
        let readers = SlotReaders::new(engine.state(), main, num_results, &returned);
        let parts = engine.into_parts();
        let (end, num_shardings) = (slots::shardings(&program, main), program.shardings().len());
        left.adopt_shardings(program.shardings());
        let trace = Trace::new(turns, times);
        let recording =
            Self { main, num_values, times, trace, start, end, num_visits, num_shardings };
        let replayer = Replayer::new(program, parts, readers, &recording);
        Ok(Some((recording, left, replayer)))
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
