//! Propagation: completes the shardings of all values from those that some have.
//!
//! One *visit* of an op projects the shardings of its tensors to the factors of its rule, lets axes
//! propagate along each factor in the directions allowed, and projects back ([`visit`]). Visits are
//! made in the order of MLIR's greedy driver ([`schedule`]), since in a conflict the first one wins.
//! One *greedy run* goes on until no visit is left that could do something.
//!
//! Greedy runs are nested in two schedules: for each user priority, from 0 on, dims of that priority
//! join ([`schedule::user_priority`]); and within it five op-priority steps let more and more ops and factors
//! take part ([`visit::direction`]). A strategy may make two runs of each step, basic then aggressive.
//!
//! What makes it fast: shardings and rules are hash-consed, so that a visit is a function of a few
//! ids, and most visits have been made before ([`memo`]), if not in this program then in another one
//! of the process ([`memo::process_cache`]); and an op is visited again only if a sharding that its visit reads has
//! changed since its last visit that did nothing in such a run.
//! So the second to fifth sweep, and all sweeps of later priorities, cost what they can touch.
//!
//! Source: Shardy's propagation document.

mod current;
mod engine;
mod memo;
mod notices;
pub mod origins;
mod plan;
pub mod populate_op_sharding_rules;
mod schedule;
#[cfg(test)]
mod tests;
mod visit;
mod wide;

pub use visit::factor_table;

use crate::context::Context;
use crate::error::Result;
use crate::index::{Id, RuleId};
use crate::ir::Program;
use engine::Engine;
use memo::{Memo, Run};
use origins::{Origins, Recorder, Settings};
use plan::edges::{Edges, Holder};
use plan::groups::ShardingGroups;
use plan::{preconditions, Plan};
use schedule::func_results::{main_function, FuncResults};
use visit::direction;

/// How conflicts are dealt with within one visit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Strategy {
    /// Axes go only where no tensor of the op has a conflict.
    Basic,
    /// Axes go to each tensor as far as that tensor has no conflict.
    #[default]
    Aggressive,
    /// Each greedy run is made in the basic strategy, then in the aggressive one.
    BasicThenAggressive,
}

/// What to propagate, and how.
#[allow(clippy::struct_excessive_bools)] // They are the options of the passes, one by one.
#[derive(Clone, Debug)]
pub struct Options {
    /// The strategy.
    pub strategy: Strategy,
    /// Whether ops take part in the order of their priorities.
    pub run_op_priority: bool,
    /// Whether dims take part in the order of the priorities users gave them.
    pub user_priority: bool,
    /// Whether to propagate neither sub-axes nor axes that do not divide.
    pub conservative: bool,
    /// Whether ops keep the rules they were visited with.
    pub keep_sharding_rules: bool,
    /// The last user priority that takes part, if not all do.
    pub up_to_priority: Option<i64>,
    /// What to record, and leave as attributes, of where shardings came from.
    pub debug: Settings,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            strategy: Strategy::Aggressive,
            run_op_priority: true,
            user_priority: true,
            conservative: false,
            keep_sharding_rules: false,
            up_to_priority: None,
            debug: Settings::default(),
        }
    }
}

impl Options {
    /// The name of the pass that these options belong to.
    fn pass(&self) -> &'static str {
        match (self.user_priority, self.run_op_priority) {
            (true, _) => "sdy-user-priority-propagate",
            (false, true) => "sdy-op-priority-propagate",
            (false, false) if self.strategy == Strategy::Basic => "sdy-basic-propagate",
            (false, false) => "sdy-aggressive-propagate",
        }
    }
    /// The greedy runs of one user priority.
    fn runs(&self) -> Vec<Run> {
        let last = direction::NUM_STEPS - 1;
        let steps = if self.run_op_priority { 0..=last } else { last..=last };
        let strategies: &[Strategy] = match self.strategy {
            Strategy::Basic => &[Strategy::Basic],
            Strategy::Aggressive => &[Strategy::Aggressive],
            Strategy::BasicThenAggressive => &[Strategy::Basic, Strategy::Aggressive],
        };
        let run = |step| strategies.iter().map(move |&strategy| Run { step, strategy });
        steps.flat_map(run).collect()
    }
}

