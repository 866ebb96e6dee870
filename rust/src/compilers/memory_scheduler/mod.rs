//! Orders of the kernels of a block for little memory: three heuristics, of which the caller takes the one with the least simulated
//! peak.
//!
//! 1. [`list_scheduler`]: greedy; of the kernels that are ready the one that frees most memory.
//! 2. [`depth_first`]: post-order that visits first the operands whose transitive producers have most extra users.
//! 3. [`depth_first`]: post-order in operand order.
//!
//! Source: XLA's `DefaultMemoryScheduler`.

pub mod async_collectives;
mod depth_first;
mod list_scheduler;

use crate::compilers::xla_cpu::breadth_first_scheduler::breadth_first;
use crate::compilers::xla_cpu::kernels::graph::{Graph, NONE};
use crate::compilers::xla_cpu::ragged_rows::Rows;

/// The orders of the three heuristics; of equal ones the first wins. Each of `donated` is the index of a result and the argument
/// whose buffer it may take.
pub fn candidates(graph: &Graph, donated: &[(usize, u32)]) -> [Vec<u32>; 3] {
    let edges = Edges::of(graph, donated);
    let post_order = depth_first::post_order(graph, &edges);
    [
        list_scheduler::order(graph, &edges),
        depth_first::by_stats(graph, &edges, &post_order),
        post_order,
    ]
}

/// The dependences among the kernels of a block, each once.
struct Edges {
    /// The kernels that produce the operands of each kernel, in the order of its reads.
    operands: Rows<u32>,
    /// The kernels that consume a result of each kernel.
    users: Rows<u32>,
}

/// For each kernel that overwrites a buffer, the kernels that read the buffer and come earlier in breadth-first order: XLA runs them
/// first, or copies. Each of `donated` is the index of a result and the argument whose buffer it may take.
pub fn readers_of_overwritten(graph: &Graph, donated: &[(usize, u32)]) -> Rows<u32> {
    let mut writes: Vec<(u32, u32)> = Vec::new();
    for item in graph.items.iter().filter(|item| item.over != NONE && item.made_by != NONE) {
        writes.push((graph.stored_as(item.over), item.made_by));
    }
    for &(result, argument) in donated {
        let returned = graph.returned.get(result).filter(|&&item| item != NONE);
        let Some(mut item) = returned.map(|&item| graph.stored_as(item)) else { continue };
        // What the result is written over is in that memory, too.
        while graph.items[item as usize].over != NONE {
            let under = graph.stored_as(graph.items[item as usize].over);
            let (old, new) = (graph.items[under as usize], graph.items[item as usize]);
            if old.made_by == NONE || old.bytes != new.bytes {
                break;
            }
            item = under;
        }
        let by = graph.items[item as usize].made_by;
        if by != NONE && item != argument {
            writes.push((argument, by));
        }
    }
    if writes.is_empty() {
        return Rows::of(graph.kernels.len(), &[]);
    }
    let mut readers: Vec<(u32, u32)> = Vec::new();
    for at in 0..graph.kernels.len() as u32 {
        readers.extend(graph.reads(at).iter().map(|read| (graph.stored_as(read.item), at)));
    }
    let readers = Rows::of(graph.items.len(), &readers);
    let mut places = vec![0_u32; graph.kernels.len()];
    for (&kernel, place) in breadth_first(graph).iter().zip(0..) {
        places[kernel as usize] = place;
    }
    let mut before: Vec<(u32, u32)> = Vec::new();
    for (item, write) in writes {
        // In that order every kernel comes after what it needs: there is no circle.
        let earlier = |&&reader: &&u32| places[reader as usize] < places[write as usize];
        before.extend(readers.row(item).iter().filter(earlier).map(|&reader| (write, reader)));
    }
    Rows::of(graph.kernels.len(), &before)
}

impl Edges {
    fn of(graph: &Graph, donated: &[(usize, u32)]) -> Self {
        let count = graph.kernels.len();
        let mut seen_by = vec![NONE; count];
        let mut operands: Vec<(u32, u32)> = Vec::new();
        let overwritten = readers_of_overwritten(graph, donated);
        for at in 0..count as u32 {
            let mut add = |by: u32| {
                if by != at && std::mem::replace(&mut seen_by[by as usize], at) != at {
                    operands.push((at, by));
                }
            };
            graph.for_each_need(at, &mut add);
            overwritten.row(at).iter().copied().for_each(add);
        }
        let users: Vec<(u32, u32)> = operands.iter().map(|&(at, by)| (by, at)).collect();
        Self { operands: Rows::of(count, &operands), users: Rows::of(count, &users) }
    }
}
