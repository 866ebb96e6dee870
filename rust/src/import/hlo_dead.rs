//! Removes ops that nothing uses, as XLA does before it hands a program to Shardy.
//!
//! A constraint or a manual computation among them would shard what it reads otherwise. What a loop carries stays even
//! if nobody reads it.
//!
//! Source: XLA's `HloDCE`, and `HasSideEffect` of its ops.

use crate::ir::{Program, Unused};

/// Removes the ops of `program` whose results nobody uses, and which have no side effects. XLA counts collectives as such.
pub fn run(program: &mut Program) {
    program.erase_unused(Unused::WithoutCollectives);
}
