//! The per-device program (SPMD): the program that each device runs, so that all devices compute the global program.
//!
//! 1. [`placement`]: the shard of a tensor that each device holds, by [`digits`] of its position.
//! 2. [`reshard`]: sequences of collectives from one placement to another with the fewest bytes sent.
//! 3. [`movement`]: exchange of elements along a sharded dim, such as halos.
//! 4. [`ways`]: the ways in which an op can be computed on shards; a [`policy`] chooses one, [`xla`] as XLA does.
//! 5. [`partitioned_calls`]: calls that say themselves what one device computes; `legalize`: ops of which no way is known, in
//!    other words.
//! 6. [`lower`]: lowers the source program op by op; [`emit`], [`shaping`] and [`collectives`] build the local ops, [`repeat`]
//!    copies them.
//!
//! Source: GSPMD, section 4 ("SPMD partitioner"); `StableHLO`'s specification.

pub mod collectives;
pub mod custom_calls;
pub mod devices;
pub mod digits;
pub mod emit;
pub mod improve;
mod legalize;
mod listed_groups;
mod lower;
mod module_shardings;
pub mod movement;
pub mod one_by_one;
pub mod outcome;
pub mod partitioned_calls;
pub mod placement;
pub mod policy;
mod reduced_apart;
pub mod reducer;
pub mod repeat;
pub mod reshard;
mod results;
pub mod shaping;
pub mod sound;
pub mod steps;
mod unknown;
pub mod ways;
pub mod xla;

pub use devices::Purpose;
pub use lower::Treatment;
pub use one_by_one::OneByOne;
pub use placement::Placement;
pub use policy::Policy;
pub use reshard::KnownPlans;
pub use results::Results;
pub use unknown::Unknown;

use crate::context::Context;
use crate::error::Result;
use crate::ir::Program;
use crate::memory;
use crate::shardy::Change;
use custom_calls::ShardRules;
use outcome::Outcome;
use partitioned_calls::LocalPrograms;
use steps::Steps;

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

/// The memory that an op of the source program takes, with the ops and rows that are made for it.
const BYTES_PER_OP: usize = 1 << 11;

/// How a program is partitioned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// What chooses among the ways to compute an op.
    pub policy: Policy,
    /// The placement of results after the op that computes them.
    pub results: Results,
    /// What is done with ops whose computation on shards is not known.
    pub unknown: Unknown,
    /// Whether reshards send the fewest bytes also where the policy has reshards of its own.
    pub has_free_reshards: bool,
}

/// What is given of the custom calls of a program.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// How custom calls are computed on shards, by signature.
    pub shard_rules: ShardRules,
    /// What computes custom calls on one device, by call.
    pub local_programs: LocalPrograms,
}

/// Lowers `program`, whose shardings are complete, to the program of one device. For each op the policy chooses a way, and
/// results are placed as the options say; where reshards are explicit already, the way with the fewest bytes needs no
/// further reshards. Custom calls are computed as `given`, or by the built-in rules of known targets. New ops have no
/// signatures yet.
pub fn partition(
    program: &mut Program,
    context: &mut Context<'_>,
    given: Given,
    Options { policy, results, unknown, has_free_reshards }: Options,
    known: &mut KnownPlans,
) -> Result<Partitioned> {
    memory::ensure(program.num_op_ids().saturating_mul(BYTES_PER_OP), "partitioning the program")?;
    sound::check(program)?;
    if unknown == Unknown::Refuse {
        sound::check_scales(program)?;
    }
    let Given { shard_rules, local_programs } = given;
    let put = partitioned_calls::put(program, context, &local_programs, &shard_rules)?;
    let legalized = legalize::run(program, context, policy)?.after(put);
    let how = lower::How { policy, results, unknown, has_free_reshards, one_by_one: None };
    let mut partitioned = lower::lower(program, context, shard_rules, how, known)?;
    if unknown == Unknown::Refuse {
        listed_groups::list(program);
    }
    legalized.name_replaced(&mut partitioned.outcomes);
    Ok(partitioned)
}

/// `sdy-convert-global-to-local`: makes types local and turns each collective of `sdy` into that of `StableHLO`. Meshes
/// and shardings are kept.
pub fn convert_global_to_local(
    program: &mut Program,
    context: &mut Context<'_>,
    options: OneByOne,
) -> Result<()> {
    let Options { policy, results, unknown, has_free_reshards } = Options::default();
    options.device_counts.id_op()?;
    sound::check_lengths(program)?;
    if program.shardy().has(Change::ModuleShardings) {
        module_shardings::write(program);
    }
    let one_by_one = Some(options);
    let how = lower::How { policy, results, unknown, has_free_reshards, one_by_one };
    let known = &mut KnownPlans::default();
    lower::lower(program, context, ShardRules::default(), how, known).map(|_| ())
}
