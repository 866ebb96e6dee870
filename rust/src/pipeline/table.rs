//! Every pass: its name, what it runs on, its options, and the function that runs it.

use super::options::{OptionKind, OptionSpec, Options};
use super::propagate;
use crate::context::Context;
use crate::error::{Code, Diagnostic, Result};
use crate::index::OpId;
use crate::ir::Program;
use crate::partition::{self, canonicalize};
use crate::propagation::{populate_op_sharding_rules, Strategy};
use crate::{export, import};

/// A pass on the module, or on each function by its `func.func` op.
#[derive(Clone, Copy)]
pub enum Run {
    /// On `builtin.module`.
    Module(fn(&mut Program, &mut Context<'_>, &Options) -> Result<()>),
    /// On `func.func`.
    Function(fn(&mut Program, &mut Context<'_>, OpId, &Options) -> Result<()>),
    /// On `func.func`, all at once.
    Functions(fn(&mut Program, &mut Context<'_>, &[OpId], &Options) -> Result<()>),
    /// On either; called once for the module all the same.
    Any(fn(&mut Program, &mut Context<'_>, &Options) -> Result<()>),
}

/// One pass.
pub struct PassSpec {
    /// Its name.
    pub name: &'static str,
    /// Its options.
    pub options: &'static [OptionSpec],
    /// What runs it.
    pub run: Run,
}

impl PassSpec {
    /// Whether it runs on `func.func` and nothing else.
    pub(super) fn runs_on_functions(&self) -> bool {
        matches!(self.run, Run::Function(_) | Run::Functions(_))
    }
}

impl std::fmt::Debug for PassSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// A flag that is false unless given.
pub(super) const fn flag(name: &'static str) -> OptionSpec {
    OptionSpec { name, kind: OptionKind::Flag, default: "false", is_extra: false }
}
/// A flag that is true unless given.
pub(super) const fn flag_on(name: &'static str) -> OptionSpec {
    OptionSpec { name, kind: OptionKind::Flag, default: "true", is_extra: false }
}
/// A text that is empty unless given.
pub(super) const fn text(name: &'static str) -> OptionSpec {
    OptionSpec { name, kind: OptionKind::Text, default: "", is_extra: false }
}
const fn number(name: &'static str, default: &'static str) -> OptionSpec {
    OptionSpec { name, kind: OptionKind::Number, default, is_extra: false }
}
const fn list(name: &'static str, words: &'static [&'static str]) -> OptionSpec {
    OptionSpec { name, kind: OptionKind::List(words), default: "", is_extra: false }
}
const fn choice(
    name: &'static str,
    words: &'static [&'static str],
    default: &'static str,
) -> OptionSpec {
    OptionSpec { name, kind: OptionKind::Choice(words), default, is_extra: false }
}

const fn module(
    name: &'static str,
    options: &'static [OptionSpec],
    run: fn(&mut Program, &mut Context<'_>, &Options) -> Result<()>,
) -> PassSpec {
    PassSpec { name, options, run: Run::Module(run) }
}
const fn function(
    name: &'static str,
    options: &'static [OptionSpec],
    run: fn(&mut Program, &mut Context<'_>, OpId, &Options) -> Result<()>,
) -> PassSpec {
    PassSpec { name, options, run: Run::Function(run) }
}
const fn functions(
    name: &'static str,
    options: &'static [OptionSpec],
    run: fn(&mut Program, &mut Context<'_>, &[OpId], &Options) -> Result<()>,
) -> PassSpec {
    PassSpec { name, options, run: Run::Functions(run) }
}
const fn any(
    name: &'static str,
    options: &'static [OptionSpec],
    run: fn(&mut Program, &mut Context<'_>, &Options) -> Result<()>,
) -> PassSpec {
    PassSpec { name, options, run: Run::Any(run) }
}

const LABELS: &[&str] = &["sdy-reshard", "sdy-collective"];
const CANONICALIZE: &[OptionSpec] = &[
    flag("cse-between-iterations"),
    list("disable-patterns", LABELS),
    list("enable-patterns", LABELS),
    list("filter-dialects", &[]),
    number("max-iterations", "10"),
    number("max-num-rewrites", "-1"),
    choice("region-simplify", &["disabled", "normal", "aggressive"], "normal"),
    flag("test-convergence"),
    flag_on("top-down"),
];

const RULES: &[OptionSpec] = &[flag("conservative-propagation")];
const BASIC: [OptionSpec; 5] = [
    flag("conservative-propagation"),
    flag("debug-propagation-edge-sharding"),
    flag("debug-sharding-origins"),
    flag("keep-sharding-rules"),
    text("module-dump-directory"),
];
const STRATEGY: OptionSpec =
    choice("propagation-strategy", &Strategy::NAMES, Strategy::Aggressive.name());
const OP_PRIORITY: OptionSpec = flag_on("run-op-priority-propagation");
/// Beyond MLIR: how far user priorities go. Empty means all the way.
const UP_TO_PRIORITY: OptionSpec =
    OptionSpec { name: "up-to-priority", kind: OptionKind::Number, default: "", is_extra: true };

const PROPAGATE_BASIC: &[OptionSpec] = &BASIC;
const PROPAGATE_AGGRESSIVE: &[OptionSpec] =
    &[BASIC[0], BASIC[1], BASIC[2], BASIC[3], BASIC[4], STRATEGY];
const PROPAGATE_OP_PRIORITY: &[OptionSpec] =
    &[BASIC[0], BASIC[1], BASIC[2], BASIC[3], BASIC[4], STRATEGY, OP_PRIORITY];
const PROPAGATE_USER_PRIORITY: &[OptionSpec] =
    &[BASIC[0], BASIC[1], BASIC[2], BASIC[3], BASIC[4], STRATEGY, OP_PRIORITY, UP_TO_PRIORITY];

/// All passes.
pub(super) static PASSES: &[PassSpec] = &[
    // MLIR
    any("symbol-dce", &[], |p, c, _| import::symbol_dce::run(p, c)),
    any("canonicalize", CANONICALIZE, run_canonicalize),
    // import
    module("sdy-lift-inlined-meshes", &[], |p, c, _| import::lift_inlined_meshes::run(p, c)),
    module("sdy-inline-meshes", &[], |p, c, _| import::inline_meshes::run(p, c)),
    module("sdy-remove-size-one-axes", &[], |p, c, _| import::remove_size_one_axes::run(p, c)),
    module("sdy-propagate-sharding-from-func-to-call", &[], |p, c, _| {
        import::propagate_sharding_from_func_to_call::run(p, c)
    }),
    module("sdy-constant-or-scalar-splitter", &[], |p, c, _| {
        import::constant_or_scalar_splitter::run(p, c)
    }),
    module("sdy-manual-axes-cleanup", &[], |p, c, _| import::manual_axes_cleanup::run(p, c)),
    module("sdy-add-data-flow-edges", &[], |p, c, _| import::add_data_flow_edges::run(p, c)),
    module("sdy-add-func-data-flow-edges", &[], |p, c, _| {
        import::add_func_data_flow_edges::run(p, c)
    }),
    module("sdy-flatten-call-graph", &[], |p, c, _| import::flatten_call_graph::run(p, c)),
    module(
        "sdy-import-func-calls",
        &[flag_on("add-data-flow-edges-on-named-computations")],
        |p, c, o| {
            let add_edges = o.flag("add-data-flow-edges-on-named-computations");
            import::import_func_calls::run(p, c, add_edges)
        },
    ),
    module(
        "sdy-apply-sharding-constraints",
        &[flag("debug-propagation-edge-sharding"), flag("debug-sharding-origins")],
        |p, c, o| import::apply_sharding_constraints::run(p, c, propagate::debug(o)),
    ),
    module("sdy-sharding-group-import", &[], |p, c, _| import::sharding_group_import::run(p, c)),
    module("sdy-pre-order-funcs", &[], |p, c, _| import::pre_order_funcs::run(p, c)),
    function("sdy-explicit-gather-scatter-batching", &[], |p, c, op, _| {
        import::explicit_gather_scatter_batching::run(p, c, op)
    }),
    // propagation
    module("sdy-basic-propagate", PROPAGATE_BASIC, propagate::basic),
    module("sdy-aggressive-propagate", PROPAGATE_AGGRESSIVE, propagate::aggressive),
    module("sdy-op-priority-propagate", PROPAGATE_OP_PRIORITY, propagate::op_priority),
    module("sdy-user-priority-propagate", PROPAGATE_USER_PRIORITY, propagate::user_priority),
    function("sdy-populate-op-sharding-rules", RULES, |p, c, op, o| {
        populate_op_sharding_rules::run(p, c, op, o.flag("conservative-propagation"))
    }),
    // export
    module("sdy-close-shardings", &[], |p, c, _| export::close_shardings::run(p, c)),
    module("sdy-drop-sharding-and-mesh", &[], |p, c, _| export::drop_sharding_and_mesh::run(p, c)),
    module("sdy-export-named-computations", &[], |p, c, _| {
        export::export_named_computations::run(p, c)
    }),
    module("sdy-insert-func-call-reshards", &[], |p, c, _| {
        export::insert_func_call_reshards::run(p, c)
    }),
    module("sdy-propagate-to-func-results", &[], |p, c, _| {
        export::propagate_to_func_results::run(p, c)
    }),
    module("sdy-remove-propagation-debug-info", &[], |p, c, _| {
        export::remove_propagation_debug_info::run(p, c)
    }),
    module("sdy-remove-sharding-groups", &[], |p, c, _| export::remove_sharding_groups::run(p, c)),
    module("sdy-remove-sub-axes-in-input-output-shardings", &[], |p, c, _| {
        export::remove_sub_axes_in_input_output_shardings::run(p, c)
    }),
    module("sdy-update-non-divisible-input-output-shardings", &[], |p, c, _| {
        export::update_non_divisible_input_output_shardings::run(p, c)
    }),
    module("sdy-unflatten-call-graph", &[flag("dedup-functions-fully")], |p, c, o| {
        export::unflatten_call_graph::run(p, c, o.flag("dedup-functions-fully"))
    }),
    functions("sdy-constant-or-scalar-merger", &[], |p, c, _, _| {
        export::constant_or_scalar_merger::run(p, c)
    }),
    function("sdy-pad-for-divisibility", &[], |p, c, op, _| {
        export::pad_for_divisibility::run(p, c, op)
    }),
    functions("sdy-drop-sharding-rules", &[], |p, c, _, _| export::drop_sharding_rules::run(p, c)),
    function("sdy-sharding-constraint-to-reshard", &[], |p, c, op, _| {
        export::sharding_constraint_to_reshard::run(p, c, op)
    }),
    function(
        "sdy-sink-data-flow-edges",
        &[flag("sink-debug-propagation-edge-sharding"), flag("sink-debug-sharding-origins")],
        |p, c, op, o| {
            let debug_info = export::sink_data_flow_edges::DebugInfo {
                sharding_origins: o.flag("sink-debug-sharding-origins"),
                propagation_edges: o.flag("sink-debug-propagation-edge-sharding"),
            };
            export::sink_data_flow_edges::run(p, c, op, debug_info)
        },
    ),
    function("sdy-sink-func-data-flow-edges", &[], |p, c, op, _| {
        export::sink_func_data_flow_edges::run(p, c, op)
    }),
    functions("sdy-insert-explicit-reshards", &[flag("enable-full-version")], |p, c, ops, o| {
        partition::insert_explicit_reshards::run(p, c, ops, o.flag("enable-full-version"))
    }),
    function("sdy-reshard-to-collectives", &[flag("keep-redundant-reshards")], |p, c, op, o| {
        partition::reshard_to_collectives::run(p, c, op, o.flag("keep-redundant-reshards"))
    }),
    function("sdy-remove-all-gather-reduce-scatter-for-cmv1", &[], |p, c, op, _| {
        partition::remove_all_gather_reduce_scatter_for_cmv1::run(p, c, op)
    }),
    module("sdy-resolve-permutation-factors", &[flag_on("enable-halo-exchange")], |p, c, o| {
        partition::resolve_permutation_factors::run(p, c, o.flag("enable-halo-exchange"))
    }),
    // Writes a snapshot of the module where a directory is given, which pipelines here never do.
    any("sdy-save-module", &[], |_, _, _| Ok(())),
];

/// Runs `canonicalize`.
fn run_canonicalize(program: &mut Program, context: &mut Context<'_>, o: &Options) -> Result<()> {
    if o.flag("cse-between-iterations") {
        let message = "canonicalize merges no equal ops between iterations";
        return Err(Diagnostic::new(Code::InvalidPipeline, message)
            .with_hint("leave out cse-between-iterations")
            .into());
    }
    let has = |list: &str, word: &str| o.list(list).any(|element| element == word);
    let enables_all = o.list("enable-patterns").next().is_none();
    let is_on =
        |label| (enables_all || has("enable-patterns", label)) && !has("disable-patterns", label);
    let loads_all = o.list("filter-dialects").next().is_none();
    let loads = |dialect| loads_all || has("filter-dialects", dialect);
    let enabled = canonicalize::Enabled {
        reshard: loads("sdy") && is_on("sdy-reshard"),
        collective: loads("sdy") && is_on("sdy-collective"),
        unlabelled: loads("sdy") && enables_all,
        stablehlo: loads("stablehlo") && enables_all,
    };
    // A negative number is no limit.
    let limit = |name| o.number(name).and_then(|number| usize::try_from(number).ok());
    let config = canonicalize::Config {
        top_down: o.flag("top-down"),
        max_iterations: limit("max-iterations"),
        max_rewrites: limit("max-num-rewrites"),
        erases_dead: o.text("region-simplify") != "disabled",
    };
    let has_converged = canonicalize::run(program, context, enabled, config)?;
    if !has_converged && o.flag("test-convergence") {
        let message = "canonicalize has not converged";
        return Err(Diagnostic::new(Code::NoConvergence, message)
            .with_hint("raise max-iterations")
            .into());
    }
    Ok(())
}
