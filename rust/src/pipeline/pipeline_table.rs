//! The table of pass pipelines: the name of each, its options, and the passes that it expands to.
//!
//! Source: the import, export and propagation pipelines of Shardy.

use super::option_specs as option;
use super::options::{OptionSpec, Options, Specs};
use super::pass_table::{self, PassSpec};
use super::stage::Stage;
use super::{Completion, Item, Passes, Step, FUNC};
use crate::error::{Code, Diagnostic, Result};
use crate::shardy::{Change, Version};

/// One pipeline.
pub(super) struct PipelineSpec {
    /// Its name.
    pub(super) name: &'static str,
    /// Its options.
    pub(super) options: Specs,
    /// Returns the passes.
    pub(super) expand: fn(Expansion, &Options) -> Result<Vec<Item>>,
}

/// All pipelines.
pub(super) static PIPELINES: &[PipelineSpec] = &[
    PipelineSpec {
        name: "sdy-import-pipeline",
        options: option::DEDUP,
        expand: |expansion, o| Ok(expansion.import(o.flag(&option::DEDUP_FUNCTIONS_FULLY)?)),
    },
    PipelineSpec {
        name: "sdy-export-pipeline",
        options: option::EXPORT,
        expand: Expansion::export,
    },
    PipelineSpec {
        name: "sdy-propagation-pipeline",
        options: option::DEDUP,
        expand: |expansion, o| {
            let dedup_functions_fully = o.flag(&option::DEDUP_FUNCTIONS_FULLY)?;
            expansion.propagation(Completion { dedup_functions_fully, ..Completion::default() })
        },
    },
];

const fn as_text(flag: bool) -> &'static str {
    if flag {
        "true"
    } else {
        "false"
    }
}

/// Expands the pipelines of a version of Shardy.
#[derive(Clone, Copy)]
pub(super) struct Expansion {
    /// The version.
    pub(super) shardy: Version,
}

