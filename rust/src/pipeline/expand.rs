//! Every pipeline: its name, its options, and its passes.
//!
//! Source: the import, export and propagation pipelines of Shardy.

use super::option_specs as option;
use super::options::{OptionSpec, Options, Specs};
use super::table::{self, PassSpec};
use super::{Completion, Item, Pipeline, Step, FUNC};
use crate::error::Result;

/// One pipeline.
pub(super) struct PipelineSpec {
    /// Its name.
    pub(super) name: &'static str,
    /// Its options.
    pub(super) options: Specs,
    /// Returns the passes.
    pub(super) expand: fn(&Options) -> Result<Vec<Item>>,
}

/// All pipelines.
pub(super) static PIPELINES: &[PipelineSpec] = &[
    PipelineSpec {
        name: "sdy-import-pipeline",
        options: option::DEDUP,
        expand: |o| Ok(import(o.flag(&option::DEDUP_FUNCTIONS_FULLY)?)),
    },
    PipelineSpec { name: "sdy-export-pipeline", options: option::EXPORT, expand: export },
    PipelineSpec {
        name: "sdy-propagation-pipeline",
        options: option::DEDUP,
        expand: |o| {
            let dedup_functions_fully = o.flag(&option::DEDUP_FUNCTIONS_FULLY)?;
            propagation(Completion { dedup_functions_fully, ..Completion::default() })
        },
    },
];

/// `spec` with `options`, nested in a pipeline on functions if it runs on functions.
fn item(spec: &'static PassSpec, options: Options) -> Item {
    let step = Item::Step(Step { spec, options });
    if spec.runs_on_functions() {
        Item::Nested(Pipeline { anchor: FUNC, items: vec![step] })
    } else {
        step
    }
}

/// A pass with its defaults.
fn pass(spec: &'static PassSpec) -> Item {
    item(spec, Options::defaults(spec.options))
}

/// A pass with its defaults but for `settings`.
fn pass_with(spec: &'static PassSpec, settings: &[(&'static OptionSpec, &str)]) -> Result<Item> {
    Ok(item(spec, Options::defaults(spec.options).with(settings)?))
}

/// Passes with their defaults.
fn passes<const N: usize>(specs: [&'static PassSpec; N]) -> [Item; N] {
    specs.map(pass)
}

const fn as_text(flag: bool) -> &'static str {
    if flag {
        "true"
    } else {
        "false"
    }
}

fn import(dedup_functions_fully: bool) -> Vec<Item> {
    let mut items = Vec::from(passes([
        &table::SYMBOL_DCE,
        &table::LIFT_INLINED_MESHES,
        &table::REMOVE_SIZE_ONE_AXES,
        &table::PROPAGATE_SHARDING_FROM_FUNC_TO_CALL,
        &table::CONSTANT_OR_SCALAR_SPLITTER,
        &table::SYMBOL_DCE,
        &table::MANUAL_AXES_CLEANUP,
        &table::SAVE_MODULE,
        &table::ADD_DATA_FLOW_EDGES,
    ]));
    if dedup_functions_fully {
        items.extend(passes([&table::APPLY_SHARDING_CONSTRAINTS, &table::SHARDING_GROUP_IMPORT]));
    }
    items
}

/// The passes of `sdy-propagation-pipeline` before propagation.
pub(super) fn before_propagation(dedup_functions_fully: bool) -> Vec<Item> {
    let mut items = import(dedup_functions_fully);
    if dedup_functions_fully {
        items.push(pass(&table::ADD_FUNC_DATA_FLOW_EDGES));
    } else {
        items.extend(passes([
            &table::FLATTEN_CALL_GRAPH,
            &table::SYMBOL_DCE,
            &table::IMPORT_FUNC_CALLS,
            &table::SYMBOL_DCE,
            &table::APPLY_SHARDING_CONSTRAINTS,
            &table::SHARDING_GROUP_IMPORT,
        ]));
    }
    items.push(pass(&table::PRE_ORDER_FUNCS));
    items
}

/// The options of the pass that propagates in `sdy-propagation-pipeline`.
pub(super) fn user_priority(how: Completion) -> Result<Options> {
    let up_to_priority = how.up_to_priority.map(|priority| priority.to_string());
    let mut settings =
        vec![(&option::KEEP_SHARDING_RULES, "true"), (&option::STRATEGY, how.strategy.name())];
    settings.extend(up_to_priority.as_deref().map(|priority| (&option::UP_TO_PRIORITY, priority)));
    Options::defaults(table::USER_PRIORITY_PROPAGATE.options).with(&settings)
}

