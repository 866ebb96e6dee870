//! Donated arguments, and the outputs that take their buffers.
//!
//! `tf.aliasing_output = 2 : i32` on an argument donates its buffer to output 2. `jax.buffer_donor = true` leaves the choice to the
//! compiler, which takes the first output of the same size that has no argument yet.

use crate::compilers::target::Compiler;
use crate::compilers::xla_tpu::entry_layouts::result_bytes;
use crate::compilers::xla_tpu::tiles::stored_bytes;
use crate::index::{FuncId, ValueId};
use crate::ir::Program;
use crate::mlir::AttrValue;
use crate::work::cached::Works;
use crate::work::spaces::Space;

/// Bytes, and the memory space that they are in.
type Place = (u128, Space);

/// Pairs of the index of an output and the argument whose buffer it takes. `place` gives the bytes and space of an argument, or,
/// with its index, of an output.
fn donated_arguments(
    program: &Program,
    func: FuncId,
    returned: &[ValueId],
    mut place: impl FnMut(Option<usize>, ValueId) -> Place,
) -> Vec<(usize, ValueId)> {
    let mut is_taken = vec![false; returned.len()];
    let mut pairs = Vec::new();
    let mut donors = Vec::new();
    let args: Vec<ValueId> = program.block_args(program.func_body(func)).collect();
    for (&arg, port) in args.iter().zip(program.func_args(func)) {
        for attr in program.attr_list(port.attrs) {
            // Shardings and the like are not read.
            let value = || AttrValue::parse(program.text().get(attr.value));
            match program.str(attr.name) {
                "tf.aliasing_output" => {
                    let output = value().as_int().and_then(|output| usize::try_from(output).ok());
                    let Some(output) = output.filter(|&output| output < returned.len()) else {
                        continue;
                    };
                    if place(Some(output), returned[output]).1 != place(None, arg).1 {
                        continue;
                    }
                    if !std::mem::replace(&mut is_taken[output], true) {
                        pairs.push((output, arg));
                    }
                }
                "jax.buffer_donor" if value().as_bool() == Some(true) => donors.push(arg),
                _ => {}
            }
        }
    }
    // Outputs by their size and memory, in reverse order.
    let mut free: rustc_hash::FxHashMap<Place, Vec<usize>> = rustc_hash::FxHashMap::default();
    if !donors.is_empty() {
        for output in (0..returned.len()).rev().filter(|&output| !is_taken[output]) {
            free.entry(place(Some(output), returned[output])).or_default().push(output);
        }
    }
    for arg in donors {
        if let Some(output) = free.get_mut(&place(None, arg)).and_then(Vec::pop) {
            pairs.push((output, arg));
        }
    }
    pairs
}

/// Pairs of the index of an output of `entry` and the argument whose buffer it takes, if both are in the same memory space.
pub fn donated_of_entry(
    program: &Program,
    works: &mut Works<'_>,
    entry: FuncId,
    compiler: Compiler,
) -> Vec<(usize, ValueId)> {
    let last = program.func_body(entry).get().and_then(|body| program.last_op(body).get());
    let returned = last.map_or_else(Vec::new, |op| program.operands(op).collect());
    let (tensors, spaces) = (&mut works.tensors, &works.spaces);
    donated_arguments(program, entry, &returned, |output, value| match output {
        Some(output) => {
            let bytes = result_bytes(program, tensors, (output, value), compiler);
            (bytes, spaces.of_result(output, value))
        }
        None => (stored_bytes(tensors, value, compiler), spaces.of_argument(value)),
    })
}
