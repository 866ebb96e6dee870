//! Imports programs that Shardy exported to XLA, such as dumps of XLA: `StableHLO` or HLO without
//! ops of `sdy`.
//!
//! Their shardings are in frontend attributes whose names start with `xla.sdy.`, and in custom
//! calls:
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
//! Shardings in GSPMD's notation are dropped if the program has these attributes and meshes, since
//! they say the same. Later versions of XLA have shardings only in GSPMD's notation.
//!
//! Source: XLA's `xla-sdy-round-trip-import-pipeline`.

mod custom_calls;
mod frontend_attributes;
mod manual_computations;
mod shape_changes;
mod shardings;

use crate::error::Result;
use crate::ir::Program;
use frontend_attributes::{FRONTEND_ATTRIBUTES, PREFIX};
pub use shape_changes::run as split_shape_changes;
pub(in crate::import) use shardings::ANNOTATED;

/// Frontend attributes that occur only in programs that Shardy exported and XLA has not processed
/// further.
const MARKS: [&str; 5] = ["allowed_direction", "manual_axes", "meshes", "sharding", "tuple_"];

/// Whether Shardy exported `program`.
pub fn is_exported(program: &Program) -> bool {
    if program.find_name(FRONTEND_ATTRIBUTES).is_none() {
        return false;
    }
    let mut names = program.text().source().split(PREFIX).skip(1);
    names.any(|rest| MARKS.iter().any(|mark| rest.starts_with(mark)))
}

/// Imports a program that Shardy exported.
pub fn run(program: &mut Program) -> Result<()> {
    shape_changes::untuple(program);
    shardings::run(program)?;
    manual_computations::run(program)?;
    custom_calls::run(program)
}
