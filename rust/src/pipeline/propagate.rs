//! The propagation passes: their options, as pipelines write them, to the engine's.

use super::options::Options;
use crate::context::Context;
use crate::error::Result;
use crate::ir::Program;
use crate::propagation::origins::Settings;
use crate::propagation::{self, Strategy};

/// What to record of where shardings come from.
pub(super) fn debug(o: &Options) -> Settings {
    Settings {
        sharding_origins: o.flag("debug-sharding-origins"),
        propagation_edges: o.flag("debug-propagation-edge-sharding"),
    }
}

/// What all of the passes have in common.
fn common(o: &Options) -> propagation::Options {
    propagation::Options {
        strategy: Strategy::Basic,
        run_op_priority: false,
        user_priority: false,
        conservative: o.flag("conservative-propagation"),
        keep_sharding_rules: o.flag("keep-sharding-rules"),
        up_to_priority: None,
        debug: debug(o),
    }
}

/// What all but the basic pass have in common.
fn with_strategy(o: &Options) -> propagation::Options {
    let strategy = Strategy::named(o.text("propagation-strategy")).unwrap_or_default();
    propagation::Options { strategy, ..common(o) }
}

/// `sdy-basic-propagate`.
pub(super) fn basic(p: &mut Program, c: &mut Context<'_>, o: &Options) -> Result<()> {
    propagation::propagate(p, c, &common(o)).map(drop)
}

/// `sdy-aggressive-propagate`.
pub(super) fn aggressive(p: &mut Program, c: &mut Context<'_>, o: &Options) -> Result<()> {
    propagation::propagate(p, c, &with_strategy(o)).map(drop)
}

/// `sdy-op-priority-propagate`.
pub(super) fn op_priority(p: &mut Program, c: &mut Context<'_>, o: &Options) -> Result<()> {
    let run_op_priority = o.flag("run-op-priority-propagation");
    let options = propagation::Options { run_op_priority, ..with_strategy(o) };
    propagation::propagate(p, c, &options).map(drop)
}

/// `sdy-user-priority-propagate`.
pub(super) fn user_priority(p: &mut Program, c: &mut Context<'_>, o: &Options) -> Result<()> {
    let options = propagation::Options {
        run_op_priority: o.flag("run-op-priority-propagation"),
        user_priority: true,
        up_to_priority: o.number("up-to-priority"),
        ..with_strategy(o)
    };
    propagation::propagate(p, c, &options).map(drop)
}
