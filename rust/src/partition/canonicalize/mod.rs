//! `canonicalize` with the patterns of the `sdy` and `stablehlo` dialects.
//!
//! Besides applying patterns, MLIR's canonicalizer does the following, whichever patterns are
//! enabled. All of it affects the result:
//!
//! - Constants (of dialects that fold them: not `sdy.constant`) move to the start of the nearest
//!   enclosing region that is isolated from above, each in front of the constants already there,
//!   unless it is right behind one of them. Of equal constants the first is kept; it loses its
//!   location when another is merged into it or when it leaves its block.
//! - Ops without side effects and without uses are erased.
//! - Constant operands of commutative ops of dialects that use MLIR's trait for it (`chlo`) move to
//!   the end.
//!
//! Ops are visited first to last, or last to first; pipelines choose the latter. Regions of more
//! than one block are not changed.
//!
//! `stablehlo` has one pattern, for a `case` with a constant index, and no folders. Patterns and
//! folders of other dialects (`arith`, `tensor`, `func.call_indirect`, `chlo.constant_like`) are
//! not implemented.
//!
//! Other passes apply their own patterns in the same way: see [`apply_greedily`].
//!
//! Source: MLIR's greedy pattern driver, operation folder and region utilities, as the canonicalizer
//! pass configures them (at most ten iterations).

mod case;
mod collectives;
pub(super) mod commute;
mod constants;
mod dead;
mod driver;
mod manual_computation;
mod reshard;

pub use driver::{apply_greedily, Config, Driver, Patterns};

use crate::context::Context;
use crate::error::Result;
use crate::index::OpId;
use crate::ir::{OpKind, Program};

/// Which patterns are enabled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // Each is an option of the pass.
pub struct Enabled {
    /// Label `sdy-reshard`: a reshard of a reshard.
    pub reshard: bool,
    /// Label `sdy-collective`: collectives that do nothing, or fuse with their neighbours.
    pub collective: bool,
    /// Patterns of `sdy` without a label: equal reshards, manual computations that have no effect.
    pub unlabelled: bool,
    /// Patterns of `stablehlo`.
    pub stablehlo: bool,
}

impl Patterns for Enabled {
    fn kinds(&self) -> Option<Vec<OpKind>> {
        let mut kinds = Vec::new();
        if self.reshard || self.unlabelled {
            kinds.push(OpKind::Reshard);
        }
        if self.unlabelled {
            kinds.push(OpKind::ManualComputation);
        }
        if self.stablehlo {
            kinds.push(OpKind::Case);
        }
        if self.collective {
            kinds.extend(collectives::KINDS);
        }
        Some(kinds)
    }
    fn apply(&mut self, driver: &mut Driver<'_>, op: OpId) -> bool {
        match driver.program.kind(op) {
            OpKind::Reshard => {
                (self.reshard && reshard::fuse(driver, op))
                    || (self.unlabelled && reshard::reuse(driver, op))
            }
            OpKind::ManualComputation => {
                self.unlabelled
                    && (manual_computation::drop_unused_inputs(driver, op)
                        || manual_computation::drop_redundant(driver, op))
            }
            OpKind::Case => self.stablehlo && case::inline_constant(driver, op),
            _ => self.collective && collectives::apply(driver, op),
        }
    }
}

/// Runs the pass on the module. Returns false if a limit was reached before it converged.
pub fn run(
    program: &mut Program,
    context: &mut Context<'_>,
    mut enabled: Enabled,
    config: Config,
) -> Result<bool> {
    let module = program.module_op();
    apply_greedily(program, context, module, &mut enabled, config)
}
