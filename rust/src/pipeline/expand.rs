//! Every pipeline: its name, its options, and the passes it is made of.
//!
//! Source: the import, export and propagation pipelines of Shardy.

use super::options::{OptionSpec, Options};
use super::table::{flag, flag_on, text, PASSES};
use super::{Completion, Item, Pipeline, Step, FUNC};

const SAVE: &str = "sdy-save-module";

/// One pipeline.
pub(super) struct PipelineSpec {
    /// Its name.
    pub(super) name: &'static str,
    /// Its options.
    pub(super) options: &'static [OptionSpec],
    /// Makes the passes.
    pub(super) expand: fn(&Options) -> Vec<Item>,
}

const DEDUP: &[OptionSpec] = &[flag("dedup-functions-fully")];

const EXPORT: &[OptionSpec] = &[
    flag("avoid-export-for-partitioning"),
    flag("avoid-reshards-on-calls"),
    text("dump-directory"),
    flag("dump-propagation-edges"),
    flag("dump-sharding-origins"),
    flag("enable-insert-explicit-collectives"),
    flag("keep-sharding-rules"),
    flag("remove-all-gather-reduce-scatter-for-cmv1"),
    flag_on("update-non-divisible-input-output-shardings"),
];

/// All pipelines.
pub(super) static PIPELINES: &[PipelineSpec] = &[
    PipelineSpec {
        name: "sdy-import-pipeline",
        options: DEDUP,
        expand: |o| import(o.flag("dedup-functions-fully")),
    },
    PipelineSpec { name: "sdy-export-pipeline", options: EXPORT, expand: export },
    PipelineSpec {
        name: "sdy-propagation-pipeline",
        options: DEDUP,
        expand: |o| {
            let dedup_functions_fully = o.flag("dedup-functions-fully");
            propagation(Completion { dedup_functions_fully, ..Completion::default() })
        },
    },
];

/// Pass `name` with `settings`, on functions if that is what it runs on.
fn pass(name: &str, settings: &[(&str, &str)]) -> Option<Item> {
    let spec = PASSES.iter().find(|pass| pass.name == name);
    debug_assert!(spec.is_some(), "{name} is in the table");
    let spec = spec?;
    let step = Item::Step(Step { spec, options: Options::defaults(spec.options).with(settings) });
    Some(if spec.runs_on_functions() {
        Item::Nested(Pipeline { anchor: FUNC, items: vec![step] })
    } else {
        step
    })
}

/// Passes with their defaults.
fn passes(names: &[&str]) -> Vec<Item> {
    names.iter().filter_map(|name| pass(name, &[])).collect()
}

const fn as_text(flag: bool) -> &'static str {
    if flag {
        "true"
    } else {
        "false"
    }
}

fn import(dedup_functions_fully: bool) -> Vec<Item> {
    let mut items = passes(&[
        "symbol-dce",
        "sdy-lift-inlined-meshes",
        "sdy-remove-size-one-axes",
        "sdy-propagate-sharding-from-func-to-call",
        "sdy-constant-or-scalar-splitter",
        "symbol-dce",
        "sdy-manual-axes-cleanup",
        SAVE,
        "sdy-add-data-flow-edges",
    ]);
    if dedup_functions_fully {
        items.extend(passes(&["sdy-apply-sharding-constraints", "sdy-sharding-group-import"]));
    }
    items
}

/// `sdy-propagation-pipeline`, with what `how` says of import and export.
pub(super) fn propagation(how: Completion) -> Vec<Item> {
    let dedup_functions_fully = how.dedup_functions_fully;
    let mut items = import(dedup_functions_fully);
    items.extend(if dedup_functions_fully {
        passes(&["sdy-add-func-data-flow-edges"])
    } else {
        passes(&[
            "sdy-flatten-call-graph",
            "symbol-dce",
            "sdy-import-func-calls",
            "symbol-dce",
            "sdy-apply-sharding-constraints",
            "sdy-sharding-group-import",
        ])
    });
    items.extend(pass("sdy-pre-order-funcs", &[]));
    items.extend(pass("sdy-user-priority-propagate", &[("keep-sharding-rules", "true")]));
    items.extend(if dedup_functions_fully {
        passes(&["sdy-propagate-to-func-results", "sdy-sink-func-data-flow-edges"])
    } else {
        passes(&["sdy-export-named-computations", "sdy-propagate-to-func-results"])
    });
    items.extend(passes(&[
        "sdy-unflatten-call-graph",
        "symbol-dce",
        "sdy-insert-func-call-reshards",
    ]));
    let options = Options::defaults(EXPORT).with(&[
        ("avoid-reshards-on-calls", as_text(dedup_functions_fully)),
        ("enable-insert-explicit-collectives", as_text(how.collectives)),
        ("update-non-divisible-input-output-shardings", as_text(!how.keep_sub_axes_on_io)),
    ]);
    items.extend(export(&options));
    items
}

/// `canonicalize` as the export pipeline configures it, with one label's patterns.
fn canonicalize(label: &str) -> Option<Item> {
    let settings =
        [("enable-patterns", label), ("region-simplify", "aggressive"), ("top-down", "false")];
    pass("canonicalize", &settings)
}

fn export(o: &Options) -> Vec<Item> {
    let origins = as_text(o.flag("dump-sharding-origins"));
    let edges = as_text(o.flag("dump-propagation-edges"));
    let mut items = passes(&["sdy-constant-or-scalar-merger"]);
    items.extend(pass(
        "sdy-sink-data-flow-edges",
        &[
            ("sink-debug-sharding-origins", origins),
            ("sink-debug-propagation-edge-sharding", edges),
        ],
    ));
    if !o.flag("avoid-export-for-partitioning") {
        items.extend(passes(&["sdy-remove-sharding-groups", "sdy-sharding-constraint-to-reshard"]));
    }
    if o.flag("update-non-divisible-input-output-shardings") {
        items.extend(passes(&[
            "sdy-update-non-divisible-input-output-shardings",
            "sdy-remove-sub-axes-in-input-output-shardings",
        ]));
    }
    items.extend(passes(&["sdy-close-shardings", SAVE]));
    if !o.flag("avoid-export-for-partitioning") {
        items.extend(partition(o));
    }
    if o.flag("dump-propagation-edges") || o.flag("dump-sharding-origins") {
        items.extend(pass("sdy-remove-propagation-debug-info", &[]));
    }
    if !o.flag("keep-sharding-rules") {
        items.extend(pass("sdy-drop-sharding-rules", &[]));
    }
    items
}

/// Reshards and collectives, as far as the options want them.
fn partition(o: &Options) -> Vec<Item> {
    let collectives = o.flag("enable-insert-explicit-collectives");
    let mut items = Vec::new();
    items.extend(pass(
        "sdy-insert-explicit-reshards",
        &[("enable-full-version", as_text(collectives))],
    ));
    if collectives {
        items.extend(pass(SAVE, &[]));
        items.extend(canonicalize("sdy-reshard"));
        items.extend(pass("sdy-reshard-to-collectives", &[]));
    }
    items.extend(canonicalize("sdy-collective"));
    if collectives && o.flag("remove-all-gather-reduce-scatter-for-cmv1") {
        items.extend(pass("sdy-remove-all-gather-reduce-scatter-for-cmv1", &[]));
    }
    items.extend(pass(SAVE, &[]));
    items
}
