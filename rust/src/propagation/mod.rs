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
pub mod observe;
mod options;
pub mod origins;
mod plan;
pub mod populate_op_sharding_rules;
mod schedule;
mod state;
#[cfg(test)]
mod tests;
mod visit;
mod wide;

pub use options::{Options, Stats, Strategy};
pub use visit::{factor_table, Run, VisitStrategy};

/// The visits that the process remembers from run to run.
pub mod visit_cache {
    pub use super::memo::process_cache::{clear, len, MAX_TENSORS, MAX_VISITS};
}

use crate::context::Context;
use crate::error::Result;
use crate::index::{Id, RuleId};
use crate::ir::Program;
use engine::Engine;
use memo::Memo;
use observe::Observer;
use origins::{Origins, Recorder};
use plan::edges::{Edges, Holder};
use plan::groups::ShardingGroups;
use plan::{preconditions, Plan};
use schedule::func_results::main_function;
use state::State;

/// Completes the shardings of `program`, which is left half done if that fails.
pub fn propagate(
    program: &mut Program,
    context: &mut Context<'_>,
    options: &Options,
) -> Result<Stats> {
    propagate_observed(program, context, options, None).map(|(stats, _)| stats)
}

/// Completes the shardings of `program`, tells `observer` of everything that happens to them, and says where
/// they came from, as far as `options` want that recorded.
pub fn propagate_observed(
    program: &mut Program,
    context: &mut Context<'_>,
    options: &Options,
    observer: Option<&mut dyn Observer>,
) -> Result<(Stats, Origins)> {
    let recorder = Recorder::start(program, options.debug).map(Box::new);
    preconditions::check_shapes(program)?;
    preconditions::check_meshes(program)?;
    let main = main_function(program)?;
    context.rules.prepare(program, options.conservative)?;
    let groups = synchronised_groups(program, context)?;
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
