//! Copies of buffers, inserted in front of kernels.

use crate::compilers::xla_cpu::kernels::graph::{Graph, Item, Kernel, Read, NONE};
use crate::compilers::xla_cpu::ragged_rows::Rows;

/// `graph` with copies of items, inserted before kernels: `before` has pairs of a kernel and an item, sorted by kernel. Copies get
/// the item numbers after the existing ones; `items` replaces the existing ones; `read_as` appends what a kernel reads in place of
/// a read.
pub fn with_copies(
    graph: &Graph,
    mut items: Vec<Item>,
    before: &[(u32, u32)],
    mut read_as: impl FnMut(u32, Read, &mut Rows<Read>),
) -> Graph {
    let count = graph.kernels.len() + before.len();
    let mut kernels = Vec::with_capacity(count);
    let mut reads = Rows::with_capacity(count, graph.num_reads() + before.len());
    let mut new_places = Vec::with_capacity(graph.kernels.len());
    let mut copies = before;
    for (kernel, at) in graph.kernels.iter().zip(0..) {
        while let Some((&(_, item), rest)) = copies.split_first().filter(|(copy, _)| copy.0 == at) {
            copies = rest;
            let made_by = kernels.len() as u32;
            kernels.push(Kernel::copy_for(kernel.op));
            reads.push(Read::whole(item));
            reads.end_row();
            let Item { value, bytes, .. } = items[item as usize];
            items.push(Item { value, bytes, made_by, name_of: NONE, over: NONE });
        }
        new_places.push(kernels.len() as u32);
        kernels.push(*kernel);
        for read in graph.reads(at) {
            read_as(at, *read, &mut reads);
        }
        reads.end_row();
    }
    for item in &mut items[..graph.items.len()] {
        if item.made_by != NONE {
            item.made_by = new_places[item.made_by as usize];
        }
    }
    let ops = graph.ops.iter().map(|&(op, kernel)| (op, new_places[kernel as usize])).collect();
    Graph::with_rows(kernels, ops, items, graph.returned.clone(), reads)
}
