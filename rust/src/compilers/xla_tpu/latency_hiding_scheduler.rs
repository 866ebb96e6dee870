//! Latency hiding: all-gathers that run beside a loop. One that neither needs the loop nor is needed by it starts before the loop and
//! is done after it, before the first kernel that reads the result. The loop carries its operand and its result.
//!
//! Source: XLA's `LatencyHidingScheduler`; that loops are crossed, compiled programs show.

use crate::compilers::xla_cpu::kernels::graph::{Graph, NONE};
use crate::compilers::xla_cpu::ragged_rows::Rows;
use crate::ir::{OpKind, Program};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The most all-gathers of a block that are looked at.
const MAX_GATHERS: usize = 256;

/// An order of kernels, and items, each with the position until which it is live.
pub type Beside = (Vec<u32>, Vec<(u32, u32)>);

/// `order` with all-gathers before the last loop that they can run beside, and what reads them after it; and the items that they
/// read, each with the position until which it is live. `None` if there is no such all-gather.
pub fn beside_loops(program: &Program, graph: &Graph, order: &[u32]) -> Option<Beside> {
    let op_of = |kernel: u32| graph.kernels[kernel as usize].op;
    let loops: Vec<u32> =
        order.iter().copied().filter(|&it| program.kind(op_of(it)) == OpKind::While).collect();
    let is_gather = |&kernel: &u32| {
        graph.kernels[kernel as usize].is_op
            && program.op_name(op_of(kernel)) == "stablehlo.all_gather"
    };
    if loops.is_empty() {
        return None;
    }
    let gathers: Vec<u32> = order.iter().copied().filter(is_gather).take(MAX_GATHERS).collect();
    if gathers.is_empty() {
        return None;
    }
    let dependences = Dependences::of(graph, order);
    let mut crossings: Vec<(u32, u32)> = Vec::new();
    for gather in gathers {
        let start = (gather, order.len());
        let (before, after) =
            (reached(&dependences.needs, start), reached(&dependences.users, start));
        let is_free = |&&it: &&u32| !before[it as usize] && !after[it as usize];
        let crossed = loops.iter().rev().find(is_free);
        crossings.extend(crossed.map(|&crossed| (gather, crossed)));
    }
    if crossings.is_empty() {
        return None;
    }
    let order = dependences.with_crossings(order, &crossings);
    let places = places(&order);
    let mut held = Vec::new();
    for &(gather, _) in &crossings {
        let readers = dependences.users.row(gather).iter().map(|&user| places[user as usize]);
        if let Some(first) = readers.min() {
            let until = first.saturating_sub(1);
            held.extend(graph.reads(gather).iter().map(|it| (graph.stored_as(it.item), until)));
        }
    }
    Some((order, held))
}

/// The position of each kernel in `order`.
fn places(order: &[u32]) -> Vec<u32> {
    let mut places = vec![0_u32; order.len()];
    for (&kernel, at) in order.iter().zip(0..) {
        places[kernel as usize] = at;
    }
    places
}

/// For each kernel whether it is reached from `start` along `edges`.
fn reached(edges: &Rows<u32>, (start, count): (u32, usize)) -> Vec<bool> {
    let mut is_reached = vec![false; count];
    let mut left = vec![start];
    while let Some(kernel) = left.pop() {
        for &next in edges.row(kernel) {
            if !std::mem::replace(&mut is_reached[next as usize], true) {
                left.push(next);
            }
        }
    }
    is_reached
}

/// The kernels that each kernel needs, and those that need it.
struct Dependences {
    needs: Rows<u32>,
    users: Rows<u32>,
}

impl Dependences {
    fn of(graph: &Graph, order: &[u32]) -> Self {
        let count = graph.kernels.len();
        let (mut needs, mut users) = (Vec::new(), Vec::new());
        for at in 0..count as u32 {
            graph.for_each_need(at, |by| {
                needs.push((at, by));
                users.push((by, at));
            });
        }
        // What is overwritten is read first, as it is in `order`.
        let places = places(order);
        let readers = (0..count as u32).flat_map(|at| {
            graph.reads(at).iter().map(move |read| (graph.stored_as(read.item), at))
        });
        let readers = Rows::of(graph.items.len(), &readers.collect::<Vec<_>>());
        for item in graph.items.iter().filter(|item| item.over != NONE && item.made_by != NONE) {
            let is_earlier = |&&at: &&u32| places[at as usize] < places[item.made_by as usize];
            for &at in readers.row(graph.stored_as(item.over)).iter().filter(is_earlier) {
                needs.push((item.made_by, at));
                users.push((at, item.made_by));
            }
        }
        Self { needs: Rows::of(count, &needs), users: Rows::of(count, &users) }
    }
    /// `order` with the first of each pair before the second one, and the readers of the first one after it.
    fn with_crossings(&self, order: &[u32], crossings: &[(u32, u32)]) -> Vec<u32> {
        let count = order.len();
        let places = places(order);
        let mut ranks: Vec<u32> = places.iter().map(|&at| 2 * at + 1).collect();
        let mut more: Vec<(u32, u32)> = Vec::new();
        for &(gather, crossed) in crossings {
            more.push((gather, crossed));
            let rank = 2 * places[crossed as usize];
            let mut left = vec![gather];
            while let Some(kernel) = left.pop() {
                let own = &mut ranks[kernel as usize];
                if *own > rank {
                    *own = rank;
                    left.extend(self.needs.row(kernel));
                }
            }
            more.extend(self.users.row(gather).iter().map(|&user| (crossed, user)));
        }
        let more = Rows::of(count, &more);
        let mut waits = vec![0_u32; count];
        let users = |at: u32| self.users.row(at).iter().chain(more.row(at));
        for at in 0..count as u32 {
            users(at).for_each(|&user| waits[user as usize] += 1);
        }
        let entry = |at: u32| Reverse((ranks[at as usize], places[at as usize], at));
        let mut ready: BinaryHeap<_> =
            (0..count as u32).filter(|&at| waits[at as usize] == 0).map(entry).collect();
        let mut sorted = Vec::with_capacity(count);
        while let Some(Reverse((_, _, kernel))) = ready.pop() {
            sorted.push(kernel);
            for &user in users(kernel) {
                waits[user as usize] -= 1;
                if waits[user as usize] == 0 {
                    ready.push(entry(user));
                }
            }
        }
        if sorted.len() == count {
            sorted
        } else {
            // Two of them wait for each other.
            order.to_vec()
        }
    }
}
