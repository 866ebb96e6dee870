//! Kernels that loop-invariant code motion moved in front of a loop: their results are live during the whole loop.

use crate::compilers::xla_cpu::breadth_first_scheduler::breadth_first;
use crate::compilers::xla_cpu::kernels::graph::{Graph, NONE};
use crate::compilers::xla_cpu::passes::loop_invariant_code_motion::Invariant;
use crate::index::OpId;
use rustc_hash::FxHashMap;

/// For each kernel of `graph`, that of a loop's body, whether it is moved out of the loop.
pub fn hoisted(invariant: &Invariant, graph: &Graph) -> Vec<bool> {
    let main: FxHashMap<OpId, u32> = graph.ops.iter().copied().collect();
    let mut is_hoisted = vec![false; graph.kernels.len()];
    let is_same = |item: u32, is_hoisted: &[bool]| {
        let made_by = graph.items[item as usize].made_by;
        made_by != NONE && is_hoisted[made_by as usize]
    };
    for &kernel in breadth_first(graph) {
        let op = graph.kernels[kernel as usize].op;
        let is_main = main.get(&op) == Some(&kernel);
        let mut reads = graph.reads(kernel).iter();
        // What follows on the kernel of an op is moved with it; copies for an op stay.
        let follows = main.get(&op).is_some_and(|&main| is_hoisted[main as usize]);
        is_hoisted[kernel as usize] = invariant.is_moved(op)
            && (is_main || follows && reads.all(|read| is_same(read.item, &is_hoisted)));
    }
    is_hoisted
}
