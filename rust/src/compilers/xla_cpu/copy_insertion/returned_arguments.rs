//! Copies of arguments that a program returns, and of values that it returns twice: each output has a buffer of its own.
//!
//! Source: XLA's `CopyInsertion`.

use crate::compilers::xla_cpu::kernels::graph::{Graph, Item, Kernel, Read, NONE};
use crate::compilers::xla_cpu::ragged_rows::Rows;
use crate::index::OpId;
use rustc_hash::FxHashSet;

/// `graph`, that of the entry function with terminator `last`, with a copy kernel for each output that needs one. `donated` has
/// pairs of the index of a result and the argument whose buffer it takes.
pub fn with_copies(graph: Graph, last: OpId, donated: &[(usize, u32)]) -> Graph {
    let copied = copied(&graph, donated);
    if copied.is_empty() {
        return graph;
    }
    let count = graph.kernels.len() + copied.len();
    let mut reads = Rows::with_capacity(count, graph.num_reads() + copied.len());
    for kernel in 0..graph.kernels.len() as u32 {
        graph.reads(kernel).iter().for_each(|&read| reads.push(read));
        reads.end_row();
    }
    let Graph { mut kernels, ops, mut items, mut returned, .. } = graph;
    for (index, item) in copied {
        let made_by = kernels.len() as u32;
        kernels.push(Kernel::copy_for(last));
        reads.push(Read::whole(item));
        reads.end_row();
        returned[index] = items.len() as u32;
        items.push(Item { made_by, name_of: NONE, over: NONE, ..items[item as usize] });
    }
    Graph::with_rows(kernels, ops, items, returned, reads)
}

/// The indices of the outputs that are copies, each with the item that is copied.
fn copied(graph: &Graph, donated: &[(usize, u32)]) -> Vec<(usize, u32)> {
    let given: FxHashSet<(usize, u32)> = donated.iter().copied().collect();
    let mut seen: FxHashSet<u32> = FxHashSet::default();
    let mut copied = Vec::new();
    for (index, &item) in graph.returned.iter().enumerate().filter(|(_, &item)| item != NONE) {
        let item = graph.stored_as(item);
        let is_argument = graph.items[item as usize].made_by == NONE;
        let is_given_back = is_argument && given.contains(&(index, item));
        if !seen.insert(item) || is_argument && !is_given_back {
            copied.push((index, item));
        }
    }
    copied
}
