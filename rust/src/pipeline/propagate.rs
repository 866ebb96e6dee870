//! Runs the propagation passes with the options of pipelines.

use super::option_specs as option;
use super::options::Options;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::ir::Program;
use crate::propagation::origins::Settings;
use crate::propagation::{self, Strategy};

/// The debug options: whether to record origins and propagation edges.
pub(super) fn debug(o: &Options) -> Result<Settings> {
    Ok(Settings {
        sharding_origins: o.flag(&option::DEBUG_ORIGINS)?,
        propagation_edges: o.flag(&option::DEBUG_EDGES)?,
    })
}

/// The options that all of these passes have.
fn common(o: &Options) -> Result<propagation::Options> {
    Ok(propagation::Options {
        strategy: Strategy::Basic,
        run_op_priority: false,
        user_priority: false,
        conservative: o.flag(&option::CONSERVATIVE)?,
        keep_sharding_rules: o.flag(&option::KEEP_SHARDING_RULES)?,
        up_to_priority: None,
        debug: debug(o)?,
    })
}

/// The options that all of these passes have except the basic one.
fn with_strategy(o: &Options) -> Result<propagation::Options> {
    let name = o.text(&option::STRATEGY)?;
    let strategy = Strategy::named(name)
        .ok_or_else(|| Error::internal(format!("no strategy is called {name:?}")))?;
    Ok(propagation::Options { strategy, ..common(o)? })
}

/// `sdy-basic-propagate`.
pub(super) fn basic(p: &mut Program, c: &mut Context<'_>, o: &Options) -> Result<()> {
    propagation::propagate(p, c, &common(o)?).map(drop)
}

/// `sdy-aggressive-propagate`.
pub(super) fn aggressive(p: &mut Program, c: &mut Context<'_>, o: &Options) -> Result<()> {
    propagation::propagate(p, c, &with_strategy(o)?).map(drop)
}

/// `sdy-op-priority-propagate`.
pub(super) fn op_priority(p: &mut Program, c: &mut Context<'_>, o: &Options) -> Result<()> {
    let run_op_priority = o.flag(&option::RUN_OP_PRIORITY)?;
    let options = propagation::Options { run_op_priority, ..with_strategy(o)? };
    propagation::propagate(p, c, &options).map(drop)
}

/// `sdy-user-priority-propagate`.
pub(super) fn user_priority(p: &mut Program, c: &mut Context<'_>, o: &Options) -> Result<()> {
    propagation::propagate(p, c, &with_user_priority(o)?).map(drop)
}

/// The options of `sdy-user-priority-propagate`.
pub(super) fn with_user_priority(o: &Options) -> Result<propagation::Options> {
    Ok(propagation::Options {
        run_op_priority: o.flag(&option::RUN_OP_PRIORITY)?,
        user_priority: true,
        up_to_priority: o.number(&option::UP_TO_PRIORITY)?,
        ..with_strategy(o)?
    })
}
