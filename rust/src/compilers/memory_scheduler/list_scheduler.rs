//! A greedy order of the kernels of a block: of the kernels that are ready, the one that frees most memory.
//!
//! Source: XLA's `ListMemoryScheduler`.

use super::depth_first::bytes_made;
use super::Edges;
use crate::compilers::xla_cpu::kernels::graph::{Graph, NONE};
use crate::compilers::xla_cpu::ragged_rows::Rows;
use std::collections::BinaryHeap;

/// The bytes that a kernel frees less those that it allocates; its number of users; when it got that priority.
type Priority = (i128, usize, u64);

struct ListScheduler<'g> {
    graph: &'g Graph,
    edges: &'g Edges,
    /// The items that each kernel reads, each once, without arguments.
    reads: Rows<u32>,
    /// For each item the number of kernels that have yet to read it, plus one if it is returned.
    uses: Vec<u32>,
    /// The kernels that are ready by their priorities, former ones included.
    ready: BinaryHeap<(Priority, u32)>,
    /// The priority of each kernel that is ready.
    priorities: Vec<Option<Priority>>,
    clock: u64,
}

/// The order.
pub(super) fn order(graph: &Graph, edges: &Edges) -> Vec<u32> {
    let count = graph.kernels.len();
    let mut uses = vec![0; graph.items.len()];
    let (mut reads, mut seen_by) = (Vec::new(), vec![NONE; graph.items.len()]);
    for at in 0..count as u32 {
        for item in graph.reads(at).iter().map(|read| graph.stored_as(read.item)) {
            let is_made = graph.items[item as usize].made_by != NONE;
            if is_made && std::mem::replace(&mut seen_by[item as usize], at) != at {
                uses[item as usize] += 1;
                reads.push((at, item));
            }
        }
    }
    for &item in graph.returned.iter().filter(|&&item| item != NONE) {
        uses[graph.stored_as(item) as usize] += 1;
    }
    let mut scheduler = ListScheduler {
        graph,
        edges,
        reads: Rows::of(count, &reads),
        uses,
        ready: BinaryHeap::new(),
        priorities: vec![None; count],
        clock: 0,
    };
    scheduler.run()
}

impl ListScheduler<'_> {
    fn run(&mut self) -> Vec<u32> {
        let count = self.graph.kernels.len();
        let mut waits: Vec<usize> =
            (0..count as u32).map(|at| self.edges.operands.row(at).len()).collect();
        for at in 0..count as u32 {
            if waits[at as usize] == 0 {
                self.add(at);
            }
        }
        let mut order = Vec::with_capacity(count);
        // Items that one kernel has yet to read, which frees them.
        let mut nearly_free = Vec::new();
        while let Some((priority, best)) = self.ready.pop() {
            if self.priorities[best as usize] != Some(priority) {
                continue;
            }
            self.priorities[best as usize] = None;
            order.push(best);
            for &item in self.reads.row(best) {
                let uses = &mut self.uses[item as usize];
                *uses -= 1;
                if *uses == 1 {
                    nearly_free.push(item);
                }
            }
            for &user in self.edges.users.row(best) {
                let waits = &mut waits[user as usize];
                *waits -= 1;
                if *waits == 0 {
                    self.add(user);
                }
            }
            for item in nearly_free.drain(..) {
                let by = self.graph.items[item as usize].made_by;
                for &user in self.edges.users.row(by) {
                    self.update(user);
                }
            }
        }
        order
    }
    fn add(&mut self, at: u32) {
        self.clock += 1;
        let (freed, users) = self.priority(at);
        let priority = (freed, users, self.clock);
        self.priorities[at as usize] = Some(priority);
        self.ready.push((priority, at));
    }
    /// Gives a ready kernel its current priority.
    fn update(&mut self, at: u32) {
        let Some(old) = self.priorities[at as usize] else { return };
        if self.priority(at) != (old.0, old.1) {
            self.add(at);
        }
    }
    fn priority(&self, at: u32) -> (i128, usize) {
        let made = bytes_made(self.graph, at);
        // Scalars stay near each other.
        if made <= 8 {
            return (i128::MAX, usize::MAX);
        }
        let reads = self.reads.row(at).iter();
        let last = reads.filter(|&&item| self.uses[item as usize] == 1);
        let freed = last
            .fold(0, |sum: u128, &item| sum.saturating_add(self.graph.items[item as usize].bytes));
        let as_signed = |bytes: u128| i128::try_from(bytes).unwrap_or(i128::MAX);
        (as_signed(freed).saturating_sub(as_signed(made)), self.edges.users.row(at).len())
    }
}
