//! Whether every reader of a buffer runs before a kernel that overwrites it, under any order of kernels.
//!
//! That holds if the writing kernel depends on every reader. One walk over the block answers this for [`CHUNK`] writes. If there
//! are too many of them, most answers first follow from the depths of kernels, from a few kernels that many paths lead through
//! ([`hubs`]), or from a short search.

use crate::compilers::xla_cpu::breadth_first_scheduler::{breadth_first, order};
use crate::compilers::xla_cpu::kernels::graph::{Graph, Order, Read, NONE};
use crate::compilers::xla_cpu::ragged_rows::Rows;

/// The number of writes that are answered in one walk, and the most kernels that are [`hubs`].
const CHUNK: usize = u128::BITS as usize;

/// The most writes that are answered by walks only.
const FEW: usize = 8 * CHUNK;

/// The most kernels that a search visits.
const MAX_VISITED: usize = 64;

/// An item whose buffer a kernel overwrites.
#[derive(Clone, Copy)]
pub struct Write {
    pub kernel: u32,
    pub over: u32,
}

/// For each of `writes` the first kernel that reads the overwritten item and need not have run before the write, if there is one: a
/// kernel that the writer does not depend on; or the writer itself, unless `is_in_place` allows that read.
pub fn are_read_apart(
    graph: &Graph,
    writes: &[Write],
    is_in_place: impl Fn(usize, Read) -> bool,
) -> Vec<Option<u32>> {
    if writes.is_empty() {
        return Vec::new();
    }
    let mut are_apart = vec![false; writes.len()];
    let readers = Readers::of(graph, writes);
    // Many writes are over what nothing else reads.
    let mut left = Vec::new();
    for (at, write) in writes.iter().enumerate() {
        let mut is_read = false;
        for &(kernel, read) in readers.of_item(write.over) {
            is_read |= kernel != write.kernel;
            are_apart[at] |= kernel == write.kernel && !is_in_place(at, read);
        }
        if is_read && !are_apart[at] {
            left.push(at);
        }
    }
    if left.len() > FEW {
        let mut needs = Needs::new(graph);
        let mut kernels: Vec<u32> = Vec::new();
        left.retain(|&at| {
            let Write { kernel, over } = writes[at];
            kernels.clear();
            let others = readers.of_item(over).iter().map(|reader| reader.0);
            kernels.extend(others.filter(|&other| other != kernel));
            let are_needed = needs.all(kernel, &mut kernels);
            are_apart[at] = are_needed == Some(false);
            are_needed.is_none()
        });
    }
    for chunk in left.chunks(CHUNK) {
        let kernels = chunk.iter().map(|&at| writes[at].kernel);
        let needed_by = needed_by(graph, breadth_first(graph), kernels);
        for (bit, &at) in chunk.iter().enumerate() {
            let mut kernels = readers.of_item(writes[at].over).iter();
            are_apart[at] =
                kernels.any(|&(kernel, _)| needed_by[kernel as usize] & (1 << bit) == 0);
        }
    }
    let first = |write: &Write| readers.of_item(write.over).first().map(|reader| reader.0);
    writes
        .iter()
        .zip(are_apart)
        .map(|(write, is_apart)| first(write).filter(|_| is_apart))
        .collect()
}

/// For each of `writes` whether a kernel that reads the overwritten item depends on the write, or is the write itself and not
/// `is_in_place`: no order of kernels lets it read before.
pub fn are_read_after(
    graph: &Graph,
    writes: &[Write],
    is_in_place: impl Fn(usize, Read) -> bool,
) -> Vec<bool> {
    let readers = Readers::of(graph, writes);
    let mut are_after = Vec::with_capacity(writes.len());
    for (chunk, first) in writes.chunks(CHUNK).zip((0..).step_by(CHUNK)) {
        let mut after = vec![0_u128; graph.kernels.len()];
        for (bit, write) in chunk.iter().enumerate() {
            after[write.kernel as usize] |= 1 << bit;
        }
        for &kernel in breadth_first(graph) {
            let mut mask = after[kernel as usize];
            graph.for_each_need(kernel, |by| mask |= after[by as usize]);
            after[kernel as usize] = mask;
        }
        are_after.extend(chunk.iter().enumerate().map(|(bit, write)| {
            readers.of_item(write.over).iter().any(|&(kernel, read)| {
                let is_own = kernel == write.kernel;
                let is_allowed = is_own && is_in_place(first + bit, read);
                after[kernel as usize] & (1 << bit) != 0 && !is_allowed
            })
        }));
    }
    are_after
}

