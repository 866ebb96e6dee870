//! Values that XLA copies before an op updates them in place, since something else reads them that need not have run by then.
//!
//! Zeros that two scatters add to are one value with a copy for each; so are those that loops begin with. The copies are made as
//! soon as the values are there. Source: XLA's `CopyInsertion`, which runs before kernels have an order.

use super::graph::{Graph, Item, Kernel, Read, NONE};
use super::order::breadth_first;
use crate::ir::{OpKind, Program};
use rustc_hash::FxHashMap;

/// How many updates are looked at in one walk.
const CHUNK: usize = u128::BITS as usize;

/// An item that a kernel makes in the memory of another.
#[derive(Clone, Copy)]
struct Update {
    kernel: u32,
    made: u32,
    over: u32,
}

/// `graph` with copies of what its updates read that others read, too. `given` has pairs of the index of a result and the argument
/// whose memory it takes, and which is not looked at here; other arguments are copied before they are updated.
pub fn with_copies(program: &Program, graph: Graph, given: &[(usize, u32)]) -> Graph {
    let updates = shared(&graph, updates(program, &graph), given);
    if updates.is_empty() {
        return graph;
    }
    add_copies(&graph, &updates)
}

fn updates(program: &Program, graph: &Graph) -> Vec<Update> {
    let items = graph.items.iter().zip(0..).filter(|(item, _)| {
        item.over != NONE
            && item.bytes > 0
            && program.kind(graph.kernels[item.made_by as usize].op) != OpKind::Sort
    });
    let update = |(item, made): (&Item, u32)| Update {
        kernel: item.made_by,
        made,
        over: graph.stored_as(item.over),
    };
    items.map(update).collect()
}

/// Whether an argument is updated whose memory the result is given.
fn is_given(graph: &Graph, update: Update, given: &[(usize, u32)]) -> bool {
    given.iter().any(|&(result, argument)| {
        let item = graph.returned.get(result).copied().unwrap_or(NONE);
        argument == update.over && item != NONE && graph.stored_as(item) == update.made
    })
}

/// Those of `updates` that need a copy.
fn shared(graph: &Graph, mut updates: Vec<Update>, given: &[(usize, u32)]) -> Vec<Update> {
    updates.retain(|update| !is_given(graph, *update, given));
    if updates.is_empty() {
        return updates;
    }
    let order = breadth_first(graph);
    let mut is_shared = vec![false; updates.len()];
    let mut is_returned = vec![false; graph.items.len()];
    for &item in graph.returned.iter().filter(|&&item| item != NONE) {
        is_returned[graph.stored_as(item) as usize] = true;
    }
    for (update, is_shared) in updates.iter().zip(&mut is_shared) {
        let is_argument = graph.items[update.over as usize].made_by == NONE;
        *is_shared = is_argument || is_returned[update.over as usize];
    }
    for (chunk, first) in updates.chunks(CHUNK).zip((0..).step_by(CHUNK)) {
        // The updates that need what each kernel makes, and those of each item.
        let mut needed_by = vec![0_u128; graph.kernels.len()];
        let mut of_item: FxHashMap<u32, u128> = FxHashMap::default();
        for (update, at) in chunk.iter().zip(0..) {
            needed_by[update.kernel as usize] |= 1 << at;
            *of_item.entry(update.over).or_default() |= 1 << at;
        }
        for &kernel in order.iter().rev() {
            let mask = needed_by[kernel as usize];
            for read in graph.reads(kernel) {
                let by = graph.items[read.item as usize].made_by;
                if by != NONE {
                    needed_by[by as usize] |= mask;
                }
                let Some(&over) = of_item.get(&graph.stored_as(read.item)) else { continue };
                let mut later = over & !mask;
                while later != 0 {
                    is_shared[first + later.trailing_zeros() as usize] = true;
                    later &= later - 1;
                }
            }
        }
    }
    let mut kept = is_shared.into_iter();
    updates.into_iter().filter(|_| kept.next() == Some(true)).collect()
}

/// `graph` with a copy for each of `updates`, before its kernel.
fn add_copies(graph: &Graph, updates: &[Update]) -> Graph {
    let mut items = graph.items.clone();
    let mut updates = updates.to_vec();
    updates.sort_by_key(|update| update.kernel);
    let count = graph.kernels.len() + updates.len();
    let (mut kernels, mut reads) = (Vec::with_capacity(count), Vec::new());
    let mut new_places = Vec::with_capacity(graph.kernels.len());
    let mut next = updates.iter().peekable();
    let mut copies: Vec<(u32, u32)> = Vec::new();
    for (kernel, at) in graph.kernels.iter().zip(0..) {
        copies.clear();
        while let Some(&&Update { made, over, .. }) = next.peek().filter(|next| next.kernel == at) {
            next.next();
            let made_by = kernels.len() as u32;
            kernels.push(Kernel { op: kernel.op, is_elementwise: false, is_op: false });
            reads.push((made_by, Read { item: over, is_elementwise: false }));
            let Item { value, bytes, .. } = items[over as usize];
            items[made as usize].over = items.len() as u32;
            copies.push((over, items.len() as u32));
            items.push(Item { value, bytes, made_by, name_of: NONE, over: NONE });
        }
        let place = kernels.len() as u32;
        new_places.push(place);
        kernels.push(*kernel);
        for read in graph.reads(at) {
            let stored = graph.stored_as(read.item);
            let mut own = copies.iter().filter(|copy| copy.0 == stored).peekable();
            if own.peek().is_none() {
                reads.push((place, *read));
            }
            reads.extend(own.map(|&(_, item)| (place, Read { item, ..*read })));
        }
    }
    for item in &mut items[..graph.items.len()] {
        if item.made_by != NONE {
            item.made_by = new_places[item.made_by as usize];
        }
    }
    let place = |&(op, kernel): &(_, u32)| (op, new_places[kernel as usize]);
    let ops = graph.ops.iter().map(place).collect();
    Graph::new(kernels, ops, items, graph.returned.clone(), &reads)
}
