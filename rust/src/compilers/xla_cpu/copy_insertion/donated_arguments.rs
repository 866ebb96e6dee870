//! Donated arguments that XLA copies, since their buffer may be written before all readers have run.
//!
//! An output in a donated buffer is written as soon as its operands are available. If another reader of the argument need not have
//! run by then, the argument is copied first, and all readers read the copy.
//!
//! Source: XLA's `CopyInsertion`, which runs before kernels are scheduled.

use super::copies;
use crate::compilers::xla_cpu::copy_insertion::reads_before_writes::{are_read_apart, Write};
use crate::compilers::xla_cpu::kernels::graph::{Graph, Read, NONE};

/// `graph` with copies of the arguments that need one, where results take the buffers of `donated` arguments.
pub fn with_copies(graph: Graph, donated: &[(usize, u32)]) -> Graph {
    let copied = copied(&graph, donated);
    if copied.is_empty() {
        return graph;
    }
    add_copies(&graph, &copied)
}

/// An argument, and the kernel that writes the output into its buffer.
#[derive(Clone, Copy)]
struct Pair {
    output: u32,
    write: Write,
}

/// For the arguments that are copied pairs of the first kernel that reads one and the argument, in order.
fn copied(graph: &Graph, donated: &[(usize, u32)]) -> Vec<(u32, u32)> {
    let pairs = donated.iter().filter_map(|&(result, over)| {
        let output = graph.returned.get(result).filter(|&&item| item != NONE)?;
        let output = graph.stored_as(*output);
        let kernel = graph.items[output as usize].made_by;
        (kernel != NONE).then_some(Pair { output, write: Write { kernel, over } })
    });
    let pairs: Vec<Pair> = pairs.collect();
    let writes: Vec<Write> = pairs.iter().map(|pair| pair.write).collect();
    let are_apart = are_read_apart(graph, &writes, |at, read| is_in_place(graph, pairs[at], read));
    let copied = writes.iter().zip(are_apart);
    let mut copied: Vec<(u32, u32)> =
        copied.filter_map(|(write, reader)| Some((reader?, write.over))).collect();
    copied.sort_unstable();
    copied.dedup();
    copied
}

/// Whether the output may overwrite the argument while its kernel reads it by `read`.
fn is_in_place(graph: &Graph, pair: Pair, read: Read) -> bool {
    let output = graph.items[pair.output as usize];
    let is_elementwise = graph.kernels[pair.write.kernel as usize].is_elementwise
        && read.is_elementwise
        && output.bytes == graph.items[pair.write.over as usize].bytes;
    is_elementwise || output.over != NONE && graph.stored_as(output.over) == pair.write.over
}

/// `graph` with copies of arguments, each before the first kernel that reads it: `before` has pairs of these, in order.
fn add_copies(graph: &Graph, before: &[(u32, u32)]) -> Graph {
    let mut items = Vec::with_capacity(graph.items.len() + before.len());
    items.extend_from_slice(&graph.items);
    let mut copy_of = vec![NONE; items.len()];
    for (&(_, argument), copy) in before.iter().zip(items.len() as u32..) {
        copy_of[argument as usize] = copy;
    }
    // Another name of the argument is now one of its copy.
    for item in &mut items {
        if item.name_of != NONE && copy_of[item.name_of as usize] != NONE {
            item.name_of = copy_of[item.name_of as usize];
        }
        if item.over != NONE && copy_of[item.over as usize] != NONE {
            item.over = copy_of[item.over as usize];
        }
    }
    copies::with_copies(graph, items, before, |_, read, instead| {
        let copy = copy_of[read.item as usize];
        instead.push(Read { item: if copy == NONE { read.item } else { copy }, ..read });
    })
}