/// The kernels that read the items that are overwritten.
struct Readers {
    /// The row of each item; [`NONE`] for items that are not overwritten.
    row_of: Vec<u32>,
    rows: Rows<(u32, Read)>,
}

impl Readers {
    fn of(graph: &Graph, writes: &[Write]) -> Self {
        let mut row_of = vec![NONE; graph.items.len()];
        let mut count = 0;
        for write in writes {
            let row = &mut row_of[write.over as usize];
            if *row == NONE {
                *row = count;
                count += 1;
            }
        }
        let mut reads: Vec<(u32, (u32, Read))> = Vec::new();
        for kernel in 0..graph.kernels.len() as u32 {
            for &read in graph.reads(kernel) {
                let row = row_of[graph.stored_as(read.item) as usize];
                if row != NONE {
                    reads.push((row, (kernel, read)));
                }
            }
        }
        Self { row_of, rows: Rows::of(count as usize, &reads) }
    }
    fn of_item(&self, item: u32) -> &[(u32, Read)] {
        self.rows.row(self.row_of[item as usize])
    }
}

/// Queries of which kernels depend on which.
struct Needs<'g> {
    graph: &'g Graph,
    order: &'g Order,
    /// The last search that visited each kernel.
    visited_by: Vec<u32>,
    num_searches: u32,
    /// The kernels that a search has yet to visit; a field to reuse its memory.
    stack: Vec<u32>,
}

impl<'g> Needs<'g> {
    fn new(graph: &'g Graph) -> Self {
        let visited_by = vec![0; graph.kernels.len()];
        Self { graph, order: order(graph), visited_by, num_searches: 0, stack: Vec::new() }
    }
    /// Whether `kernel` depends on all of `others`; those that are settled are removed. `None` if a short search does not settle
    /// all.
    fn all(&mut self, kernel: u32, others: &mut Vec<u32>) -> Option<bool> {
        let depths = &self.order.depths;
        let depth = depths[kernel as usize];
        if others.iter().any(|&other| depths[other as usize] >= depth) {
            return Some(false);
        }
        if others.is_empty() {
            return Some(true);
        }
        let make = || hubs(self.graph, self.order);
        let (before, after) = self.graph.hubs.get_or_init(make);
        let after = after[kernel as usize];
        others.retain(|&other| before[other as usize] & after == 0);
        self.search(kernel, others)
    }
    /// As [`Needs::all`], by a search from `kernel`.
    fn search(&mut self, kernel: u32, others: &[u32]) -> Option<bool> {
        let depths = &self.order.depths;
        let Some(least) = others.iter().map(|&other| depths[other as usize]).min() else {
            return Some(true);
        };
        self.num_searches += 1;
        self.stack.clear();
        self.stack.push(kernel);
        let mut count = 0;
        while let Some(at) = self.stack.pop() {
            for read in self.graph.reads(at) {
                let by = self.graph.items[read.item as usize].made_by;
                if by == NONE || depths[by as usize] < least {
                    continue;
                }
                let seen = &mut self.visited_by[by as usize];
                if std::mem::replace(seen, self.num_searches) == self.num_searches {
                    continue;
                }
                count += 1;
                if count > MAX_VISITED {
                    return None;
                }
                self.stack.push(by);
            }
        }
        Some(others.iter().all(|&other| self.visited_by[other as usize] == self.num_searches))
    }
}

/// For each kernel as bits the hubs that depend on it, and those that it depends on, itself included. Hubs are kernels at depths
/// with few others, evenly spread: a dependence on a distant kernel is likely to lead through one.
fn hubs(graph: &Graph, Order { kernels: order, depths }: &Order) -> (Vec<u128>, Vec<u128>) {
    let most = order.last().map_or(0, |&last| depths[last as usize]);
    let mut widths = vec![0_usize; most as usize + 1];
    for &depth in depths {
        widths[depth as usize] += 1;
    }
    let mut sorted = widths.clone();
    sorted.sort_unstable();
    let mut sum = 0;
    let is_within = |width: &&usize| {
        sum += **width;
        sum <= CHUNK
    };
    let width = sorted.iter().take_while(is_within).last().or(sorted.first());
    let width = width.copied().unwrap_or(0);
    let narrow = order.iter().filter(|&&kernel| widths[depths[kernel as usize] as usize] <= width);
    let narrow: Vec<u32> = narrow.copied().collect();
    let count = narrow.len().min(CHUNK);
    let hubs = (0..count).map(|at| narrow[at * narrow.len() / count]);
    let before = needed_by(graph, order, hubs.clone());
    let mut after = vec![0_u128; graph.kernels.len()];
    for (hub, bit) in hubs.zip(0..) {
        after[hub as usize] |= 1 << bit;
    }
    for &kernel in order {
        let mut all = 0;
        graph.for_each_need(kernel, |by| all |= after[by as usize]);
        after[kernel as usize] |= all;
    }
    (before, after)
}

