//! Erases unused ops, as XLA does before it hands a program to Shardy.
//!
//! An unused constraint or manual computation would otherwise shard its operands. Values that a
//! loop carries are kept even if they are not read.
//!
//! Source: XLA's `HloDCE`, and `HasSideEffect` of its ops.

use crate::ir::{Program, Unused};

/// Erases the ops of `program` whose results are unused and which have no side effects. XLA also
/// erases unused collectives.
pub fn run(program: &mut Program) {
    program.erase_unused(Unused::WithoutCollectives);
}
