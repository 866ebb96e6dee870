//! `sdy-drop-sharding-rules`: removes the sharding rules of ops, but for those users wrote.

use crate::context::Context;
use crate::error::Result;
use crate::ir::Program;

/// Runs the pass on all functions.
pub fn run(program: &mut Program, _context: &mut Context) -> Result<()> {
    program.drop_rules();
    Ok(())
}
