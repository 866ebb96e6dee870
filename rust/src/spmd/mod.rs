//! The per-device program (SPMD): the program that each device runs, so that all devices compute the global program.
//!
//! 1. [`placement`]: the shard of a tensor that each device holds, by [`digits`] of its position.
//! 2. [`reshard`]: sequences of collectives from one placement to another with the fewest bytes sent.
//! 3. [`movement`]: exchange of elements along a sharded dim, such as halos.
//! 4. [`strategy`]: the strategies in which an op can be computed on shards; a [`policy`] chooses one, [`xla`] as XLA does.
//! 5. [`custom_partitioning`]: custom calls that come with their own partitioning; `legalize`: rewrites ops without a strategy to
//!    ops that have one.
//! 6. [`lower`]: lowers the source program op by op; [`emit`], [`shape_ops`] and [`collectives`] build the local ops, [`op_copies`]
//!    copies them.
//!
//! Source: GSPMD, section 4 ("SPMD partitioner"); `StableHLO`'s specification.

mod collective_decomposer;
pub mod collective_optimizer;
pub mod collectives;
pub mod convert_global_to_local;
pub mod custom_calls;
pub mod custom_partitioning;
pub mod devices;
pub mod digits;
pub mod emit;
mod legalize;
mod lower;
mod module_shardings;
pub mod movement;
pub mod op_copies;
pub mod outcome;
pub mod placement;
pub mod policy;
pub mod reducer;
mod replica_group_lists;
pub mod reshard;
pub mod reshard_steps;
mod results;
pub mod shape_ops;
pub mod sharding_checks;
pub mod strategy;
mod unknown_ops;
pub mod xla;

pub use convert_global_to_local::GlobalToLocalOptions;
pub use devices::Purpose;
pub use lower::LoweringKind;
pub use placement::Placement;
pub use policy::Policy;
pub use reshard::PlanCache;
pub use results::Results;
pub use unknown_ops::UnknownOps;

use crate::context::Context;
use crate::error::Result;
use crate::ir::Program;
use crate::memory;
use crate::shardy::Change;
use custom_calls::ShardRules;
use custom_partitioning::LocalPrograms;
use outcome::Outcome;
use reshard_steps::Steps;

/// The result of partitioning.
#[derive(Debug, Default)]
pub struct Partitioned {
    /// The number of devices.
    pub num_devices: i64,
    /// How the ops of the source program are computed, in program order.
    pub outcomes: Vec<Outcome>,
    /// The steps of reshards.
    pub steps: Steps,
}

/// The memory per op of the source program, including the local ops and table rows that are made for it.
const BYTES_PER_OP: usize = 1 << 11;

/// How a program is partitioned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// The policy that chooses the strategy of each op.
    pub policy: Policy,
    /// The placement of results after the op that computes them.
    pub results: Results,
    /// How ops without a known partitioning are treated.
    pub unknown: UnknownOps,
    /// Whether reshards send the fewest bytes even under a policy that has its own reshards.
    pub has_free_reshards: bool,
}

/// What users registered for the custom calls of a program.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// How custom calls are computed on shards, by signature.
    pub shard_rules: ShardRules,
    /// The local programs of custom calls, by call.
    pub local_programs: LocalPrograms,
}

/// Lowers `program`, whose shardings are complete, to the program of one device. The policy chooses a strategy for each op, and
/// results are placed as the options say; if reshards are explicit already, the strategy with the fewest bytes adds no further
/// ones. Custom calls are computed as `given`, or by the built-in rules of known targets. New ops have no signatures yet.
pub fn partition(
    program: &mut Program,
    context: &mut Context<'_>,
    given: Given,
    Options { policy, results, unknown, has_free_reshards }: Options,
    known: &mut PlanCache,
) -> Result<Partitioned> {
    memory::ensure(program.num_op_ids().saturating_mul(BYTES_PER_OP), "partitioning the program")?;
    sharding_checks::check(program)?;
    if unknown == UnknownOps::Refuse {
        sharding_checks::check_scales(program)?;
    }
    let Given { shard_rules, local_programs } = given;
    let put = custom_partitioning::put(program, context, &local_programs, &shard_rules)?;
    let legalized = legalize::run(program, context, policy)?.after(put);
    let how = lower::How { policy, results, unknown, has_free_reshards, global_to_local: None };
    let mut partitioned = lower::lower(program, context, shard_rules, how, known)?;
    if unknown == UnknownOps::Refuse {
        replica_group_lists::list(program);
    }
    legalized.name_replaced(&mut partitioned.outcomes);
    Ok(partitioned)
}

/// `sdy-convert-global-to-local`: makes types local and turns each collective of `sdy` into that of `StableHLO`. Meshes
/// and shardings are kept.
pub fn convert_global_to_local(
    program: &mut Program,
    context: &mut Context<'_>,
    options: GlobalToLocalOptions,
) -> Result<()> {
    let Options { policy, results, unknown, has_free_reshards } = Options::default();
    options.device_counts.id_op()?;
    sharding_checks::check_lengths(program)?;
    if program.shardy().has(Change::ModuleShardings) {
        module_shardings::write(program);
    }
    let global_to_local = Some(options);
    let how = lower::How { policy, results, unknown, has_free_reshards, global_to_local };
    let known = &mut PlanCache::default();
    lower::lower(program, context, ShardRules::default(), how, known).map(|_| ())
}
