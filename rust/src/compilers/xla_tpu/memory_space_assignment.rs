//! Memory space assignment: which temporary values are in the vector memory of a TPU's core, not in its HBM.
//!
//! A value is made in vector memory where there is room. Where there is none, what is needed last is moved to HBM, and takes memory there
//! from then on. Blocks inside an op and what is around that have half of the memory each.
//! Where collectives do not reach vector memory, what they read and write is not there.
//! An argument that several kernels read is kept there from the start of the program to its last use: the largest one that fits. If
//! that is donated, none is.
//!
//! Source: XLA's `MemorySpaceAssignment`, with its cross-program prefetches.

use crate::compilers::compilation::ChipFacts;
use crate::compilers::xla_cpu::buffer_assignment::liveness::{taken, Liveness};
use crate::compilers::xla_cpu::kernels::graph::{Graph, NONE};
use crate::index::OpId;
use crate::ir::{OpKind, Program, ValueDef};
use crate::spmd::collective_optimizer::COLLECTIVES;
use std::collections::BinaryHeap;

/// As many reads as of something that a loop carries.
const MANY: u32 = u32::MAX;

/// The bytes of vector memory that kernels keep for themselves.
const OF_KERNELS: u128 = 16 << 20;

impl Liveness {
    /// Keeps what fits into the vector memory of the chip out of what is counted.
    pub fn assign_memory_space(
        &mut self,
        program: &Program,
        graph: &Graph,
        is_entry: bool,
        facts: ChipFacts,
    ) {
        let room = facts.fast_bytes.saturating_sub(OF_KERNELS);
        let sent = if facts.fast_collectives { Vec::new() } else { sent(program, graph) };
        let num_positions = self.order.len() as u32;
        let mut vector =
            VectorMemory { ends: vec![0; self.order.len()], ..VectorMemory::default() };
        // What branches and callees make is where they made it.
        let is_own = |item: u32| {
            let made_by = graph.items[item as usize].made_by as usize;
            let by = graph.kernels.get(made_by);
            by.is_some_and(|by| {
                program.kind(by.op) == OpKind::While || !runs_blocks(program, by.op)
            })
        };
        let mut made: Vec<(u32, u32)> = (0..)
            .zip(&self.spans)
            .filter_map(|(item, span)| Some((span.filter(|span| span.1 < num_positions)?.0, item)))
            .filter(|&(_, item)| is_own(item) && !sent.get(item as usize).is_some_and(|&is| is))
            .collect();
        made.sort_unstable();
        let mut made = made.into_iter().peekable();
        let prefetched = is_entry.then(|| prefetched(program, graph, &self.order, room)).flatten();
        if let Some((bytes, last)) = prefetched {
            vector.used += bytes;
            vector.ends[last as usize] += bytes;
        }
        for at in 0..num_positions {
            let op = graph.kernels[self.order[at as usize] as usize].op;
            let is_whole = is_entry && !runs_blocks(program, op);
            let most = if is_whole { room } else { room / 2 };
            while let Some((_, item)) = made.next_if(|&(first, _)| first == at) {
                let bytes = graph.items[item as usize].bytes;
                if let Some((_, last)) = self.spans[item as usize].take() {
                    vector.add(item, bytes, last);
                }
            }
            while vector.used > most {
                let Some((last, item)) = vector.remove_last(graph, at) else { break };
                self.spans[item as usize] = Some((at, last));
            }
            vector.used -= vector.ends[at as usize];
        }
        self.taken = taken(graph, &self.spans, self.order.len());
    }
}

/// The bytes of the argument of the entry function that is kept in vector memory, which has `room`, and the last position in `order`
/// at which it is read.
fn prefetched(program: &Program, graph: &Graph, order: &[u32], room: u128) -> Option<(u128, u32)> {
    // The number of kernels that read each argument, and the last position; of what a loop carries none.
    let mut reads: Vec<(u32, u32)> = Vec::new();
    for (&kernel, at) in order.iter().zip(0..) {
        let has_blocks = runs_blocks(program, graph.kernels[kernel as usize].op);
        for read in graph.reads(kernel) {
            let item = graph.stored_as(read.item) as usize;
            if graph.items[item].made_by == NONE {
                reads.resize(reads.len().max(item + 1), (0, 0));
                let count = if has_blocks { MANY } else { reads[item].0.saturating_add(1) };
                reads[item] = (count, at);
            }
        }
    }
    let fitting = graph
        .items
        .iter()
        .zip(reads)
        .filter(|&(item, (count, _))| (2..MANY).contains(&count) && item.bytes <= room);
    let (item, (_, last)) = fitting.max_by_key(|(item, _)| item.bytes)?;
    let ValueDef::Arg(block) = program.def(item.value) else { return None };
    let func = program.function_of(program.block_parent_op(block));
    let port = program.func_args(func)[program.value_index(item.value)];
    let mut names = program.attr_list(port.attrs).iter().map(|attr| program.str(attr.name));
    let is_donated = names.any(|name| matches!(name, "jax.buffer_donor" | "tf.aliasing_output"));
    (!is_donated).then_some((item.bytes, last))
}

/// For each item whether a collective reads or writes it.
fn sent(program: &Program, graph: &Graph) -> Vec<bool> {
    let mut found = vec![false; graph.items.len()];
    for (at, kernel) in (0..).zip(&graph.kernels) {
        if COLLECTIVES.contains(&program.op_name(kernel.op)) {
            let read = graph.reads(at).iter().map(|read| read.item);
            for item in read.chain(graph.makes(at).iter().copied()) {
                found[graph.stored_as(item) as usize] = true;
            }
        }
    }
    found
}

/// Whether kernels run inside `op`.
fn runs_blocks(program: &Program, op: OpId) -> bool {
    use OpKind::{Call, Case, Composite, If, While};
    matches!(program.kind(op), Call | Case | Composite | If | While)
}

/// What is in vector memory.
#[derive(Default)]
struct VectorMemory {
    used: u128,
    /// The last positions at which items are needed, the latest first; and the bytes that are not needed after each position.
    held: BinaryHeap<(u32, u32)>,
    ends: Vec<u128>,
}

impl VectorMemory {
    /// Adds an item that is needed until `last`.
    fn add(&mut self, item: u32, bytes: u128, last: u32) {
        self.used += bytes;
        self.ends[last as usize] += bytes;
        self.held.push((last, item));
    }
    /// Removes the item that is needed last, at `at` or later, and says when that is.
    fn remove_last(&mut self, graph: &Graph, at: u32) -> Option<(u32, u32)> {
        let (last, item) = self.held.pop().filter(|&(last, _)| last >= at)?;
        let bytes = graph.items[item as usize].bytes;
        self.used -= bytes;
        self.ends[last as usize] -= bytes;
        Some((last, item))
    }
}
