//! Which kernels read an item that another one writes over, and copies of items in front of kernels.

use super::graph::{Graph, Item, Kernel, Read, NONE};
use super::order::breadth_first;

/// How many writes are looked at in one walk.
const CHUNK: usize = u128::BITS as usize;

/// An item that a kernel writes over.
#[derive(Clone, Copy)]
pub struct Write {
    pub kernel: u32,
    pub over: u32,
}

/// A read of an item that is written over.
#[derive(Clone, Copy)]
pub struct Reader {
    /// Which of the writes it is.
    pub write: usize,
    pub kernel: u32,
    pub read: Read,
    /// Whether the kernel that writes needs this one, or is it.
    pub is_needed: bool,
}

/// Calls `found` for each read of what one of `writes` writes over.
pub fn readers(graph: &Graph, writes: &[Write], mut found: impl FnMut(Reader)) {
    if writes.is_empty() {
        return;
    }
    let order = breadth_first(graph);
    let mut row_of = vec![NONE; graph.items.len()];
    for (chunk, first) in writes.chunks(CHUNK).zip((0..).step_by(CHUNK)) {
        // The writes that need what each kernel makes, and those over each item.
        let mut needed_by = vec![0_u128; graph.kernels.len()];
        let mut rows: Vec<u128> = Vec::new();
        for (write, at) in chunk.iter().zip(0..) {
            needed_by[write.kernel as usize] |= 1 << at;
            let row = &mut row_of[write.over as usize];
            if *row == NONE {
                *row = rows.len() as u32;
                rows.push(0);
            }
            rows[*row as usize] |= 1 << at;
        }
        for &kernel in order.iter().rev() {
            let mask = needed_by[kernel as usize];
            for &read in graph.reads(kernel) {
                let by = graph.items[read.item as usize].made_by;
                if by != NONE {
                    needed_by[by as usize] |= mask;
                }
                let row = row_of[graph.stored_as(read.item) as usize];
                let mut left = rows.get(row as usize).copied().unwrap_or(0);
                while left != 0 {
                    let at = left.trailing_zeros();
                    left &= left - 1;
                    let is_needed = mask & (1 << at) != 0;
                    found(Reader { write: first + at as usize, kernel, read, is_needed });
                }
            }
        }
        for write in chunk {
            row_of[write.over as usize] = NONE;
        }
    }
}

/// `graph` with copies of items, each before a kernel: `before` has pairs of a kernel and an item, sorted by kernel. The copies are
/// numbered behind the items, of which `items` are the new ones; `read_as` adds what a kernel reads in place of a read.
pub fn with_copies(
    graph: &Graph,
    mut items: Vec<Item>,
    before: &[(u32, u32)],
    mut read_as: impl FnMut(u32, Read, &mut Vec<Read>),
) -> Graph {
    let count = graph.kernels.len() + before.len();
    let (mut kernels, mut reads) = (Vec::with_capacity(count), Vec::new());
    let mut new_places = Vec::with_capacity(graph.kernels.len());
    let mut copies = before.iter().peekable();
    let mut read_instead: Vec<Read> = Vec::new();
    for (kernel, at) in graph.kernels.iter().zip(0..) {
        while let Some(&&(_, item)) = copies.peek().filter(|copy| copy.0 == at) {
            copies.next();
            let made_by = kernels.len() as u32;
            kernels.push(Kernel { op: kernel.op, is_elementwise: false, is_op: false });
            reads.push((made_by, Read { item, is_elementwise: false }));
            let Item { value, bytes, .. } = items[item as usize];
            items.push(Item { value, bytes, made_by, name_of: NONE, over: NONE });
        }
        let place = kernels.len() as u32;
        new_places.push(place);
        kernels.push(*kernel);
        for read in graph.reads(at) {
            read_as(at, *read, &mut read_instead);
            reads.extend(read_instead.drain(..).map(|read| (place, read)));
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
