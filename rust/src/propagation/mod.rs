//! Propagation: completes the shardings of all values from the given ones.
//!
//! # The loop
//!
//! ```text
//! for each user priority:                                  schedule::user_priority
//!     let the dims of that priority take part
//!     for each op-priority step, for each strategy:        visit::direction, options
//!         propagate between results and returned values    schedule::func_results
//!         queue all ops in pre-order                       schedule::queue
//!         while there is an op in the queue:
//!             for each update of a visit of the op:        visit
//!                 set the sharding of the tensor           state
//!                 queue the ops that depend on it          notices
//!         propagate between results and returned values
//! ```
//!
//! The result depends on nothing else. In a conflict the first visit wins, so the order of the
//! queue, which is that of MLIR's greedy driver, matters. `tests/oracle/driver.py` is the same
//! algorithm in Python: slow, without any shortcut, written to be read. Both have the same results
//! on random programs (`tests/property/test_propagation.py`), and so has the reference
//! (`tests/shardy`).
//!
//! # Rooms
//!
//! The submodules, called rooms. Each uses only those above it, which
//! `tests/contract/test_rooms.py` checks.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`visit`] | what a visit means |
//! | [`plan`] | what is computed of a program before propagation starts: edges, groups, how each op is visited |
//! | [`memo`] | the memo of outcomes of visits |
//! | [`notices`] | which ops a change marks or queues |
//! | [`observe`] | the clock, changes and observers, on which explanations and replays are built |
//! | [`origins`] | the user's shardings that axes come from |
//! | [`state`] | the shardings: the only place where they change |
//! | [`schedule`] | the order of visits |
//! | [`wide`] | visits of ops with many tensors |
//! | [`current`] | the shardings of the op being visited |
//! | [`options`] | what to propagate, and how |
//! | [`engine`] | greedy runs: the loop |
//! | [`replay`] | greedy runs repeated from other shardings |
//! | [`explain`] | which steps brought an axis to a tensor |
//!
//! # Shortcuts
//!
//! Each shortcut skips work that would change nothing. Without the reason in the third column, the
//! tests in the last column fail.
//!
//! | shortcut | what it claims | why that is sound | tests |
//! | --- | --- | --- | --- |
//! | only ops that are marked are visited ([`schedule`]) | a visit that did nothing does nothing until a sharding that it reads changes | a visit is a function of what it reads, and [`notices`] lists all that read a value | `test_family[calls]`, `test_family[mlp]` |
//! | at first, only ops that read a sharding with axes are marked | other visits do nothing | a visit takes axes from tensors of the op only | `test_family[hub]` |
//! | blocks of ops without marks are skipped | they hold no marked op | a mark is set in all blocks around the op, and cleared where a scan finds none | `the_next_dirty_position_is_found_across_blocks`, `queued_ops_keep_their_place` |
//! | dead ops are searched among those unused at first, and the operands of erased ops | no other op becomes dead | uses are removed only with the ops that have them | `test_random_programs[dead ops]` |
//! | results are compared with returned values only after changes | without a change nothing propagates | the clock of [`state`] counts every change | `test_family[result-priorities]` |
//! | the memo stores outcomes ([`memo`]), once for all steps with equal directions | the same input has the same outcome | law of [`visit::strategy`] | `test_random_programs[plain]` |
//! | a visit leaves out factors on which all tensors agree | nothing propagates along them | the axes common to all are a prefix of what any tensor could get: law of [`visit::strategy`] | `test_family[mlp]` |
//! | after an update, the memo entry of the op's next visit is found by the update | the same updates lead to the same shardings | the tensors are different values, each with its own sharding | `a_value_that_is_two_operands_is_looked_at_again` |
//! | the process keeps outcomes across programs ([`memo::process_cache`]) | equal rules, meshes and shardings have equal outcomes | all three are compared by value, not by their ids in the program | `what_is_known_of_one_program_holds_in_another_as_far_as_it_is_the_same`, `test_random_programs[several meshes]` |
//! | equivalent rules share outcomes ([`memo::rule_equivalence`]) | sizes matter only in which tensor is larger | [`visit::strategy::StrategyGuarantees::uses_exact_factor_sizes`], and no dim has several factors | `sizes_count_only_where_they_compare`, `test_random_programs[schedule]` |
//! | of the tensors of a wide op, a visit reads one of each group ([`wide`]) | the others change in the same way | [`visit::strategy::StrategyGuarantees::repeating_is_idempotent`] | `test_random_rules` |
//! | components of a wide op are visited separately | they have no effect on each other | [`visit::strategy::StrategyGuarantees::components_are_independent`] | `test_random_programs[wide ops]` |
//! | visits of a wide op are computed from the previous one ([`wide`]) | what depends on no change stays as it is | [`visit::strategy::StrategyGuarantees::continuation`], except for elementwise ops | `test_random_rules`, `operands_of_wide_elementwise_ops_look_at_results` |
//! | wide ops have a list of the tensors that changed ([`notices::readers`]) | the others have the shardings they had | [`state`] notifies the readers of every change | `test_family[results]` |
//!
//! Source: Shardy's propagation document.

