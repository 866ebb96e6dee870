//! The entry computation layout: the layouts of the results of a program.
//!
//! A result whose sharding is left to the compiler is laid out before the program is partitioned: its minor dims are those that need
//! least padding in the array of all devices. Its part on one device may be larger than an argument of its size, which then is not
//! overwritten, though it is donated.

use super::tiles::{stored_bytes, tiled_bytes};
use crate::compilers::target::Compiler;
use crate::compilers::xla_cpu::kernels::graph::{Graph, NONE};
use crate::index::{TypeId, ValueId};
use crate::ir::Program;
use crate::work::tensors::Tensors;

/// The bytes of `value`, result `index` of the entry function of `program`, in the layout in which `compiler` returns it.
pub fn result_bytes(
    program: &Program,
    tensors: &mut Tensors<'_>,
    (index, value): (usize, ValueId),
    compiler: Compiler,
) -> u128 {
    let whole = open_type(program, index).filter(|_| compiler.has_tiles());
    let Some(whole) = whole else { return stored_bytes(tensors, value, compiler) };
    let row = tensors.id(value);
    tiled_bytes(tensors.row(row), tensors.of_type(whole))
}

/// The type of all devices of result `index`, if its sharding is left to the compiler.
fn open_type(program: &Program, index: usize) -> Option<TypeId> {
    program.func_results(program.entry_function()?).get(index)?.open.get()
}

/// Gives what kernels of `graph`, that of the entry function of `program`, make and return the bytes of the layout in which it is
/// returned.
pub fn lay_out_results(
    program: &Program,
    tensors: &mut Tensors<'_>,
    graph: &mut Graph,
    compiler: Compiler,
) {
    for index in 0..graph.returned.len() {
        let item = graph.returned[index];
        if item == NONE || open_type(program, index).is_none() {
            continue;
        }
        let stored = graph.stored_as(item);
        let item = &mut graph.items[stored as usize];
        if item.made_by != NONE && item.bytes > 0 {
            item.bytes = result_bytes(program, tensors, (index, item.value), compiler);
        }
    }
}
