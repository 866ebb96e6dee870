//! Imports programs that Shardy exported for XLA: `StableHLO` and HLO without the dialect `sdy`, as in dumps of XLA.
//!
//! What the dialect says stands in frontend attributes whose names start with `xla.sdy.`, and in custom calls:
//!
//! | exported | imported |
//! | --- | --- |
//! | `xla.sdy.meshes` of the module | `sdy.mesh` |
//! | `xla.sdy.sharding` of arguments, callbacks, `stablehlo.send` and the like | `sdy.sharding` |
//! | `xla.sdy.tuple_args_shardings`, `xla.sdy.tuple_results_shardings` | shardings of arguments and results of `main` |
//! | `xla.sdy.sharding_rule` | `sdy.sharding_rule` |
//! | `@Sharding` | `sdy.sharding_constraint` |
//! | `@xla.sdy.FuncResultSharding` | the sharding of a result of the function |
//! | `@xla.sdy.ShardingGroup`, `@xla.sdy.PropagationBarrier` | the ops of these names |
//! | `@xla.sdy.GlobalToLocalShape`, a call, `@xla.sdy.LocalToGlobalShape` | `sdy.manual_computation` |
//!
//! Shardings in GSPMD's notation beside these are dropped, as they say the same.
//!
//! Source: XLA's `xla-sdy-round-trip-import-pipeline`.

mod custom_calls;
mod frontend_attributes;
mod manual_computations;
mod shardings;

use crate::error::Result;
use crate::ir::Program;

/// How the names of what Shardy exports start.
const PREFIX: &str = "xla.sdy.";

/// Whether `program` is one that Shardy exported.
pub fn is_exported(program: &Program) -> bool {
    program.text().source().contains(PREFIX)
}

/// Imports what Shardy exported.
pub fn run(program: &mut Program) -> Result<()> {
    shardings::run(program)?;
    manual_computations::run(program)?;
    custom_calls::run(program)
}
