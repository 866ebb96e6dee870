//! `sdy-close-shardings`: closes every dim of every sharding and drops replicated axes.

use crate::context::Context;
use crate::error::Result;
use crate::ir::Program;

/// Runs the pass on the module.
pub fn run(program: &mut Program, _context: &mut Context) -> Result<()> {
    program.transform_shardings(|program, sharding| {
        let closed = program.shardings()[sharding].closed();
        program.intern_sharding(closed)
    });
    Ok(())
}
