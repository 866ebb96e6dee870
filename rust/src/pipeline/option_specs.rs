//! Every option of passes and pipelines, as a Rust item. Options are set and read by item, so that
//! a misspelt one does not compile.

use super::options::{OptionKind, OptionSpec, Specs};
use super::stage::Stage;
use crate::propagation::Strategy;
use crate::shardy::Version;

/// An option that all versions of Shardy have.
const fn plain(name: &'static str, kind: OptionKind, default: &'static str) -> OptionSpec {
    OptionSpec { name, kind, default, later_default: None, since: Version::OLDEST, is_extra: false }
}
/// A flag that is false by default.
const fn flag(name: &'static str) -> OptionSpec {
    plain(name, OptionKind::Flag, "false")
}
/// A flag that is true by default.
const fn flag_on(name: &'static str) -> OptionSpec {
    plain(name, OptionKind::Flag, "true")
}
/// A text that is empty by default.
const fn text(name: &'static str) -> OptionSpec {
    plain(name, OptionKind::Text, "")
}
const fn number(name: &'static str, default: &'static str) -> OptionSpec {
    plain(name, OptionKind::Number, default)
}
const fn list(name: &'static str, words: &'static [&'static str]) -> OptionSpec {
    plain(name, OptionKind::List(words), "")
}
const fn choice(
    name: &'static str,
    words: &'static [&'static str],
    default: &'static str,
) -> OptionSpec {
    plain(name, OptionKind::Choice(words), default)
}

/// Defines options as items.
macro_rules! options {
    ($($item:ident = $spec:expr;)*) => {
        $(pub(super) static $item: OptionSpec = $spec;)*
    };
}

/// The label of the canonicalization patterns on reshards.
pub(super) const RESHARD_LABEL: &str = "sdy-reshard";
/// The label of the canonicalization patterns on collectives.
pub(super) const COLLECTIVE_LABEL: &str = "sdy-collective";
const LABELS: &[&str] = &[RESHARD_LABEL, COLLECTIVE_LABEL];

options! {
    // canonicalize
    CSE = flag("cse-between-iterations");
    DISABLE_PATTERNS = list("disable-patterns", LABELS);
    ENABLE_PATTERNS = list("enable-patterns", LABELS);
    FILTER_DIALECTS = list("filter-dialects", &[]);
    MAX_ITERATIONS = number("max-iterations", "10");
    // sdy-drop-sharding-and-mesh
    KEEP_MODULE_SHARDINGS = flag("keep-module-sharding-metadata").since(Version::V0_12);
    // sdy-convert-global-to-local
    COMBINE_REDUCE_SCATTER = flag("combine-multi-dimension-reduce-scatter");
    PER_DIM_ALL_GATHER = flag("per-dim-all-gather");
    RGV3 = flag("enable-rgv3").with_default_since(Version::V0_12, "true");
    // 1 GiB
    MAX_BYTES = number("max-bytes", "1073741824");
    MAX_REWRITES = number("max-num-rewrites", "-1");
    REGION_SIMPLIFY = choice("region-simplify", &["disabled", "normal", "aggressive"], "normal");
    TEST_CONVERGENCE = flag("test-convergence");
    TOP_DOWN = flag_on("top-down");
    // import
    NAMED_COMPUTATION_EDGES = flag_on("add-data-flow-edges-on-named-computations");
    SINGLE_DEVICE_NAMES = flag("use-single-device-mesh-names").since(Version::V0_12);
    // propagation
    CONSERVATIVE = flag("conservative-propagation");
    DEBUG_EDGES = flag("debug-propagation-edge-sharding");
    DEBUG_ORIGINS = flag("debug-sharding-origins");
    KEEP_SHARDING_RULES = flag("keep-sharding-rules");
    MODULE_DUMP_DIRECTORY = text("module-dump-directory");
    STRATEGY = choice("propagation-strategy", &Strategy::NAMES, Strategy::Aggressive.name());
    RUN_OP_PRIORITY = flag_on("run-op-priority-propagation");
    // export
    DEDUP_FUNCTIONS_FULLY = flag("dedup-functions-fully");
    SINK_DEBUG_EDGES = flag("sink-debug-propagation-edge-sharding");
    SINK_DEBUG_ORIGINS = flag("sink-debug-sharding-origins");
    FULL_VERSION = flag("enable-full-version");
    MARK_PARTIAL_RESULTS =
        flag("mark-partial-result-with-unreduced-axes").since(Version::V0_12);
    KEEP_REDUNDANT_RESHARDS = flag("keep-redundant-reshards");
    HALO_EXCHANGE = flag_on("enable-halo-exchange");
    // The numbers of replicas and of partitions; devices are numbered along the one that is larger
    // than one.
    PARTITION_COUNT = number("partition-count", "1").since(Version::V0_12);
    REPLICA_COUNT = number("replica-count", "1").since(Version::V0_12);
    RNG_BIT_GENERATOR_UNSAFE = flag_on("rng-bit-generator-unsafe").since(Version::V0_12);
    // sdy-per-instruction-partitioning
    FILTER = text("filter");
    // the export pipeline
    PER_INSTRUCTION = flag("enable-per-instruction-partitioning").since(Version::V0_12);
    PER_INSTRUCTION_FILTER = text("per-instruction-partitioning-filter").since(Version::V0_12);
    AVOID_EXPORT = flag("avoid-export-for-partitioning");
    AVOID_CALL_RESHARDS = flag("avoid-reshards-on-calls");
    DUMP_DIRECTORY = text("dump-directory");
    DUMP_EDGES = flag("dump-propagation-edges");
    DUMP_ORIGINS = flag("dump-sharding-origins");
    COLLECTIVES = flag("enable-insert-explicit-collectives");
    REMOVE_FOR_CMV1 = flag("remove-all-gather-reduce-scatter-for-cmv1");
    INLINES_MESHES = flag_on("inline-meshes").since(Version::V0_12);
    PARTITIONER_STAGE =
        choice("partitioner-stage", &Stage::NAMES, Stage::NAMES[0]).since(Version::V0_12);
    UPDATE_NON_DIVISIBLE = flag_on("update-non-divisible-input-output-shardings");
}