impl Expansion {
    /// `spec` with `options`; nested in a pipeline on functions if it runs on functions.
    fn item(spec: &'static PassSpec, options: Options) -> Item {
        let step = Item::Step(Step { spec, options });
        if spec.runs_on_functions() {
            Item::Nested(Passes { anchor: FUNC, items: vec![step] })
        } else {
            step
        }
    }
    /// A pass with default options.
    fn pass(self, spec: &'static PassSpec) -> Item {
        Self::item(spec, Options::defaults(spec.options, self.shardy))
    }
    /// A pass with default options except for `settings`.
    fn pass_with(
        self,
        spec: &'static PassSpec,
        settings: &[(&'static OptionSpec, &str)],
    ) -> Result<Item> {
        Ok(Self::item(spec, Options::defaults(spec.options, self.shardy).with(settings)?))
    }
    /// Passes with default options.
    fn passes<const N: usize>(self, specs: [&'static PassSpec; N]) -> [Item; N] {
        specs.map(|spec| self.pass(spec))
    }
    fn import(self, dedup_functions_fully: bool) -> Vec<Item> {
        let mut items = Vec::from(self.passes([
            &pass_table::SYMBOL_DCE,
            &pass_table::LIFT_INLINED_MESHES,
            &pass_table::REMOVE_SIZE_ONE_AXES,
            &pass_table::PROPAGATE_SHARDING_FROM_FUNC_TO_CALL,
            &pass_table::CONSTANT_OR_SCALAR_SPLITTER,
            &pass_table::SYMBOL_DCE,
            &pass_table::MANUAL_AXES_CLEANUP,
            &pass_table::SAVE_MODULE,
            &pass_table::ADD_DATA_FLOW_EDGES,
        ]));
        if dedup_functions_fully {
            items.extend(self.passes([
                &pass_table::APPLY_SHARDING_CONSTRAINTS,
                &pass_table::SHARDING_GROUP_IMPORT,
            ]));
        }
        items
    }
    /// The passes of `sdy-propagation-pipeline` before propagation.
    pub(super) fn before_propagation(self, dedup_functions_fully: bool) -> Vec<Item> {
        let mut items = self.import(dedup_functions_fully);
        if dedup_functions_fully {
            items.push(self.pass(&pass_table::ADD_FUNC_DATA_FLOW_EDGES));
        } else if self.shardy.has(Change::ConstraintsBeforeFuncCalls) {
            items.extend(self.passes([
                &pass_table::FLATTEN_CALL_GRAPH,
                &pass_table::SYMBOL_DCE,
                &pass_table::ADD_FUNC_DATA_FLOW_EDGES,
                &pass_table::APPLY_SHARDING_CONSTRAINTS,
                &pass_table::SINK_FUNC_DATA_FLOW_EDGES,
                &pass_table::SHARDING_GROUP_IMPORT,
                &pass_table::IMPORT_FUNC_CALLS,
                &pass_table::SYMBOL_DCE,
            ]));
        } else {
            items.extend(self.passes([
                &pass_table::FLATTEN_CALL_GRAPH,
                &pass_table::SYMBOL_DCE,
                &pass_table::IMPORT_FUNC_CALLS,
                &pass_table::SYMBOL_DCE,
                &pass_table::APPLY_SHARDING_CONSTRAINTS,
                &pass_table::SHARDING_GROUP_IMPORT,
            ]));
        }
        items.push(self.pass(&pass_table::PRE_ORDER_FUNCS));
        items
    }
    /// The options of the propagation pass in `sdy-propagation-pipeline`.
    pub(super) fn user_priority(self, how: Completion) -> Result<Options> {
        let up_to_priority = how.up_to_priority.map(|priority| priority.to_string());
        let mut settings =
            vec![(&option::KEEP_SHARDING_RULES, "true"), (&option::STRATEGY, how.strategy.name())];
        settings
            .extend(up_to_priority.as_deref().map(|priority| (&option::UP_TO_PRIORITY, priority)));
        Options::defaults(pass_table::USER_PRIORITY_PROPAGATE.options, self.shardy).with(&settings)
    }
    /// `sdy-propagation-pipeline` with the options `how`.
    pub(super) fn propagation(self, how: Completion) -> Result<Vec<Item>> {
        let mut items = self.before_propagation(how.dedup_functions_fully);
        items.push(Self::item(&pass_table::USER_PRIORITY_PROPAGATE, self.user_priority(how)?));
        items.extend(self.after_propagation(how)?);
        Ok(items)
    }
    /// The passes of `sdy-propagation-pipeline` after propagation.
    pub(super) fn after_propagation(self, how: Completion) -> Result<Vec<Item>> {
        let dedup_functions_fully = how.dedup_functions_fully;
        let mut items = Vec::from(if dedup_functions_fully {
            self.passes([
                &pass_table::PROPAGATE_TO_FUNC_RESULTS,
                &pass_table::SINK_FUNC_DATA_FLOW_EDGES,
            ])
        } else {
            self.passes([
                &pass_table::EXPORT_NAMED_COMPUTATIONS,
                &pass_table::PROPAGATE_TO_FUNC_RESULTS,
            ])
        });
        items.extend(self.passes([
            &pass_table::UNFLATTEN_CALL_GRAPH,
            &pass_table::SYMBOL_DCE,
            &pass_table::INSERT_FUNC_CALL_RESHARDS,
        ]));
        let options = Options::defaults(option::EXPORT, self.shardy).with(&[
            (&option::AVOID_CALL_RESHARDS, as_text(dedup_functions_fully)),
            (&option::COLLECTIVES, as_text(how.collectives)),
            (&option::UPDATE_NON_DIVISIBLE, as_text(!how.keep_non_divisible_on_io)),
            (&option::INLINES_MESHES, "false"),
        ])?;
        items.extend(self.export(&options)?);
        Ok(items)
    }
    /// `canonicalize` as the export pipeline configures it, with the patterns of one label.
    fn canonicalize(self, label: &str) -> Result<Item> {
        let settings = [
            (&option::ENABLE_PATTERNS, label),
            (&option::REGION_SIMPLIFY, "aggressive"),
            (&option::TOP_DOWN, "false"),
        ];
        self.pass_with(&pass_table::CANONICALIZE, &settings)
    }
    fn export(self, o: &Options) -> Result<Vec<Item>> {
        let origins = o.flag(&option::DUMP_ORIGINS)?;
        let edges = o.flag(&option::DUMP_EDGES)?;
        let exports = !o.flag(&option::AVOID_EXPORT)?;
        let mut items = vec![self.pass(&pass_table::CONSTANT_OR_SCALAR_MERGER)];
        let debug_info = [
            (&option::SINK_DEBUG_ORIGINS, as_text(origins)),
            (&option::SINK_DEBUG_EDGES, as_text(edges)),
        ];
        items.push(self.pass_with(&pass_table::SINK_DATA_FLOW_EDGES, &debug_info)?);
        if exports {
            let no_constraints =
                [&pass_table::REMOVE_SHARDING_GROUPS, &pass_table::SHARDING_CONSTRAINT_TO_RESHARD];
            items.extend(self.passes(no_constraints));
        }
        if o.flag(&option::UPDATE_NON_DIVISIBLE)? {
            items.extend(self.passes([
                &pass_table::UPDATE_NON_DIVISIBLE_INPUT_OUTPUT_SHARDINGS,
                &pass_table::REMOVE_SUB_AXES_IN_INPUT_OUTPUT_SHARDINGS,
            ]));
        }
        items.extend(self.passes([&pass_table::CLOSE_SHARDINGS, &pass_table::SAVE_MODULE]));
        if exports {
            items.extend(self.partition(o)?);
        }
        if edges || origins {
            items.push(self.pass(&pass_table::REMOVE_PROPAGATION_DEBUG_INFO));
        }
        if !o.flag(&option::KEEP_SHARDING_RULES)? {
            items.push(self.pass(&pass_table::DROP_SHARDING_RULES));
        }
        let may_inline = exports && self.shardy.has(Change::MeshesInlinedOnExport);
        if may_inline && o.flag(&option::INLINES_MESHES)? {
            items.push(self.pass(&pass_table::INLINE_MESHES));
        }
        Ok(items)
    }
    /// The passes that insert reshards and collectives, as the options say.
    fn partition(self, o: &Options) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        if self.shardy.has(Change::VerifyUnreducedAxes) {
            items.push(self.pass(&pass_table::VERIFY_UNREDUCED_AXES));
        }
        let stage = Stage::named(o.text(&option::PARTITIONER_STAGE)?);
        if o.flag(&option::PER_INSTRUCTION)? {
            items.extend(self.partition_each(stage, o)?);
            return Ok(items);
        }
        if stage != Stage::Unspecified {
            items.extend(self.partition_up_to(stage, o)?);
            return Ok(items);
        }
        let collectives = o.flag(&option::COLLECTIVES)?;
        let marks = as_text(o.flag(&option::MARK_PARTIAL_RESULTS)?);
        items.push(self.insert_explicit_reshards(as_text(collectives), marks)?);
        if collectives {
            items.push(self.pass(&pass_table::SAVE_MODULE));
            items.push(self.canonicalize(option::RESHARD_LABEL)?);
            items.push(self.pass(&pass_table::RESHARD_TO_COLLECTIVES));
            if self.shardy.has(Change::OptimizeCollectives) {
                items.push(self.pass(&pass_table::OPTIMIZE_COLLECTIVES));
            }
        }
        items.push(self.canonicalize(option::COLLECTIVE_LABEL)?);
        if collectives && o.flag(&option::REMOVE_FOR_CMV1)? {
            items.push(self.pass(&pass_table::REMOVE_ALL_GATHER_REDUCE_SCATTER_FOR_CMV1));
        }
        items.push(self.pass(&pass_table::SAVE_MODULE));
        Ok(items)
    }
    fn insert_explicit_reshards(self, is_full: &str, marks: &str) -> Result<Item> {
        let settings = [(&option::FULL_VERSION, is_full), (&option::MARK_PARTIAL_RESULTS, marks)];
        self.pass_with(&pass_table::INSERT_EXPLICIT_RESHARDS, &settings)
    }
    /// The passes that partition each op separately.
    fn partition_each(self, stage: Stage, o: &Options) -> Result<Vec<Item>> {
        if stage != Stage::ConvertGlobalToLocal {
            let message =
                "enable-per-instruction-partitioning partitions ops whole, not up to a stage";
            return Err(Diagnostic::new(Code::InvalidPipeline, message)
                .with_hint("add partitioner-stage=convert-global-to-local")
                .into());
        }
        let given = |spec| o.text(spec).map(|text| (spec, text));
        let settings = [
            (&option::FILTER, o.text(&option::PER_INSTRUCTION_FILTER)?),
            given(&option::PARTITION_COUNT)?,
            given(&option::REPLICA_COUNT)?,
            given(&option::RNG_BIT_GENERATOR_UNSAFE)?,
        ];
        Ok(vec![
            self.insert_explicit_reshards("true", "true")?,
            self.pass(&pass_table::SAVE_MODULE),
            self.pass_with(&pass_table::PER_INSTRUCTION_PARTITIONING, &settings)?,
            self.pass(&pass_table::SAVE_MODULE),
            self.canonicalize(option::COLLECTIVE_LABEL)?,
            self.pass(&pass_table::SAVE_MODULE),
        ])
    }
    /// The passes of the partitioner up to `stage`.
    fn partition_up_to(self, stage: Stage, o: &Options) -> Result<Vec<Item>> {
        let mut items = vec![
            self.insert_explicit_reshards("true", "true")?,
            self.pass(&pass_table::SAVE_MODULE),
            self.canonicalize(option::RESHARD_LABEL)?,
        ];
        let counts = [&option::PARTITION_COUNT, &option::REPLICA_COUNT];
        let counts: Vec<(&'static OptionSpec, &str)> =
            counts.iter().map(|&count| Ok((count, o.text(count)?))).collect::<Result<_>>()?;
        let mut settings = counts.clone();
        let rng = o.text(&option::RNG_BIT_GENERATOR_UNSAFE)?;
        settings.push((&option::RNG_BIT_GENERATOR_UNSAFE, rng));
        items.push(self.pass_with(&pass_table::RESOLVE_PERMUTATION_FACTORS, &settings)?);
        if stage >= Stage::ReshardToCollectives {
            items.push(self.pass(&pass_table::RESHARD_TO_COLLECTIVES));
        }
        if stage >= Stage::OptimizeCollectives {
            items.push(self.pass(&pass_table::OPTIMIZE_COLLECTIVES));
            items.push(self.canonicalize(option::COLLECTIVE_LABEL)?);
        }
        if stage >= Stage::PadForDivisibility {
            items.push(self.pass(&pass_table::PAD_FOR_DIVISIBILITY));
        }
        if stage >= Stage::ResolveSingleDeviceSharding {
            items.push(self.pass_with(&pass_table::RESOLVE_SINGLE_DEVICE_SHARDING, &counts)?);
        }
        if stage >= Stage::ConvertGlobalToLocal {
            items.push(self.pass_with(&pass_table::CONVERT_GLOBAL_TO_LOCAL, &counts)?);
            let keeps = [(&option::KEEP_MODULE_SHARDINGS, "true")];
            items.push(self.pass_with(&pass_table::DROP_SHARDING_AND_MESH, &keeps)?);
        }
        items.push(self.canonicalize(option::COLLECTIVE_LABEL)?);
        items.push(self.pass(&pass_table::SAVE_MODULE));
        Ok(items)
    }
}
