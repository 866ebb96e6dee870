//! The program of one device (SPMD): what each device runs so that all together compute the program.
//!
//! 1. [`placement`]: which shard of a tensor each device holds, in [`digits`] of its position.
//! 2. [`reshard`]: how to get from one placement to another with the fewest bytes sent.
//! 3. [`movement`]: how elements get to other places along a dim that is sharded.
//! 4. [`ways`]: how an op can be computed on shards.
//! 5. [`lower`]: op by op, the source program becomes the local one: [`emit`], [`shaping`] and [`collectives`] make its ops.
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
pub mod reducer;
pub mod reshard;
pub mod shaping;
pub mod ways;

pub use lower::Treatment;
pub use one_by_one::OneByOne;
pub use placement::Placement;

use crate::context::Context;
use crate::error::Result;
use crate::ir::Program;
use custom_calls::ShardRules;
use outcome::Outcome;

/// What partitioning found out.
#[derive(Clone, Debug, Default)]
pub struct Partitioned {
    /// How many devices the program is for.
    pub num_devices: i64,
    /// What became of the ops of the source program, in program order.
    pub outcomes: Vec<Outcome>,
}

/// Makes of `program`, whose shardings are complete, the program of one device. Of the ways to compute an op that
/// of the fewest bytes is taken; where reshards are explicit already, that is the one which needs no others.
/// Custom calls are computed as `shard_rules` say, or as is known of their targets.
pub fn partition(
    program: &mut Program,
    context: &mut Context<'_>,
    shard_rules: ShardRules,
) -> Result<Partitioned> {
    let lower::Lowered { num_devices, outcomes } =
        lower::lower(program, context, shard_rules, None)?;
    Ok(Partitioned { num_devices, outcomes })
}

/// `sdy-convert-global-to-local`: makes types local and collectives of `sdy` those of `StableHLO`, one by one. Meshes
/// and shardings stay.
pub fn convert_global_to_local(
    program: &mut Program,
    context: &mut Context<'_>,
    options: OneByOne,
) -> Result<()> {
    lower::lower(program, context, ShardRules::default(), Some(options)).map(|_| ())
}