/// The last user priority that takes part; empty means all. Shardy does not have this option.
pub(super) static UP_TO_PRIORITY: OptionSpec =
    OptionSpec { is_extra: true, ..number("up-to-priority", "") };

pub(super) const CANONICALIZE: Specs = &[
    &CSE,
    &DISABLE_PATTERNS,
    &ENABLE_PATTERNS,
    &FILTER_DIALECTS,
    &MAX_ITERATIONS,
    &MAX_REWRITES,
    &REGION_SIMPLIFY,
    &TEST_CONVERGENCE,
    &TOP_DOWN,
];
pub(super) const RULES: Specs = &[&CONSERVATIVE];
pub(super) const PROPAGATE_BASIC: Specs =
    &[&CONSERVATIVE, &DEBUG_EDGES, &DEBUG_ORIGINS, &KEEP_SHARDING_RULES, &MODULE_DUMP_DIRECTORY];
pub(super) const PROPAGATE_AGGRESSIVE: Specs = &[
    &CONSERVATIVE,
    &DEBUG_EDGES,
    &DEBUG_ORIGINS,
    &KEEP_SHARDING_RULES,
    &MODULE_DUMP_DIRECTORY,
    &STRATEGY,
];
pub(super) const PROPAGATE_OP_PRIORITY: Specs = &[
    &CONSERVATIVE,
    &DEBUG_EDGES,
    &DEBUG_ORIGINS,
    &KEEP_SHARDING_RULES,
    &MODULE_DUMP_DIRECTORY,
    &STRATEGY,
    &RUN_OP_PRIORITY,
];
pub(super) const PROPAGATE_USER_PRIORITY: Specs = &[
    &CONSERVATIVE,
    &DEBUG_EDGES,
    &DEBUG_ORIGINS,
    &KEEP_SHARDING_RULES,
    &MODULE_DUMP_DIRECTORY,
    &STRATEGY,
    &RUN_OP_PRIORITY,
    &UP_TO_PRIORITY,
];
pub(super) const PERMUTATION_FACTORS: Specs =
    &[&HALO_EXCHANGE, &PARTITION_COUNT, &REPLICA_COUNT, &RNG_BIT_GENERATOR_UNSAFE];
pub(super) const PER_INSTRUCTION_PARTITIONING: Specs =
    &[&HALO_EXCHANGE, &FILTER, &PARTITION_COUNT, &REPLICA_COUNT, &RNG_BIT_GENERATOR_UNSAFE];
pub(super) const GLOBAL_TO_LOCAL: Specs =
    &[&COMBINE_REDUCE_SCATTER, &PARTITION_COUNT, &PER_DIM_ALL_GATHER, &REPLICA_COUNT, &RGV3];
pub(super) const DEDUP: Specs = &[&DEDUP_FUNCTIONS_FULLY];
pub(super) const EXPORT: Specs = &[
    &AVOID_EXPORT,
    &AVOID_CALL_RESHARDS,
    &DUMP_DIRECTORY,
    &DUMP_EDGES,
    &DUMP_ORIGINS,
    &COLLECTIVES,
    &KEEP_SHARDING_RULES,
    &REMOVE_FOR_CMV1,
    &INLINES_MESHES,
    &MARK_PARTIAL_RESULTS,
    &PARTITION_COUNT,
    &PARTITIONER_STAGE,
    &PER_INSTRUCTION,
    &PER_INSTRUCTION_FILTER,
    &REPLICA_COUNT,
    &RNG_BIT_GENERATOR_UNSAFE,
    &UPDATE_NON_DIVISIBLE,
];
