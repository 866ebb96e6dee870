//! The per-device program (SPMD): the program that each device runs, so that all devices compute the global program.
//!
//! 1. [`placement`]: the shard of a tensor that each device holds, by [`digits`] of its position.
//! 2. [`reshard`]: sequences of collectives from one placement to another with the fewest bytes sent.
//! 3. [`movement`]: exchange of elements along a sharded dim, such as halos.
//! 4. [`ways`]: the ways in which an op can be computed on shards; a [`policy`] chooses one, [`xla`] as XLA does.
//! 5. [`lower`]: lowers the source program op by op; [`emit`], [`shaping`] and [`collectives`] build the local ops.
//!
//! Source: GSPMD, section 4 ("SPMD partitioner"); `StableHLO`'s specification.

pub mod collectives;
pub mod custom_calls;
pub mod devices;
pub mod digits;
pub mod emit;
pub mod improve;
mod lower;
pub mod movement;
pub mod one_by_one;
pub mod outcome;
pub mod placement;
pub mod policy;
pub mod reducer;
pub mod reshard;
mod results;
pub mod shaping;
pub mod ways;
pub mod xla;

pub use lower::Treatment;
pub use one_by_one::OneByOne;
pub use placement::Placement;
pub use policy::Policy;
pub use results::Results;

use crate::context::Context;
use crate::error::Result;
use crate::ir::Program;
use custom_calls::ShardRules;
use outcome::Outcome;

/// The result of partitioning.
#[derive(Clone, Debug, Default)]
pub struct Partitioned {
    /// The number of devices.
    pub num_devices: i64,
    /// How the ops of the source program are computed, in program order.
    pub outcomes: Vec<Outcome>,
}

/// Lowers `program`, whose shardings are complete, to the program of one device. For each op `policy` chooses a way, and
/// results are placed as `results` says; where reshards are explicit already, the way with the fewest bytes needs no
/// further reshards. Custom calls are computed by `shard_rules`, or by the built-in rules of known targets.
pub fn partition(
    program: &mut Program,
    context: &mut Context<'_>,
    shard_rules: ShardRules,
    (policy, results): (Policy, Results),
) -> Result<Partitioned> {
    let how = lower::How { policy, results, one_by_one: None };
    let lower::Lowered { num_devices, outcomes } =
        lower::lower(program, context, shard_rules, how)?;
    Ok(Partitioned { num_devices, outcomes })
}

/// `sdy-convert-global-to-local`: makes types local and turns each collective of `sdy` into that of `StableHLO`. Meshes
/// and shardings are kept.
pub fn convert_global_to_local(
    program: &mut Program,
    context: &mut Context<'_>,
    options: OneByOne,
) -> Result<()> {
    let (policy, results) = (Policy::default(), Results::AsSharded);
    let how = lower::How { policy, results, one_by_one: Some(options) };
    lower::lower(program, context, ShardRules::default(), how).map(|_| ())
}
