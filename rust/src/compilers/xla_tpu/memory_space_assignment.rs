//! Memory space assignment: which temporary values are in the vector memory of a TPU's core, not in its HBM.
//!
//! A value is made in vector memory where there is room. Where there is none, what is needed last is moved to HBM, and takes memory there
//! from then on. Blocks inside an op and what is around that have half of the memory each.
//! Source: XLA's `MemorySpaceAssignment`.

use crate::compilers::xla_cpu::buffer_assignment::liveness::{taken, Liveness};
use crate::compilers::xla_cpu::kernels::graph::Graph;
use crate::index::OpId;
use crate::ir::{OpKind, Program};
use std::collections::BinaryHeap;

/// The bytes of vector memory for values: 128 MiB less what kernels keep for themselves.
const VECTOR_MEMORY: u128 = 112 << 20;

impl Liveness {
    /// Keeps what fits into vector memory out of what is counted.
    pub fn assign_memory_space(&mut self, program: &Program, graph: &Graph, is_entry: bool) {
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
            .filter(|&(_, item)| is_own(item))
            .collect();
        made.sort_unstable();
        let mut made = made.into_iter().peekable();
        for at in 0..num_positions {
            let op = graph.kernels[self.order[at as usize] as usize].op;
            let is_whole = is_entry && !runs_blocks(program, op);
            let most = if is_whole { VECTOR_MEMORY } else { VECTOR_MEMORY / 2 };
            while let Some((_, item)) = made.next_if(|&(first, _)| first == at) {
                let bytes = graph.items[item as usize].bytes;
                if let Some((_, last)) = self.spans[item as usize].take() {
                    vector.add(item, bytes, last);
                }
            }
            while vector.used > most {
                let Some((last, item)) = vector.remove_last(graph) else { break };
                self.spans[item as usize] = Some((at, last));
            }
            vector.used -= vector.ends[at as usize];
        }
        self.taken = taken(graph, &self.spans, self.order.len());
    }
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
    /// Removes the item that is needed last, and says when that is.
    fn remove_last(&mut self, graph: &Graph) -> Option<(u32, u32)> {
        let (last, item) = self.held.pop()?;
        let bytes = graph.items[item as usize].bytes;
        self.used -= bytes;
        self.ends[last as usize] -= bytes;
        Some((last, item))
    }
}
