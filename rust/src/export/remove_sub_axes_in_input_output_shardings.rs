//! `sdy-remove-sub-axes-in-input-output-shardings`: trims open dims of the main function's
//! arguments and results to the axes before the first sub-axis.

use crate::context::Context;
use crate::error::Result;
use crate::index::ShardingId;
use crate::ir::Program;
use crate::sharding::TensorSharding;

/// Runs the pass on the module.
pub fn run(program: &mut Program, _context: &mut Context) -> Result<()> {
    let main = program.main_function()?;
    if let Some(body) = program.func_body(main).get() {
        for arg in program.block_args(body) {
            let whole = trimmed(program, program.sharding(arg));
            program.set_sharding(arg, whole);
        }
    }
    for index in 0..program.func_results(main).len() {
        let whole = trimmed(program, program.func_results(main)[index].sharding);
        program.set_func_result_sharding(main, index, whole);
    }
    Ok(())
}

/// The trimmed form of `sharding`.
fn trimmed(program: &mut Program, sharding: ShardingId) -> ShardingId {
    let old = program.shardings().get(sharding);
    match old.and_then(with_whole_axes) {
        Some(new) => program.intern_sharding(new),
        None => sharding,
    }
}

/// `sharding` without the first sub-axis of each open dim and the axes after it; `None` if there is
/// no sub-axis.
pub fn with_whole_axes(sharding: &TensorSharding) -> Option<TensorSharding> {
    if sharding.dims.iter().all(|dim| dim.axes.iter().all(|axis| axis.sub.is_none())) {
        return None;
    }
    let mut new = sharding.clone();
    for dim in new.dims.iter_mut().filter(|dim| !dim.is_closed) {
        if let Some(end) = dim.axes.iter().position(|axis| axis.sub.is_some()) {
            dim.axes.truncate(end);
        }
    }
    Some(new)
}