mod current;
mod engine;
pub mod explain;
mod memo;
mod notices;
pub mod observe;
mod options;
pub mod origins;
mod plan;
pub mod populate_op_sharding_rules;
pub mod replay;
mod schedule;
mod state;
#[cfg(test)]
pub mod tests;
mod visit;
mod wide;

pub use options::{Options, Stats, Strategy};
pub use plan::specs::has_rule_by_kind as has_identity_rule;
pub use visit::{factor_table, Run, VisitStrategy};

/// The process-wide cache of visits.
pub mod visit_cache {
    pub use super::memo::process_cache::{clear, len, MAX_TENSORS, MAX_VISITS};
}

use crate::context::Context;
use crate::error::Result;
use crate::ir::Program;
use engine::Engine;
use explain::{Explanation, Trace};
use memo::Memo;
use observe::Observer;
use origins::{Origins, Recorder};
use plan::groups::ShardingGroups;
use plan::{preconditions, Plan};
use schedule::func_results::main_function;
use state::{Finished, State};

/// Completes the shardings of `program`. On failure, `program` is left in an intermediate state.
pub fn propagate(
    program: &mut Program,
    context: &mut Context<'_>,
    options: &Options,
) -> Result<Stats> {
    propagate_observed(program, context, options, None).map(|(stats, _)| stats)
}

/// Completes the shardings of `program`, and notifies `observer` of everything that happens to
/// them. Returns the record of origins, as far as `options` ask for it.
pub fn propagate_observed(
    program: &mut Program,
    context: &mut Context<'_>,
    options: &Options,
    observer: Option<&mut dyn Observer>,
) -> Result<(Stats, Origins)> {
    let (finished, stats) = run(program, context, options, observer)?;
    let origins = finished.recorder.map_or_else(Origins::default, |known| known.finish(program));
    Ok((stats, origins))
}

/// Completes the shardings of `program`, and returns the trace that explains them.
pub fn propagate_explained(
    program: &mut Program,
    context: &mut Context<'_>,
    options: &Options,
) -> Result<Explanation> {
    let mut trace = Trace::default();
    let (finished, _) = run(program, context, options, Some(&mut trace))?;
    Ok(Explanation::new(finished, trace))
}

fn run(
    program: &mut Program,
    context: &mut Context<'_>,
    options: &Options,
    observer: Option<&mut dyn Observer>,
) -> Result<(Finished, Stats)> {
    let recorder = Recorder::start(program, options.debug).map(Box::new);
    preconditions::check_shapes(program)?;
    preconditions::check_meshes(program)?;
    let main = main_function(program)?;
    context.rules.prepare(program, options.conservative)?;
    let groups = ShardingGroups::synchronised(program, &*context.rules)?;
    let plan = Plan::new(program, &*context.rules, options.conservative)?;
    plan.edges.calls.check(program)?;
    let observer = observer.map(|observer| observer as &mut dyn Observer);
    let state = State::new(program, plan, groups, recorder, observer);
    let mut engine = Engine::new(state, main, Memo::new(options.runs()));
    if options.user_priority {
        let priorities = engine.initialise_priorities();
        engine.run_all(0, context, options.pass())?;
        let last = options.up_to_priority.unwrap_or(i64::MAX);
        for priority in priorities.up_to(last) {
            engine.start_priority(&priorities, priority);
            engine.run_all(priority, context, options.pass())?;
        }
    } else {
        engine.run_all(0, context, options.pass())?;
    }
    let (finished, stats) = engine.finish();
    finished.plan.leave_rules(program, options.keep_sharding_rules);
    Ok((finished, stats))
}
