//! `canonicalize` with only the patterns of the `sdy` dialect enabled.
//!
//! MLIR's canonicalizer does more than apply patterns, whichever are enabled, and all of it can be seen
//! in the result:
//!
//! - Constants (of dialects that fold them: not `sdy.constant`) move to the start of the nearest region
//!   around them that sees no values from outside, each in front of those already there unless it
//!   stands right behind one of them. The first of equal ones stays; it loses its location when another
//!   is merged into it or when it leaves its block.
//! - Ops without effects and without uses are erased.
//! - Constant operands of commutative ops of dialects that use MLIR's trait for that (`chlo`) move to the
//!   end.
//!
//! Ops are visited first to last, or last to first: pipelines choose the latter. Regions of more than one block are left as they are.
//!
//! Source: MLIR's greedy pattern driver, operation folder and region utilities, as the canonicalizer
//! pass configures them (at most ten iterations).

mod constants;
mod dead;
mod driver;
mod patterns;

use crate::context::Context;
use crate::error::Result;
use crate::ir::Program;

/// Which patterns are enabled, by their labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// `sdy-reshard`: a reshard of a reshard.
    pub reshard: bool,
    /// `sdy-collective`: collectives that do nothing, or fuse with their neighbours.
    pub collective: bool,
}

/// More iterations than this are never needed in practice; MLIR gives up after them.
const MAX_ITERATIONS: usize = 10;

/// Runs the pass on the module.
pub fn run(
    program: &mut Program,
    context: &mut Context,
    labels: Labels,
    top_down: bool,
) -> Result<()> {
    for iteration in 0..MAX_ITERATIONS {
        context.progress("canonicalize", iteration, 0)?;
        if !driver::Driver::new(program, labels).run_once(top_down) {
            break;
        }
    }
    Ok(())
}
