//! Cross-program prefetch: the largest argument that is read like a weight, fits into vector memory and is not donated is there from the
//! start of the program to its last use.
//!
//! Source: the cross-program prefetches of XLA's `MemorySpaceAssignment`.

use crate::compilers::xla_cpu::kernels::graph::{Graph, NONE};
use crate::index::{OpId, ValueId};
use crate::ir::{OpKind, Program, ValueDef};
use std::cmp::Reverse;

/// The most ops through which an argument is followed.
const MAX_STEPS: usize = 8;

/// The bytes of the argument of the entry function that is prefetched by the program before, which has `room`, and the last position
/// in `order` at which it is read: the largest one that is read like a weight, and not returned.
pub fn prefetched(
    program: &Program,
    graph: &Graph,
    order: &[u32],
    room: u128,
) -> Option<(u128, u32)> {
    let mut last: Vec<u32> = Vec::new();
    for (&kernel, at) in order.iter().zip(0..) {
        for read in graph.reads(kernel) {
            let item = graph.stored_as(read.item) as usize;
            if graph.items[item].made_by == NONE {
                last.resize(last.len().max(item + 1), NONE);
                last[item] = at;
            }
        }
    }
    let fitting = graph.items.iter().zip(last).filter(|&(item, last)| {
        last != NONE && item.bytes <= room && !is_donated(program, item.value)
    });
    let weights = fitting.filter(|(item, _)| is_read_like_weight(program, item.value, 0));
    weights
        .max_by_key(|&(item, last)| (item.bytes, Reverse(last)))
        .map(|(item, last)| (item.bytes, last))
}

/// Whether the argument `value` of the entry function is donated.
fn is_donated(program: &Program, value: ValueId) -> bool {
    let ValueDef::Arg(block) = program.def(value) else { return true };
    let func = program.function_of(program.block_parent_op(block));
    let port = program.func_args(func)[program.value_index(value)];
    let mut names = program.attr_list(port.attrs).iter().map(|attr| program.str(attr.name));
    names.any(|name| matches!(name, "jax.buffer_donor" | "tf.aliasing_output"))
}

/// Whether only products and reductions read `value`, or an array of the same elements, and gathers its rows; `depth` ops after an
/// argument.
fn is_read_like_weight(program: &Program, value: ValueId, depth: usize) -> bool {
    use OpKind::{
        BroadcastInDim, Convolution, Dot, DotGeneral, DynamicSlice, Gather, Reduce, Reshape,
        Transpose,
    };
    program.uses(value).zip(program.users(value)).all(|(slot, op)| {
        let index = program.operand_index(slot);
        match program.kind(op) {
            Dot | DotGeneral | Convolution => true,
            Gather => index == 0,
            BroadcastInDim | Reshape | Transpose => is_read_on(program, op, depth),
            DynamicSlice => index == 0 && is_read_on(program, op, depth),
            Reduce => index < program.num_operands(op) / 2 && is_read_on(program, op, depth),
            _ => false,
        }
    })
}

/// [`is_read_like_weight`] of the results of `op`.
fn is_read_on(program: &Program, op: OpId, depth: usize) -> bool {
    depth < MAX_STEPS
        && program.op_results(op).all(|result| is_read_like_weight(program, result, depth + 1))
}
