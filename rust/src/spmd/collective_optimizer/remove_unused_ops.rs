//! `remove-unused-ops`: removes ops without uses and side effects; also collectives, since all devices remove them alike.

use crate::context::Context;
use crate::error::Result;
use crate::ir::{Program, Unused};

/// Runs the pass on the module.
pub fn run(program: &mut Program, context: &mut Context<'_>) -> Result<()> {
    context.progress("remove-unused-ops", 0, 1)?;
    program.erase_unused(Unused::All);
    Ok(())
}