/// `sdy-propagation-pipeline`, with the options `how` for import, propagation and export.
pub(super) fn propagation(how: Completion) -> Result<Vec<Item>> {
    let mut items = before_propagation(how.dedup_functions_fully);
    items.push(item(&table::USER_PRIORITY_PROPAGATE, user_priority(how)?));
    items.extend(after_propagation(how)?);
    Ok(items)
}

/// The passes of `sdy-propagation-pipeline` after propagation.
pub(super) fn after_propagation(how: Completion) -> Result<Vec<Item>> {
    let dedup_functions_fully = how.dedup_functions_fully;
    let mut items = Vec::from(if dedup_functions_fully {
        passes([&table::PROPAGATE_TO_FUNC_RESULTS, &table::SINK_FUNC_DATA_FLOW_EDGES])
    } else {
        passes([&table::EXPORT_NAMED_COMPUTATIONS, &table::PROPAGATE_TO_FUNC_RESULTS])
    });
    items.extend(passes([
        &table::UNFLATTEN_CALL_GRAPH,
        &table::SYMBOL_DCE,
        &table::INSERT_FUNC_CALL_RESHARDS,
    ]));
    let options = Options::defaults(option::EXPORT).with(&[
        (&option::AVOID_CALL_RESHARDS, as_text(dedup_functions_fully)),
        (&option::COLLECTIVES, as_text(how.collectives)),
        (&option::UPDATE_NON_DIVISIBLE, as_text(!how.keep_non_divisible_on_io)),
    ])?;
    items.extend(export(&options)?);
    Ok(items)
}

/// `canonicalize` as the export pipeline configures it, with the patterns of one label.
fn canonicalize(label: &str) -> Result<Item> {
    let settings = [
        (&option::ENABLE_PATTERNS, label),
        (&option::REGION_SIMPLIFY, "aggressive"),
        (&option::TOP_DOWN, "false"),
    ];
    pass_with(&table::CANONICALIZE, &settings)
}

fn export(o: &Options) -> Result<Vec<Item>> {
    let origins = o.flag(&option::DUMP_ORIGINS)?;
    let edges = o.flag(&option::DUMP_EDGES)?;
    let exports = !o.flag(&option::AVOID_EXPORT)?;
    let mut items = vec![pass(&table::CONSTANT_OR_SCALAR_MERGER)];
    let debug_info = [
        (&option::SINK_DEBUG_ORIGINS, as_text(origins)),
        (&option::SINK_DEBUG_EDGES, as_text(edges)),
    ];
    items.push(pass_with(&table::SINK_DATA_FLOW_EDGES, &debug_info)?);
    if exports {
        let no_constraints =
            [&table::REMOVE_SHARDING_GROUPS, &table::SHARDING_CONSTRAINT_TO_RESHARD];
        items.extend(passes(no_constraints));
    }
    if o.flag(&option::UPDATE_NON_DIVISIBLE)? {
        items.extend(passes([
            &table::UPDATE_NON_DIVISIBLE_INPUT_OUTPUT_SHARDINGS,
            &table::REMOVE_SUB_AXES_IN_INPUT_OUTPUT_SHARDINGS,
        ]));
    }
    items.extend(passes([&table::CLOSE_SHARDINGS, &table::SAVE_MODULE]));
    if exports {
        items.extend(partition(o)?);
    }
    if edges || origins {
        items.push(pass(&table::REMOVE_PROPAGATION_DEBUG_INFO));
    }
    if !o.flag(&option::KEEP_SHARDING_RULES)? {
        items.push(pass(&table::DROP_SHARDING_RULES));
    }
    Ok(items)
}

/// The passes that insert reshards and collectives, if the options enable them.
fn partition(o: &Options) -> Result<Vec<Item>> {
    let collectives = o.flag(&option::COLLECTIVES)?;
    let mut items = Vec::new();
    let version = [(&option::FULL_VERSION, as_text(collectives))];
    items.push(pass_with(&table::INSERT_EXPLICIT_RESHARDS, &version)?);
    if collectives {
        items.push(pass(&table::SAVE_MODULE));
        items.push(canonicalize(option::RESHARD_LABEL)?);
        items.push(pass(&table::RESHARD_TO_COLLECTIVES));
    }
    items.push(canonicalize(option::COLLECTIVE_LABEL)?);
    if collectives && o.flag(&option::REMOVE_FOR_CMV1)? {
        items.push(pass(&table::REMOVE_ALL_GATHER_REDUCE_SCATTER_FOR_CMV1));
    }
    items.push(pass(&table::SAVE_MODULE));
    Ok(items)
}
