//! `sdy-propagate-to-func-results`: copies the shardings of returned values to the results of every
//! function except the main one. Since [`Change::MainFuncResults`], also to results of the main
//! function that have no sharding; since then it does not copy maximal shardings.

use crate::context::Context;
use crate::error::Result;
use crate::index::ShardingId;
use crate::ir::{OpKind, Program};
use crate::shardy::Change;

/// Runs the pass on the module.
pub fn run(program: &mut Program, _context: &mut Context) -> Result<()> {
    let main = program.main_function()?;
    for func in program.functions_in_order() {
        let op = program.func_op(func);
        let is_main = func == main;
        let is_later = program.shardy().has(Change::MainFuncResults);
        if is_main && !is_later {
            continue;
        }
        let Some(terminator) = program.region_terminator(op, 0) else { continue };
        if program.kind(terminator) != OpKind::FuncReturn {
            continue;
        }
        for index in 0..program.num_operands(terminator) {
            if is_main && program.func_results(func)[index].sharding.is_some() {
                continue;
            }
            let mut sharding = program.sharding_of(program.operand(terminator, index));
            let is_maximal = |mesh| program.mesh(mesh).is_maximal();
            if is_later && program.mesh_of(sharding).get().is_some_and(is_maximal) {
                sharding = ShardingId::NONE;
            }
            program.set_func_result_sharding(func, index, sharding);
        }
    }
    Ok(())
}