/// How much work propagation was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Visits that could have done something.
    pub visits: usize,
    /// Visits whose outcome was known from one before.
    pub memo_hits: usize,
    /// Different visits.
    pub memo_entries: usize,
    /// Updates of tensors by visits.
    pub updates: usize,
    /// Shardings changed.
    pub changes: usize,
    /// Greedy runs.
    pub greedy_runs: usize,
}

/// Completes the shardings of `program`, which is left half done if that fails.
pub fn propagate(
    program: &mut Program,
    context: &mut Context<'_>,
    options: &Options,
) -> Result<Stats> {
    propagate_with_origins(program, context, options).map(|(stats, _)| stats)
}

/// The same, and tells where shardings came from, as far as `options` want that recorded.
pub fn propagate_with_origins(
    program: &mut Program,
    context: &mut Context<'_>,
    options: &Options,
) -> Result<(Stats, Origins)> {
    let recorder = Recorder::start(program, options.debug).map(Box::new);
    preconditions::check_shapes(program)?;
    preconditions::check_meshes(program)?;
    let main = main_function(program)?;
    context.rules.prepare(program, options.conservative)?;
    let groups = synchronised_groups(program, context)?;
    let plan = Plan::new(program, &*context.rules, options.conservative)?;
    plan.edges.calls.check(program)?;
    let mut memo = Memo::new(options.runs());
    let results = FuncResults::new(program, main, &mut memo);
    let mut engine = Engine::new(program, plan, memo, groups, results, recorder);
    if options.user_priority {
        let priorities = engine.initialise_priorities();
        run_all(&mut engine, context, options)?;
        let last = options.up_to_priority.unwrap_or(i64::MAX);
        for (priority, references) in priorities.range(..=last) {
            engine.start_priority(*priority, references);
            run_all(&mut engine, context, options)?;
        }
    } else {
        run_all(&mut engine, context, options)?;
    }
    let (plan, stats, recorder) = engine.finish();
    leave_rules(program, &plan, options);
    let origins = recorder.map_or_else(Origins::default, |recorder| recorder.finish(program));
    Ok((stats, origins))
}

/// The sharding groups of `program`, whose members have the same shardings then.
fn synchronised_groups(program: &mut Program, context: &Context<'_>) -> Result<ShardingGroups> {
    let mut groups = ShardingGroups::new(program)?;
    if !groups.is_empty() {
        let edges = Edges::new(program, &*context.rules);
        groups.synchronise(program, &edges, |program, value, sharding| match edges.holder(value) {
            Holder::None => {}
            Holder::ManualArg(op, arg) => program.set_manual_arg_sharding(op, arg, sharding),
            Holder::Value(value) if program.defining_op(value).is_some() => {
                program.set_result_sharding(value, sharding);
            }
            Holder::Value(value) => {
                program.set_sharding(value, sharding);
            }
        });
    }
    Ok(groups)
}

/// The greedy runs of one user priority.
fn run_all(engine: &mut Engine<'_>, context: &mut Context<'_>, options: &Options) -> Result<()> {
    for run in 0..engine.memo.runs().len() {
        engine.propagate_func_results(run);
        engine.run(run, context, options.pass())?;
        engine.stats.greedy_runs += 1;
        engine.plan.unused.clear();
        engine.propagate_func_results(run);
    }
    Ok(())
}

/// Leaves on ops the rules they were visited with, or only those that users wrote.
fn leave_rules(program: &mut Program, plan: &Plan, options: &Options) {
    if !options.keep_sharding_rules {
        program.drop_rules();
        return;
    }
    let mut rules = vec![RuleId::NONE; program.ops.len()];
    for position in 0..plan.order().len() as u32 {
        let (op, rule) = (plan.op(position), plan.rule(program, position));
        if rule.is_none() || program.op_rules.is_own(op) {
            continue;
        }
        if program.rules[rule].is_custom {
            program.op_rules.set(op, rule);
            program.mark_attrs_changed(op);
        } else {
            rules[op.index()] = rule;
        }
    }
    program.op_rules.leave(rules);
}