/// For each kernel of `graph`, scheduled as `order`, which of `kernels` (at most [`CHUNK`]) depend on it or are it.
fn needed_by(graph: &Graph, order: &[u32], kernels: impl Iterator<Item = u32>) -> Vec<u128> {
    let mut needed_by = vec![0_u128; graph.kernels.len()];
    for (kernel, bit) in kernels.zip(0..) {
        needed_by[kernel as usize] |= 1 << bit;
    }
    for &kernel in order.iter().rev() {
        let mask = needed_by[kernel as usize];
        if mask != 0 {
            graph.for_each_need(kernel, |by| needed_by[by as usize] |= mask);
        }
    }
    needed_by
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compilers::xla_cpu::kernels::graph::{Item, Kernel};
    use crate::index::{Id, OpId, ValueId};

    /// A graph of `count` kernels with one result each; kernels read the results that the `edges` lead from.
    fn graph(count: u32, edges: &[(u32, u32)]) -> Graph {
        let op = OpId::from_index(0);
        let kernel = Kernel { is_op: true, ..Kernel::copy_for(op) };
        let item = |made_by| {
            let value = ValueId::from_index(made_by as usize);
            Item { value, bytes: 1, made_by, name_of: NONE, over: NONE }
        };
        let read = |&(from, to): &(u32, u32)| (to, Read::whole(from));
        let reads: Vec<(u32, Read)> = edges.iter().map(read).collect();
        let kernels = vec![kernel; count as usize];
        Graph::new(kernels, Vec::new(), (0..count).map(item).collect(), Vec::new(), &reads)
    }

    /// Pseudo-random numbers.
    fn numbers(mut state: u64) -> impl FnMut(u32) -> u32 {
        move |below| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % u64::from(below)) as u32
        }
    }

    /// A random graph: each kernel reads at most `per_kernel` of the `reach` before it.
    fn random(count: u32, reach: u32, per_kernel: u32, next: &mut impl FnMut(u32) -> u32) -> Graph {
        let mut edges = Vec::new();
        for to in 1..count {
            for _ in 0..next(per_kernel + 1) {
                edges.push((to - 1 - next(reach.min(to)), to));
            }
        }
        graph(count, &edges)
    }

    #[test]
    fn reads_that_a_writer_does_not_need_are_found() {
        let mut next = numbers(7);
        let (mut apart, mut total) = (0, 0);
        for round in 0..60 {
            // Many writes and few.
            let num_writes = if round % 6 == 0 { FEW as u32 + 200 } else { 200 };
            let count = 2 + next(if round % 3 == 0 { 900 } else { 60 });
            let graph = random(count, 1 + next(40), 1 + next(3), &mut next);
            let write = |_| Write { kernel: next(count), over: next(count) };
            let writes: Vec<Write> = (0..num_writes).map(write).collect();
            let found = are_read_apart(&graph, &writes, |at, _| at % 2 == 0);
            let order = breadth_first(&graph);
            for (at, write) in writes.iter().enumerate() {
                let needed = needed_by(&graph, order, std::iter::once(write.kernel));
                let is_apart = (0..count).any(|kernel| {
                    let reads = graph.reads(kernel).iter().any(|read| read.item == write.over);
                    let is_own = kernel == write.kernel;
                    reads && if is_own { at % 2 == 1 } else { needed[kernel as usize] == 0 }
                });
                assert_eq!(found[at].is_some(), is_apart, "round {round}, write {at}");
                apart += usize::from(is_apart);
                total += 1;
            }
        }
        assert!(apart > total / 20 && apart < total * 19 / 20, "{apart} of {total}");
    }

    #[test]
    fn what_is_needed_far_away_is_found_by_way_of_hubs() {
        // Sixty inputs into one chain, out of which sixty others come.
        let mut edges: Vec<(u32, u32)> = (0..60).map(|from| (from, 60)).collect();
        edges.extend((60..1000).map(|from| (from, from + 1)));
        edges.extend((1001..1060).map(|to| (1000, to)));
        let graph = graph(1060, &edges);
        let mut needs = Needs::new(&graph);
        for (from, to) in (0..60).zip(1001..1060) {
            assert_eq!(needs.all(to, &mut vec![from, 500]), Some(true));
        }
        assert_eq!(needs.all(1001, &mut vec![1002]), Some(false));
    }
}
