//! `sdy-drop-sharding-rules`: removes the sharding rules of ops, except custom rules.

use crate::context::Context;
use crate::error::Result;
use crate::ir::Program;

/// Runs the pass on all functions.
pub fn run(program: &mut Program, _context: &mut Context) -> Result<()> {
    program.drop_rules();
    Ok(())
}
