//! The table of passes: the name of each, its anchor op, its options, and the function that runs it.

use super::option_specs as option;
use super::options::{Options, Specs};
use super::per_instruction_partitioning;
use super::propagate;
use crate::compilers::xla_cpu::layout_assignment::product_orders;
use crate::compilers::xla_cpu::passes::dot_strength_reduction;
use crate::compilers::xla_gpu::topk_decomposer;
use crate::context::Context;
use crate::error::{Code, Diagnostic, Result};
use crate::index::OpId;
use crate::ir::Program;
use crate::partition::device_id::DeviceCounts;
use crate::partition::{self, canonicalize};
use crate::propagation::populate_op_sharding_rules;
use crate::shardy::Version;
use crate::spmd::{self, collective_optimizer};
use crate::{export, import};

/// A pass on the module, or on each function by its `func.func` op.
#[derive(Clone, Copy)]
pub enum Run {
    /// On `builtin.module`.
    Module(fn(&mut Program, &mut Context<'_>, &Options) -> Result<()>),
    /// On `func.func`.
    Function(fn(&mut Program, &mut Context<'_>, OpId, &Options) -> Result<()>),
    /// On all `func.func` ops together.
    Functions(fn(&mut Program, &mut Context<'_>, &[OpId], &Options) -> Result<()>),
    /// On either; called once for the module in both cases.
    Any(fn(&mut Program, &mut Context<'_>, &Options) -> Result<()>),
}

/// One pass.
pub struct PassSpec {
    /// Its name.
    pub name: &'static str,
    /// Its options.
    pub options: Specs,
    /// The function that runs it, with its kind of anchor op.
    pub run: Run,
    /// The first and the last version of Shardy with the pass.
    pub versions: (Version, Version),
}

impl PassSpec {
    /// Whether it runs only on `func.func`.
    pub(super) fn runs_on_functions(&self) -> bool {
        matches!(self.run, Run::Function(_) | Run::Functions(_))
    }
    /// The pass, available since `version`.
    const fn since(self, version: Version) -> Self {
        Self { versions: (version, self.versions.1), ..self }
    }
    /// The pass, available until `version`.
    const fn until(self, version: Version) -> Self {
        Self { versions: (self.versions.0, version), ..self }
    }
}

impl std::fmt::Debug for PassSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

const ALL_VERSIONS: (Version, Version) = (Version::OLDEST, Version::NEWEST);

const fn module(
    name: &'static str,
    options: Specs,
    run: fn(&mut Program, &mut Context<'_>, &Options) -> Result<()>,
) -> PassSpec {
    PassSpec { name, options, run: Run::Module(run), versions: ALL_VERSIONS }
}
const fn function(
    name: &'static str,
    options: Specs,
    run: fn(&mut Program, &mut Context<'_>, OpId, &Options) -> Result<()>,
) -> PassSpec {
    PassSpec { name, options, run: Run::Function(run), versions: ALL_VERSIONS }
}
const fn functions(
    name: &'static str,
    options: Specs,
    run: fn(&mut Program, &mut Context<'_>, &[OpId], &Options) -> Result<()>,
) -> PassSpec {
    PassSpec { name, options, run: Run::Functions(run), versions: ALL_VERSIONS }
}
const fn any(
    name: &'static str,
    options: Specs,
    run: fn(&mut Program, &mut Context<'_>, &Options) -> Result<()>,
) -> PassSpec {
    PassSpec { name, options, run: Run::Any(run), versions: ALL_VERSIONS }
}

/// Defines passes as items, by which pipelines refer to them, and the list of all passes.
macro_rules! passes {
    ($($item:ident = $spec:expr;)*) => {
        $(pub(super) static $item: PassSpec = $spec;)*

        /// All passes.
        static PASSES: &[&PassSpec] = &[$(&$item),*];
    };
}

/// The passes that `shardy` has.
pub(super) fn passes_of(shardy: Version) -> impl Iterator<Item = &'static PassSpec> {
    let has = move |pass: &&PassSpec| pass.versions.0 <= shardy && shardy <= pass.versions.1;
    PASSES.iter().copied().filter(has)
}

passes! {
    // MLIR
    SYMBOL_DCE = any("symbol-dce", &[], |p, c, _| import::symbol_dce::run(p, c));
    CANONICALIZE = any("canonicalize", option::CANONICALIZE, run_canonicalize);
    // import
    LIFT_INLINED_MESHES = module("sdy-lift-inlined-meshes", &[&option::SINGLE_DEVICE_NAMES], |p, c, o| {
        import::lift_inlined_meshes::run(p, c, o.flag(&option::SINGLE_DEVICE_NAMES)?)
    });
    INLINE_MESHES = module("sdy-inline-meshes", &[], |p, c, _| import::inline_meshes::run(p, c));
    REMOVE_SIZE_ONE_AXES = module("sdy-remove-size-one-axes", &[], |p, c, _| import::remove_size_one_axes::run(p, c));
    PROPAGATE_SHARDING_FROM_FUNC_TO_CALL = module("sdy-propagate-sharding-from-func-to-call", &[], |p, c, _| {
        import::propagate_sharding_from_func_to_call::run(p, c)
    });
    CONSTANT_OR_SCALAR_SPLITTER = module("sdy-constant-or-scalar-splitter", &[], |p, c, _| {
        import::constant_or_scalar_splitter::run(p, c)
    });
    MANUAL_AXES_CLEANUP = module("sdy-manual-axes-cleanup", &[], |p, c, _| import::manual_axes_cleanup::run(p, c));
    ADD_DATA_FLOW_EDGES = module("sdy-add-data-flow-edges", &[], |p, c, _| import::add_data_flow_edges::run(p, c));
    ADD_FUNC_DATA_FLOW_EDGES = module("sdy-add-func-data-flow-edges", &[], |p, c, _| {
        import::add_func_data_flow_edges::run(p, c)
    });
    FLATTEN_CALL_GRAPH = module("sdy-flatten-call-graph", &[], |p, c, _| import::flatten_call_graph::run(p, c));
    IMPORT_FUNC_CALLS = module(
        "sdy-import-func-calls",
        &[&option::NAMED_COMPUTATION_EDGES],
        |p, c, o| {
            let add_edges = o.flag(&option::NAMED_COMPUTATION_EDGES)?;
            import::import_func_calls::run(p, c, add_edges)
        },
    );
    APPLY_SHARDING_CONSTRAINTS = module(
        "sdy-apply-sharding-constraints",
        &[&option::DEBUG_EDGES, &option::DEBUG_ORIGINS],
        |p, c, o| import::apply_sharding_constraints::run(p, c, propagate::debug(o)?),
    );
    SHARDING_GROUP_IMPORT = module("sdy-sharding-group-import", &[], |p, c, _| import::sharding_group_import::run(p, c));
    PRE_ORDER_FUNCS = module("sdy-pre-order-funcs", &[], |p, c, _| import::pre_order_funcs::run(p, c));
    EXPLICIT_GATHER_SCATTER_BATCHING = function("sdy-explicit-gather-scatter-batching", &[], |p, c, op, _| {
        import::explicit_gather_scatter_batching::run(p, c, op)
    });
    // propagation
    BASIC_PROPAGATE = module("sdy-basic-propagate", option::PROPAGATE_BASIC, propagate::basic);
    AGGRESSIVE_PROPAGATE = module("sdy-aggressive-propagate", option::PROPAGATE_AGGRESSIVE, propagate::aggressive);
    OP_PRIORITY_PROPAGATE = module("sdy-op-priority-propagate", option::PROPAGATE_OP_PRIORITY, propagate::op_priority);
    USER_PRIORITY_PROPAGATE = module("sdy-user-priority-propagate", option::PROPAGATE_USER_PRIORITY, propagate::user_priority);
    POPULATE_OP_SHARDING_RULES = function("sdy-populate-op-sharding-rules", option::RULES, |p, c, op, o| {
        populate_op_sharding_rules::run(p, c, op, o.flag(&option::CONSERVATIVE)?)
    });
    // export
    CLOSE_SHARDINGS = module("sdy-close-shardings", &[], |p, c, _| export::close_shardings::run(p, c));
    DROP_SHARDING_AND_MESH = module("sdy-drop-sharding-and-mesh", &[&option::KEEP_MODULE_SHARDINGS], |p, c, o| {
        export::drop_sharding_and_mesh::run(p, c, o.flag(&option::KEEP_MODULE_SHARDINGS)?)
    });
    EXPORT_NAMED_COMPUTATIONS = module("sdy-export-named-computations", &[], |p, c, _| {
        export::export_named_computations::run(p, c)
    });
    INSERT_FUNC_CALL_RESHARDS = module("sdy-insert-func-call-reshards", &[], |p, c, _| {
        export::insert_func_call_reshards::run(p, c)
    });
    PROPAGATE_TO_FUNC_RESULTS = module("sdy-propagate-to-func-results", &[], |p, c, _| {
        export::propagate_to_func_results::run(p, c)
    });
    REMOVE_PROPAGATION_DEBUG_INFO = module("sdy-remove-propagation-debug-info", &[], |p, c, _| {
        export::remove_propagation_debug_info::run(p, c)
    });
    REMOVE_SHARDING_GROUPS = module("sdy-remove-sharding-groups", &[], |p, c, _| export::remove_sharding_groups::run(p, c));
    REMOVE_SUB_AXES_IN_INPUT_OUTPUT_SHARDINGS = module("sdy-remove-sub-axes-in-input-output-shardings", &[], |p, c, _| {
        export::remove_sub_axes_in_input_output_shardings::run(p, c)
    });
    UPDATE_NON_DIVISIBLE_INPUT_OUTPUT_SHARDINGS = module("sdy-update-non-divisible-input-output-shardings", &[], |p, c, _| {
        export::update_non_divisible_input_output_shardings::run(p, c)
    });
    UNFLATTEN_CALL_GRAPH = module("sdy-unflatten-call-graph", &[&option::DEDUP_FUNCTIONS_FULLY], |p, c, o| {
        export::unflatten_call_graph::run(p, c, o.flag(&option::DEDUP_FUNCTIONS_FULLY)?)
    });
    CONSTANT_OR_SCALAR_MERGER = functions("sdy-constant-or-scalar-merger", &[], |p, c, _, _| {
        export::constant_or_scalar_merger::run(p, c)
    });
    PAD_FUNCTION_FOR_DIVISIBILITY = function("sdy-pad-for-divisibility", &[], |p, _, op, _| {
        export::pad_for_divisibility::run(p, op);
        Ok(())
    }).until(Version::V0_10);
    PAD_FOR_DIVISIBILITY = module("sdy-pad-for-divisibility", &[], |p, _, _| {
        export::pad_for_divisibility::run_on_module(p);
        Ok(())
    }).since(Version::V0_12);
    DROP_SHARDING_RULES = functions("sdy-drop-sharding-rules", &[], |p, c, _, _| export::drop_sharding_rules::run(p, c));
    SHARDING_CONSTRAINT_TO_RESHARD = function("sdy-sharding-constraint-to-reshard", &[], |p, c, op, _| {
        export::sharding_constraint_to_reshard::run(p, c, op)
    });
    VERIFY_UNREDUCED_AXES = functions("sdy-verify-unreduced-axes", &[], |p, c, ops, _| {
        export::verify_unreduced_axes::run(p, c, ops)
    }).since(Version::V0_12);
    SINK_DATA_FLOW_EDGES = function(
        "sdy-sink-data-flow-edges",
        &[&option::SINK_DEBUG_EDGES, &option::SINK_DEBUG_ORIGINS],
        |p, c, op, o| {
            let debug_info = export::sink_data_flow_edges::DebugInfo {
                sharding_origins: o.flag(&option::SINK_DEBUG_ORIGINS)?,
                propagation_edges: o.flag(&option::SINK_DEBUG_EDGES)?,
            };
            export::sink_data_flow_edges::run(p, c, op, debug_info)
        },
    );
    SINK_FUNC_DATA_FLOW_EDGES = function("sdy-sink-func-data-flow-edges", &[], |p, c, op, _| {
        export::sink_func_data_flow_edges::run(p, c, op)
    });
    INSERT_EXPLICIT_RESHARDS = functions(
        "sdy-insert-explicit-reshards",
        &[&option::FULL_VERSION, &option::MARK_PARTIAL_RESULTS],
        |p, c, ops, o| {
            let is_full = o.flag(&option::FULL_VERSION)?;
            let marks = o.flag(&option::MARK_PARTIAL_RESULTS)?;
            partition::insert_explicit_reshards::run(p, c, ops, is_full, marks)
        },
    );
    RESHARD_TO_COLLECTIVES = function("sdy-reshard-to-collectives", &[&option::KEEP_REDUNDANT_RESHARDS], |p, c, op, o| {
        partition::reshard_to_collectives::run(p, c, op, o.flag(&option::KEEP_REDUNDANT_RESHARDS)?)
    });
    OPTIMIZE_COLLECTIVES = function("sdy-optimize-collectives", &[], |p, c, op, _| {
        partition::optimize_collectives::run(p, c, op)
    }).since(Version::V0_12);
    RESOLVE_SINGLE_DEVICE_SHARDING = function(
        "sdy-resolve-single-device-sharding",
        &[&option::PARTITION_COUNT, &option::REPLICA_COUNT],
        |p, c, op, o| {
            partition::resolve_single_device_sharding::run(p, c, op, device_counts(o)?)
        },
    ).since(Version::V0_12);
    REMOVE_ALL_GATHER_REDUCE_SCATTER_FOR_CMV1 = function("sdy-remove-all-gather-reduce-scatter-for-cmv1", &[], |p, c, op, _| {
        partition::remove_all_gather_reduce_scatter_for_cmv1::run(p, c, op)
    });
    RESOLVE_PERMUTATION_FACTORS = module("sdy-resolve-permutation-factors", option::PERMUTATION_FACTORS, |p, c, o| {
        partition::resolve_permutation_factors::run(p, c, permutation_factors(o)?)
    });
    // The program of one device
    CONVERT_GLOBAL_TO_LOCAL = module(
        "sdy-convert-global-to-local",
        option::GLOBAL_TO_LOCAL,
        |p, c, o| {
            let options = spmd::GlobalToLocalOptions {
                combines_reduce_scatter: o.flag(&option::COMBINE_REDUCE_SCATTER)?,
                names_groups: o.flag(&option::RGV3)?,
                gathers_per_dim: o.flag(&option::PER_DIM_ALL_GATHER)?,
                device_counts: device_counts(o)?,
            };
            spmd::convert_global_to_local(p, c, options)
        },
    );
    PER_INSTRUCTION_PARTITIONING = module(
        "sdy-per-instruction-partitioning",
        option::PER_INSTRUCTION_PARTITIONING,
        |p, c, o| {
            let options = permutation_factors(o)?;
            per_instruction_partitioning::run(p, c, o.text(&option::FILTER)?, options)
        },
    ).since(Version::V0_12);
    FUSE_RESHARDS = module("fuse-reshards", &[], |p, c, _| collective_optimizer::fuse_reshards::run(p, c));
    ALL_REDUCE_TO_REDUCE_SCATTER = module("all-reduce-to-reduce-scatter", &[], |p, c, _| collective_optimizer::all_reduce_to_reduce_scatter::run(p, c));
    ALL_GATHER_DYNAMIC_SLICE_SIMPLIFIER = module("all-gather-dynamic-slice-simplifier", &[], |p, c, _| {
        c.progress("all-gather-dynamic-slice-simplifier", 0, 1)?;
        collective_optimizer::fuse_reshards::take_own_shards(p);
        Ok(())
    });
    TOP_K_OF_SHARDS = module("top-k-of-shards", &[], |p, c, _| collective_optimizer::top_k_of_shards::run(p, c));
    ALL_REDUCE_FOLDER = module("all-reduce-folder", &[], |p, c, _| collective_optimizer::all_reduce_folder::run(p, c));
    ALL_REDUCE_REASSOCIATE = module("all-reduce-reassociate", &[], |p, c, _| collective_optimizer::all_reduce_reassociate::run(p, c));
    ALL_GATHER_BROADCAST_REORDER = module("all-gather-broadcast-reorder", &[], |p, c, _| collective_optimizer::all_gather_broadcast_reorder::run(p, c));
    WHILE_LOOP_ALL_REDUCE_CODE_MOTION = module("while-loop-all-reduce-code-motion", &[], |p, c, _| collective_optimizer::while_loop_all_reduce_code_motion::run(p, c));
    MERGE_EQUAL_COLLECTIVES = module("merge-equal-collectives", &[], |p, c, _| collective_optimizer::merge_equal_collectives::run(p, c));
    HOIST_LOOP_INVARIANT_COLLECTIVES = module("hoist-loop-invariant-collectives", &[&option::MAX_BYTES], |p, c, o| {
        collective_optimizer::hoist_loop_invariant_collectives::run(p, c, o.number(&option::MAX_BYTES)?.unwrap_or(collective_optimizer::hoist_loop_invariant_collectives::MAX_BYTES))
    });
    REDUCE_SCATTER_DECOMPOSER = module("reduce-scatter-decomposer", &[], |p, c, _| collective_optimizer::reduce_scatter_decomposer::run(p, c));
    SCHEDULE_AWARE_COLLECTIVE_CSE = module("schedule-aware-collective-cse", &[], |p, c, _| collective_optimizer::schedule_aware_collective_cse::run(p, c));
    DOT_STRENGTH_REDUCTION = module("dot-strength-reduction", &[], |p, c, _| dot_strength_reduction::run(p, c));
    LAYOUT_ASSIGNMENT = module("layout-assignment", &[], |p, c, _| product_orders::run(p, c));
    TOPK_DECOMPOSER = module("topk-decomposer", &[], |p, c, _| topk_decomposer::run(p, c));
    SCATTER_ADD_FOLDER = module("scatter-add-folder", &[], |p, c, _| {
        c.progress("scatter-add-folder", 0, 1)?;
        crate::compilers::xla_cpu::passes::scatter_sums::run(p);
        Ok(())
    });
    REMOVE_UNUSED_OPS = module("remove-unused-ops", &[], |p, c, _| collective_optimizer::remove_unused_ops::run(p, c));
    // In Shardy it writes the module to a file if an option names a directory; here it does
    // nothing.
    SAVE_MODULE = any("sdy-save-module", &[], |_, _, _| Ok(()));
}

/// The options of `sdy-resolve-permutation-factors`.
fn permutation_factors(o: &Options) -> Result<partition::resolve_permutation_factors::Options> {
    Ok(partition::resolve_permutation_factors::Options {
        enable_halo_exchange: o.flag(&option::HALO_EXCHANGE)?,
        shards_random_bits: o.flag(&option::RNG_BIT_GENERATOR_UNSAFE)?,
        device_counts: device_counts(o)?,
    })
}

/// The numbers of replicas and of partitions.
fn device_counts(o: &Options) -> Result<DeviceCounts> {
    Ok(DeviceCounts {
        replica_count: o.number(&option::REPLICA_COUNT)?.unwrap_or(1),
        partition_count: o.number(&option::PARTITION_COUNT)?.unwrap_or(1),
    })
}

/// Runs `canonicalize`.
fn run_canonicalize(program: &mut Program, context: &mut Context<'_>, o: &Options) -> Result<()> {
    if o.flag(&option::CSE)? {
        let message = "canonicalize merges no equal ops between iterations";
        return Err(Diagnostic::new(Code::InvalidPipeline, message)
            .with_hint("leave out cse-between-iterations")
            .into());
    }
    let enabled_labels = o.list(&option::ENABLE_PATTERNS)?;
    let disabled_labels = o.list(&option::DISABLE_PATTERNS)?;
    let dialects = o.list(&option::FILTER_DIALECTS)?;
    let enables_all = enabled_labels.is_empty();
    let is_on = |label| {
        (enables_all || enabled_labels.contains(&label)) && !disabled_labels.contains(&label)
    };
    let loads = |dialect| dialects.is_empty() || dialects.contains(&dialect);
    let enabled = canonicalize::Enabled {
        reshard: loads("sdy") && is_on(option::RESHARD_LABEL),
        collective: loads("sdy") && is_on(option::COLLECTIVE_LABEL),
        unlabelled: loads("sdy") && enables_all,
        stablehlo: loads("stablehlo") && enables_all,
    };
    // A negative number is no limit.
    let limit = |number: Option<i64>| number.and_then(|number| usize::try_from(number).ok());
    let config = canonicalize::Config {
        top_down: o.flag(&option::TOP_DOWN)?,
        max_iterations: limit(o.number(&option::MAX_ITERATIONS)?),
        max_rewrites: limit(o.number(&option::MAX_REWRITES)?),
        erases_dead: o.text(&option::REGION_SIMPLIFY)? != "disabled",
    };
    let has_converged = canonicalize::run(program, context, enabled, config)?;
    if !has_converged && o.flag(&option::TEST_CONVERGENCE)? {
        let message = "canonicalize has not converged";
        return Err(Diagnostic::new(Code::NoConvergence, message)
            .with_hint("raise max-iterations")
            .into());
    }
    Ok(())
}
