//! Latency hiding: an order of kernels in which collectives run beside others. From the last kernel to the first, the best of those
//! whose users have all been placed is placed next: what awaits a collective at once, if no other one is running; then what is ready
//! by now, and of that what is behind most collectives, and takes about as long as the running collective still does. What starts a
//! collective is ready when the collective has taken its time.
//!
//! Memory decides only when much of it is taken, so that peaks are larger than those of the order that is given. Places in it break
//! ties.
//!
//! Source: XLA's `DefaultSchedulerCore`, with the options of `MakeGPUSchedulerConfig`; those of XLA for TPUs are printed by it.

pub mod estimates;
mod memory_pressure;
mod schedule_graph;

use crate::compilers::xla_cpu::kernels::graph::Graph;
use crate::compilers::xla_cpu::ragged_rows::Rows;
use estimates::{Estimated, Rules, RESOURCES};
use memory_pressure::MemoryPressure;
use schedule_graph::{schedule_graph, Kind, Node};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// The most kernels that are ready that are compared at a time; those behind most collectives come first, then later ones.
const MAX_COMPARED: usize = 256;

/// An order of kernels, and items, each with the position until which it is live.
pub type Scheduled = (Vec<u32>, Vec<(u32, u32)>);

/// What a node does for memory, as [`MemoryPressure::relief`] has it.
type Relief = (i128, bool);

/// A key, the place of a node, and the node.
type Entry = (u64, u32, u32);

/// Nodes that are ready.
#[derive(Default)]
struct Queue {
    /// Those that may run by now, by depth.
    now: BTreeSet<Entry>,
    /// The others, by when they may run.
    later: BinaryHeap<Reverse<Entry>>,
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.now.is_empty() && self.later.is_empty()
    }
    /// When the first of those that may not run by now may.
    fn next(&self) -> Option<f64> {
        self.later.peek().map(|&Reverse((ready, _, _))| f64::from_bits(ready))
    }
    /// Lets nodes run that may at `time`.
    fn advance(&mut self, time: f64, nodes: &[Node]) {
        while self.next().is_some_and(|ready| ready <= time) {
            let Some(Reverse((_, place, node))) = self.later.pop() else { return };
            self.now.insert((nodes[node as usize].depth.to_bits(), place, node));
        }
    }
}

/// Whether a node reads what a collective makes, how many nodes it lets run, whether it frees memory, and its place.
type Rank = (bool, usize, bool, u32);

/// Whether `node` takes more nearly the microseconds that are `left` than `other` does; `None` if neither does.
fn fits_better(node: &Node, other: &Node, left: f64) -> Option<bool> {
    let [own, others] = [node, other].map(|it| (left - it.what.cost).abs());
    let fits = (!node.starts() && own < others, !other.starts() && others < own);
    (fits.0 != fits.1).then_some(fits.0)
}

/// The nodes of a block, and what is known while they are placed.
struct Scheduler<'g> {
    nodes: Vec<Node>,
    /// The nodes that each node needs.
    needs: Rows<u32>,
    /// What awaits collectives, by the resource of these, and other nodes.
    ends: [Queue; RESOURCES],
    others: Queue,
    /// Names that are ready.
    names: Vec<u32>,
    /// Times in the future at which something may run.
    future: BinaryHeap<Reverse<u64>>,
    /// How many more collectives may run, of each resource.
    free: [u32; RESOURCES],
    between: f64,
    time: f64,
    memory: MemoryPressure<'g>,
}

/// The order in which the kernels of `graph` run instead of `order`; `None` if none is a collective, or if some wait for each other.
/// `before`: for each kernel others that must come earlier, besides those that it needs. `limit`: the bytes that may be live.
pub fn with_hidden_latency(
    graph: &Graph,
    (order, limit): (&[u32], u128),
    before: &Rows<u32>,
    (rules, estimated): (Rules, impl FnMut(u32) -> Estimated),
) -> Option<Scheduled> {
    let nodes = schedule_graph(graph, before, estimated)?;
    let mut scheduler = Scheduler::new(nodes, order, rules, MemoryPressure::new(graph, limit));
    let mut reversed = Vec::with_capacity(scheduler.nodes.len());
    while let Some(node) = scheduler.best() {
        scheduler.place(node);
        reversed.push(node);
    }
    reversed.reverse();
    let is_whole = reversed.len() == scheduler.nodes.len();
    is_whole.then(|| scheduled(graph, &scheduler.nodes, &reversed))
}

