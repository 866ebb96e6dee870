//! `sdy-remove-propagation-debug-info`: removes what propagation recorded about where shardings came
//! from.

use crate::context::Context;
use crate::error::Result;
use crate::index::{FuncId, OpId};
use crate::ir::{Attr, AttrRange, Program};

const DEBUG_ATTRS: [&str; 6] = [
    "sdy.propagation_edges",
    "sdy.block_arg_propagation_edges",
    "sdy.result_propagation_edges",
    "sdy.sharding_origins",
    "sdy.block_arg_sharding_origins",
    "sdy.result_sharding_origins",
];

/// Runs the pass on the module.
pub fn run(program: &mut Program, _context: &mut Context) -> Result<()> {
    if DEBUG_ATTRS.iter().all(|name| program.strings.find(name).is_none()) {
        return Ok(());
    }
    let ops: Vec<OpId> = program.pre_order(program.module).collect();
    for op in ops {
        if let Some(func) = program.function_of(op).get() {
            clean_function(program, func);
            continue;
        }
        for name in DEBUG_ATTRS {
            program.remove_attr(op, name);
        }
    }
    Ok(())
}

/// Removes the attributes from arguments and results of `func`.
fn clean_function(program: &mut Program, func: FuncId) {
    let mut changed = false;
    for index in 0..program.func_args(func).len() {
        let range = program.func_args(func)[index].attrs;
        let cleaned = cleaned(program, range);
        changed |= cleaned != range;
        program.func_args_mut(func)[index].attrs = cleaned;
    }
    for index in 0..program.func_results(func).len() {
        let range = program.func_results(func)[index].attrs;
        let cleaned = cleaned(program, range);
        changed |= cleaned != range;
        program.func_results_mut(func)[index].attrs = cleaned;
    }
    if changed {
        program.mark_attrs_changed(program.functions[func].op);
    }
}

/// The dictionary at `range` without the attributes.
fn cleaned(program: &mut Program, range: AttrRange) -> AttrRange {
    let is_kept = |attr: &&Attr| !DEBUG_ATTRS.contains(&program.strings.get(attr.name));
    let kept: Vec<Attr> = program.attr_list(range).iter().filter(is_kept).copied().collect();
    if kept.len() == range.len as usize {
        return range;
    }
    program.add_attrs(&kept)
}
