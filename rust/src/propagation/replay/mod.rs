//! Replays: propagates one program repeatedly, from different shardings of its arguments and
//! results.
//!
//! A [`Recording`] has the [`trace`] of one run. [`Recording::replay`] starts from other shardings,
//! follows the trace, and repeats only the visits that may differ, with the engine that made the
//! trace. The resulting shardings are exactly those of a new run:
//!
//! 1. The queue goes over the ops by position, and ops that are queued again by a visit are taken
//!    before the queue goes on ([`crate::propagation::schedule`]). So a run consists of *turns*,
//!    one for each position in each greedy run, and between two turns the shardings are the whole
//!    state: every turn has a fixed [`times::Time`].
//! 2. A visit is a function of the shardings it reads. A turn takes the same ops and makes the same
//!    changes as in the trace if none of its ops reads a slot whose sharding differs from the trace
//!    ([`differences`]).
//! 3. All other turns are made anew ([`follow`]): those in which the trace takes such an op, and
//!    those at which such an op is marked when the queue comes to it. A mark says, as in any run,
//!    that a visit may change something. An op is marked when a slot that it reads changes or
//!    begins to differ, and when the trace takes it while it reads a differing slot.
//! 4. After each turn that was made anew, the slots that changed in it or in the trace are
//!    compared. A slot that again has the sharding of the trace no longer differs. Once no later
//!    visit reads a differing slot, the rest of the trace holds as it is.
//!
//! 5. A replay with too many visits continues as a new run: its state between two turns is the
//!    shardings and the marks, and the ops that the trace takes later are marked.
//! 6. The turns that were made anew replace those of the trace at the same times, which gives the
//!    trace of the new run. They include visits of marked ops that change nothing, since a later
//!    replay may have to make them.
//!
//! [`Recording::new`] lists the programs that cannot be recorded.

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

/// A recorded run; the program with its initial shardings and the rules that propagation leaves on
/// ops; the replayer.
pub type Recorded = (Recording, Program, Replayer);

impl Recording {
    /// Propagates `program`, which was imported, and records the run. `None` if the program has
    /// what replays do not support: sharding groups, user priorities, manual computations, calls,
    /// unused ops, ops with more than [`WIDE`] tensors; or if propagation does not converge.
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

/// Whether `sharding` has a user priority, which replays do not support.
pub fn has_priority(sharding: &TensorSharding) -> bool {
    sharding.dims.iter().any(|dim| dim.priority.is_some())
}

/// Whether replays support the program of `plan`.
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
