//! Donated arguments that XLA copies before anything else reads them.
//!
//! An output that takes the memory of an argument is written as soon as what it needs is there. Where something else that
//! reads the argument need not have run by then, the argument is copied first, and all read the copy.
//!
//! Source: XLA's `CopyInsertion`, which runs before kernels have an order.

use super::graph::{Graph, Item, Kernel, Read, NONE};
use super::order::breadth_first;

/// `graph` with copies of those arguments that need one, where results take the memory of `donated` arguments.
pub fn with_copies(graph: Graph, donated: &[(usize, u32)]) -> Graph {
    let copied = copied(&graph, donated);
    if copied.is_empty() {
        return graph;
    }
    add_copies(&graph, &copied)
}

/// An argument, and the kernel that makes the output in its memory.
#[derive(Clone, Copy)]
struct Pair {
    argument: u32,
    output: u32,
    kernel: u32,
}

/// The arguments that are copied, each behind the first kernel that reads it, in order.
fn copied(graph: &Graph, donated: &[(usize, u32)]) -> Vec<(u32, u32)> {
    let pairs = donated.iter().filter_map(|&(result, argument)| {
        let output = graph.returned.get(result).filter(|&&item| item != NONE)?;
        let output = graph.stored_as(*output);
        let kernel = graph.items[output as usize].made_by;
        (kernel != NONE).then_some(Pair { argument, output, kernel })
    });
    let pairs: Vec<Pair> = pairs.collect();
    if pairs.is_empty() {
        return Vec::new();
    }
    let mut is_copied = vec![false; graph.items.len()];
    let order = breadth_first(graph);
    let mut pair_of = vec![NONE; graph.items.len()];
    for pairs in pairs.chunks(u128::BITS as usize) {
        // The outputs of these pairs that need what each kernel makes.
        let mut needed_by = vec![0_u128; graph.kernels.len()];
        for (pair, at) in pairs.iter().zip(0..) {
            needed_by[pair.kernel as usize] |= 1 << at;
            pair_of[pair.argument as usize] = at;
        }
        for &kernel in order.iter().rev() {
            let mask = needed_by[kernel as usize];
            for read in graph.reads(kernel) {
                let by = graph.items[read.item as usize].made_by;
                if by != NONE {
                    needed_by[by as usize] |= mask;
                }
                let argument = graph.stored_as(read.item);
                let Some(pair) = pairs.get(pair_of[argument as usize] as usize) else { continue };
                let is_before = mask & (1 << pair_of[argument as usize]) != 0;
                let is_safe = if kernel == pair.kernel {
                    is_in_place(graph, *pair, *read)
                } else {
                    is_before
                };
                if !is_safe {
                    is_copied[argument as usize] = true;
                }
            }
        }
        for pair in pairs {
            pair_of[pair.argument as usize] = NONE;
        }
    }
    let mut copied = Vec::new();
    for kernel in 0..graph.kernels.len() as u32 {
        for read in graph.reads(kernel) {
            let argument = graph.stored_as(read.item);
            if std::mem::take(&mut is_copied[argument as usize]) {
                copied.push((kernel, argument));
            }
        }
    }
    copied.sort_unstable();
    copied
}

/// Whether the output may be written where its kernel reads the argument, as `read`.
fn is_in_place(graph: &Graph, pair: Pair, read: Read) -> bool {
    let output = graph.items[pair.output as usize];
    let is_elementwise = graph.kernels[pair.kernel as usize].is_elementwise
        && read.is_elementwise
        && output.bytes == graph.items[pair.argument as usize].bytes;
    is_elementwise || output.over != NONE && graph.stored_as(output.over) == pair.argument
}

/// `graph` with copies of arguments, each before the first kernel that reads it: `before` has pairs of these, in order.
fn add_copies(graph: &Graph, before: &[(u32, u32)]) -> Graph {
    let mut items = graph.items.clone();
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
    let count = graph.kernels.len() + before.len();
    let (mut kernels, mut reads) = (Vec::with_capacity(count), Vec::new());
    let mut new_places = Vec::with_capacity(graph.kernels.len());
    let mut next = before.iter().peekable();
    for (kernel, at) in graph.kernels.iter().zip(0..) {
        while let Some(&&(_, argument)) = next.peek().filter(|&&&(before, _)| before == at) {
            next.next();
            let made_by = kernels.len() as u32;
            kernels.push(Kernel { op: kernel.op, is_elementwise: false, is_op: false });
            reads.push((made_by, Read { item: argument, is_elementwise: false }));
            let Item { value, bytes, .. } = items[argument as usize];
            items.push(Item { value, bytes, made_by, name_of: NONE, over: NONE });
        }
        let place = kernels.len() as u32;
        new_places.push(place);
        kernels.push(*kernel);
        for read in graph.reads(at) {
            let copy = copy_of[read.item as usize];
            let item = if copy == NONE { read.item } else { copy };
            reads.push((place, Read { item, ..*read }));
        }
    }
    for item in &mut items[..graph.items.len()] {
        if item.made_by != NONE {
            item.made_by = new_places[item.made_by as usize];
        }
    }
    let ops = graph.ops.iter().map(|&(op, kernel)| (op, new_places[kernel as usize])).collect();
    Graph::new(kernels, ops, items, graph.returned.clone(), &reads)
}
