//! Kernels that XLA moves out of a loop, as what they read is the same in each trip: their results are there for the whole loop.
//!
//! Source: XLA's `WhileLoopInvariantCodeMotion`.

use super::super::fusion::is_only_read;
use super::super::work::Movement;
use super::super::works::Works;
use super::graph::{Graph, NONE};
use super::order::breadth_first;
use crate::index::OpId;
use crate::ir::Program;
use rustc_hash::FxHashMap;

/// Which kernels of `graph`, that of the body of the loop `owner`, are moved out of it.
pub fn hoisted(program: &Program, works: &mut Works<'_>, graph: &Graph, owner: OpId) -> Vec<bool> {
    let num_args = graph.items.iter().take_while(|item| item.made_by == NONE).count();
    let mut is_same: Vec<bool> = vec![false; graph.items.len()];
    for (at, is_same) in is_same[..num_args].iter_mut().enumerate() {
        *is_same = is_only_read(program, owner, at);
    }
    let main: FxHashMap<OpId, u32> = graph.ops.iter().copied().collect();
    let mut is_hoisted = vec![false; graph.kernels.len()];
    for &kernel in breadth_first(graph) {
        let what = graph.kernels[kernel as usize];
        let mut reads = graph.reads(kernel).iter();
        let reads_same = reads.all(|read| is_same[read.item as usize]);
        let is_moved = reads_same && !graph.reads(kernel).is_empty();
        // Copies for an op stay with it.
        let is_main = main.get(&what.op) == Some(&kernel);
        let follows = main.get(&what.op).is_some_and(|&main| is_hoisted[main as usize]);
        is_hoisted[kernel as usize] =
            is_moved && (follows || is_main && is_worth_it(program, works, what.op));
        for &item in graph.makes(kernel) {
            is_same[item as usize] = is_hoisted[kernel as usize];
        }
    }
    is_hoisted
}

/// Whether `op` is moved where it is not needed for another that is.
fn is_worth_it(program: &Program, works: &mut Works<'_>, op: OpId) -> bool {
    let is_left = matches!(
        program.op_name(op),
        "stablehlo.broadcast_in_dim"
            | "stablehlo.custom_call"
            | "stablehlo.iota"
            | "stablehlo.reshape"
            | "stablehlo.reverse"
            | "stablehlo.slice"
            | "stablehlo.transpose"
    );
    !is_left && works.movement(op) != Movement::Inside
}