/// The order of kernels in `placed`, and until when what collectives read is live.
fn scheduled(graph: &Graph, nodes: &[Node], placed: &[u32]) -> Scheduled {
    let (mut order, mut held) = (Vec::with_capacity(graph.kernels.len()), Vec::new());
    for &node in placed {
        let kind = nodes[node as usize].kind;
        if (node as usize) < graph.kernels.len() {
            order.push(node);
        }
        let Kind::End(start) = kind else { continue };
        if !graph.overwrites(start) {
            // What is written over its operand holds it anyway.
            let until = (order.len() as u32).saturating_sub(1);
            held.extend(graph.reads(start).iter().map(|it| (graph.stored_as(it.item), until)));
        }
    }
    (order, held)
}

impl<'g> Scheduler<'g> {
    /// For `nodes`, with pairs of a node and one that it needs; `order` is that of the kernels.
    fn new(
        (nodes, needs): (Vec<Node>, Vec<(u32, u32)>),
        order: &[u32],
        rules: Rules,
        memory: MemoryPressure<'g>,
    ) -> Self {
        let needs = Rows::of(nodes.len(), &needs);
        let Rules { between, at_once: free } = rules;
        let (ends, others, names, future, time) = Default::default();
        let mut found =
            Self { nodes, needs, ends, others, names, future, free, between, time, memory };
        found.order_nodes(order);
        for node in 0..found.nodes.len() as u32 {
            for &need in found.needs.row(node) {
                found.nodes[need as usize].waits += 1;
            }
        }
        for node in 0..found.nodes.len() as u32 {
            if found.nodes[node as usize].waits == 0 {
                found.nodes[node as usize].ready = between;
                found.enqueue(node);
            }
        }
        found
    }
    /// Finds the place of each node, and the collectives before it. A collective is awaited right before its first user, or after
    /// its start if it has none.
    fn order_nodes(&mut self, order: &[u32]) {
        let mut place = 0;
        let mut set = |nodes: &mut Vec<Node>, needs: &Rows<u32>, node: u32| {
            let mut depth = 0.0_f64;
            for &need in needs.row(node) {
                let Node { depth: before, what, .. } = nodes[need as usize];
                depth = depth.max(before + what.latency);
            }
            let own = &mut nodes[node as usize];
            (own.depth, own.place) = (depth, place);
            place += 1;
        };
        let mut is_placed = vec![false; self.nodes.len()];
        let mut left = Vec::new();
        for &kernel in order {
            left.extend(self.needs.row(kernel).iter().map(|&need| (need, false)));
            while let Some((need, is_ready)) = left.pop() {
                if is_ready {
                    set(&mut self.nodes, &self.needs, need);
                } else if !std::mem::replace(&mut is_placed[need as usize], true) {
                    left.push((need, true));
                    left.extend(self.needs.row(need).iter().map(|&need| (need, false)));
                }
            }
            for &need in self.needs.row(kernel) {
                self.nodes[kernel as usize].reads_collective |= self.nodes[need as usize].ends();
            }
            is_placed[kernel as usize] = true;
            set(&mut self.nodes, &self.needs, kernel);
        }
        for end in order.len() as u32..self.nodes.len() as u32 {
            if !is_placed[end as usize] {
                set(&mut self.nodes, &self.needs, end);
            }
        }
    }
    /// Adds `node`, whose users have all been placed.
    fn enqueue(&mut self, node: u32) {
        let own = &self.nodes[node as usize];
        if own.is_name() {
            self.names.push(node);
            return;
        }
        let ends = &mut self.ends[own.what.resource];
        let queue = if own.ends() { ends } else { &mut self.others };
        if own.ready > self.time {
            queue.later.push(Reverse((own.ready.to_bits(), own.place, node)));
            self.future.push(Reverse(own.ready.to_bits()));
        } else {
            queue.now.insert((own.depth.to_bits(), own.place, node));
        }
    }
    /// Removes the best node of those that are ready; `None` if all have been placed.
    fn best(&mut self) -> Option<u32> {
        if let Some(name) = self.names.pop() {
            return Some(name);
        }
        let Self { nodes, ends, others, time, .. } = self;
        for queue in ends.iter_mut().chain([others]) {
            queue.advance(*time, nodes);
        }
        let wanted = self.memory.is_high().then(|| self.most_relief());
        for resource in 0..RESOURCES {
            if self.free[resource] > 0 {
                if let Some(end) = self.best_of(|it| &mut it.ends[resource], wanted) {
                    return Some(end);
                }
            }
        }
        if let Some(other) = self.best_of(|it| &mut it.others, wanted) {
            return Some(other);
        }
        // Only what may not run beside the collectives is left, or what was not compared.
        let mut queues = [&mut self.others].into_iter().chain(&mut self.ends);
        queues.find_map(|queue| queue.now.pop_last()).map(|(_, _, node)| node)
    }
    /// Whether `node` runs collectives for which no resource is left.
    fn must_wait(&self, node: &Node) -> bool {
        node.what.inside.iter().zip(self.free).any(|(&is_taken, free)| is_taken && free == 0)
    }
    fn relief(&self, node: &Node) -> Relief {
        node.part().map_or_else(Relief::default, |part| self.memory.relief(part))
    }
    /// The most that any node that is ready does for memory.
    fn most_relief(&self) -> Relief {
        let ends = self.ends.iter().zip(self.free).filter(|&(_, free)| free > 0);
        let queues = ends.map(|(queue, _)| queue).chain([&self.others]);
        let ready = queues.flat_map(|queue| {
            let later = queue.later.iter().map(|Reverse(entry)| entry);
            queue.now.iter().rev().chain(later).take(MAX_COMPARED)
        });
        let nodes = ready.map(|entry| &self.nodes[entry.2 as usize]);
        let reliefs = nodes.filter(|node| !self.must_wait(node)).map(|node| self.relief(node));
        reliefs.max().unwrap_or_default()
    }
    /// Removes the best node of a queue; of those that do as much for memory as is `wanted`, unless there are none.
    fn best_of(
        &mut self,
        queue: impl Fn(&mut Self) -> &mut Queue,
        wanted: Option<Relief>,
    ) -> Option<u32> {
        loop {
            let entries = std::mem::take(&mut queue(self).now);
            let found = self.best_now(&entries, |node| {
                let is_wanted = wanted.is_none_or(|it| self.relief(node) == it);
                is_wanted && !self.must_wait(node)
            });
            let mut own = std::mem::take(queue(self));
            own.now = entries;
            if let Some(entry) = found {
                own.now.remove(&entry);
            } else if let Some(next) = own.next() {
                // Nothing may run by now: those wait least that may run next.
                own.advance(next, &self.nodes);
                *queue(self) = own;
                continue;
            }
            *queue(self) = own;
            return found.map(|(_, _, node)| node);
        }
    }
    /// The best of `entries`, which may run by now.
    fn best_now(&self, entries: &BTreeSet<Entry>, may: impl Fn(&Node) -> bool) -> Option<Entry> {
        let is_backed = |node: &Node| {
            let resource = node.what.resource;
            self.free[resource] == 0 && !self.ends[resource].is_empty()
        };
        let left = self.future.peek().map(|&Reverse(at)| f64::from_bits(at) - self.time);
        let (mut best, mut last): (Option<(Entry, Rank)>, Option<Entry>) = (None, None);
        for &entry in entries.iter().rev().take(MAX_COMPARED) {
            let node = &self.nodes[entry.2 as usize];
            if !may(node) {
                continue;
            }
            if node.starts() && is_backed(node) {
                return Some(entry);
            }
            if node.starts() && node.depth == 0.0 {
                last = Some(entry);
                continue;
            }
            let Some((other, others)) = best else {
                best = Some((entry, self.rank(node)));
                continue;
            };
            if entry.0 < other.0 {
                break;
            }
            let fits = left.and_then(|left| fits_better(node, &self.nodes[other.2 as usize], left));
            if fits != Some(false) {
                let own = self.rank(node);
                if fits == Some(true) || own > others {
                    best = Some((entry, own));
                }
            }
        }
        best.map(|(entry, _)| entry).or(last)
    }
    /// What decides between nodes behind as many collectives that fit equally well in the time until something else is ready.
    fn rank(&self, node: &Node) -> Rank {
        let frees =
            self.memory.is_high() && node.part().is_some_and(|part| self.memory.change(part).0 < 0);
        (node.reads_collective, self.lets_run(node), frees, node.place)
    }
    /// The number of nodes that are ready when `node` is placed.
    fn lets_run(&self, node: &Node) -> usize {
        let needs = self.needs.row(node.itself).iter();
        needs.filter(|&&need| self.nodes[need as usize].waits == 1).count()
    }
    /// Places `node` before what has been placed.
    fn place(&mut self, node: u32) {
        let own = &mut self.nodes[node as usize];
        let part = own.part();
        let free = &mut self.free[own.what.resource];
        if own.ends() {
            *free = free.saturating_sub(1);
        } else if own.starts() {
            *free += 1;
        }
        own.ready = own.ready.max(self.time);
        let (at, cost) = (own.ready, own.what.cost);
        let between = if own.kind == Kind::Results { 0.0 } else { self.between };
        self.time = at + cost;
        if let Some(part) = part {
            self.memory.place(part);
        }
        while self.future.peek().is_some_and(|&Reverse(time)| f64::from_bits(time) < self.time) {
            self.future.pop();
        }
        for index in 0..self.needs.row(node).len() {
            let need = self.needs.row(node)[index];
            let own = &mut self.nodes[need as usize];
            own.ready = own.ready.max(at + own.what.latency.max(between));
            own.waits -= 1;
            if own.waits == 0 {
                own.ready = own.ready.max(self.time);
                self.enqueue(need);
            }
        }
    }
}
