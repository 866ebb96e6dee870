//! Memory space assignment: which values are in the vector memory of a TPU's core, not in its HBM, and from when to when.
//!
//! Values are assigned in the order of what it helps the kernels that write and read them, the most first. From one use to the next
//! a value stays in vector memory if there is room and the kernels between take no longer than eight copies of that memory. If it
//! does not stay, it is copied to HBM as soon as it is made, and before a use copied back if there is room and the kernels before
//! leave the time. What is around an op has what the blocks inside of it leave.
//! On chips where only fusions write vector memory, what products, collectives and single ops make is in HBM, from which it is copied.
//!
//! Source: XLA's `MemorySpaceAssignment`, and its options as XLA for TPUs prints them.

use crate::compilers::compilation::ChipFacts;
use crate::compilers::xla_cpu::buffer_assignment::liveness::{taken, Liveness};
use crate::compilers::xla_cpu::kernels::graph::{Graph, Item, Kernel, Read, NONE};
use crate::compilers::xla_tpu::async_copies::AsyncCopies;
use crate::compilers::xla_tpu::cost_analysis::{
    read_bytes, runs_blocks, CostAnalysis, KernelCosts, Needs,
};
use crate::compilers::xla_tpu::cross_program_prefetch::prefetched;
use crate::compilers::xla_tpu::vector_memory::VectorMemory;
use crate::index::ValueId;
use crate::ir::{OpKind, Program};
use crate::spmd::collective_optimizer::COLLECTIVES;
use rustc_hash::FxHashSet;

/// The bytes of vector memory that kernels keep for themselves.
const OF_KERNELS: u128 = 16 << 20;

/// The most copies of the vector memory that kernels between two uses may take: `max_overlap_to_mem_size_async_copy_ratio`.
const MOST_COPIES: f64 = 8.0;

/// The copies of a value that kernels beside a copy take if there is a choice: `preferred_overlap_to_async_copy_ratio`.
const PREFERRED: f64 = 2.0;

/// The most kernels that are looked at beside a copy.
const MAX_BESIDE: usize = 1024;

/// What is left of a copy because numbers are rounded.
const ROUNDING: f64 = 1e-6;

/// The most starts of a copy that are tried on each side of the preferred one.
const MAX_TRIED: u32 = 16;

/// A value that is made and used in a block, with the values that are written over it.
#[derive(Clone, Debug, Default)]
struct Value {
    /// Its item, and those that are written over it.
    items: Vec<u32>,
    bytes: u128,
    /// Where it is made; `None` for an argument, which is in HBM.
    made: Option<u32>,
    /// Whether what makes it writes HBM only.
    is_made_in_hbm: bool,
    /// Where it is read, in order.
    uses: Vec<Use>,
    /// Whether it is in HBM at the end.
    is_returned: bool,
}

/// The reads of a value by a kernel.
#[derive(Clone, Copy, Debug)]
struct Use {
    /// The position of the kernel.
    at: u32,
    /// The bytes that are read.
    bytes: u128,
}

/// `bytes` as [`VectorMemory`] counts them.
fn counted(bytes: u128) -> u64 {
    bytes.try_into().unwrap_or(u64::MAX)
}

/// Where a value is after the uses so far.
#[derive(Clone, Copy)]
struct Place {
    /// The position until which it is in vector memory; `None` if it is not.
    held_until: Option<u32>,
    /// The positions between which it is in HBM.
    in_hbm: Option<(u32, u32)>,
}

/// The assignment of a block.
struct Assignment<'c> {
    costs: &'c CostAnalysis,
    vector: VectorMemory,
    room: u128,
    /// The seconds that kernels leave for copies to vector memory, at each position.
    idle: Vec<f64>,
    /// The most seconds between two uses.
    longest: f64,
    /// The copies between the memories.
    copies: AsyncCopies,
}

impl Liveness {
    /// Keeps what is in the vector memory of the chip out of what is counted.
    pub fn assign_memory_space(
        &mut self,
        program: &Program,
        (graph, inside): (&Graph, &[Needs]),
        is_entry: bool,
        (costs, facts): (&KernelCosts, ChipFacts),
    ) {
        let room = facts.fast_bytes.saturating_sub(OF_KERNELS);
        let count = self.order.len();
        let costs = CostAnalysis::new(costs, &self.order);
        let mut vector = VectorMemory::new(count);
        for (&kernel, at) in self.order.iter().zip(0..) {
            match inside[kernel as usize].vector_bytes {
                0 => {}
                bytes => vector.take((at, at), counted(bytes)),
            }
        }
        let prefetched = is_entry.then(|| prefetched(program, graph, &self.order, room)).flatten();
        if let Some((bytes, last)) = prefetched {
            let is_held = vector.last_over((0, last), counted(room - bytes)).is_none();
            vector.take((0, if is_held { last } else { 0 }), counted(bytes));
        }
        let longest = costs.copy(facts.fast_bytes) * MOST_COPIES;
        let idle = (0..count as u32).map(|at| costs.at(at)).collect();
        let mut assignment = Assignment {
            costs: &costs,
            vector,
            room,
            idle,
            longest,
            copies: AsyncCopies::default(),
        };
        let mut values = self.values(program, graph, |kernel, at| {
            facts.fast_results || costs.computes(at) == 0.0 && is_fusion(program, graph, kernel)
        });
        values.retain(|value| value.bytes > 0 && value.bytes <= room);
        let priority = |value: &Value| (assignment.priority(value), value.bytes);
        let mut sorted: Vec<_> = values.iter().map(|value| (priority(value), value)).collect();
        sorted
            .sort_by(|(left, _), (right, _)| right.0.total_cmp(&left.0).then(right.1.cmp(&left.1)));
        for (_, value) in sorted {
            let in_hbm = assignment.assign(value);
            for &item in &value.items {
                let span = &mut self.spans[item as usize];
                *span = span.and_then(|(first, last)| {
                    let (from, to) = in_hbm?;
                    let (from, to) = (from.max(first), to.min(last));
                    (from <= to).then_some((from, to))
                });
            }
        }
        for (what, span) in graph.items.iter().zip(&mut self.spans) {
            // Scalars have a memory of their own.
            if program.types()[program.type_of(what.value)].rank() == Some(0) {
                *span = None;
            }
        }
        let vector_bytes = assignment.vector.most().into();
        self.needs = Needs { vector_bytes, copies: assignment.copies, ..costs.needs };
        self.taken = taken(graph, &self.spans, count);
    }
    /// The values of `graph`; those that may not be in vector memory have no bytes.
    fn values(
        &self,
        program: &Program,
        graph: &Graph,
        writes: impl Fn(u32, u32) -> bool,
    ) -> Vec<Value> {
        let mut values: Vec<Value> = (0..)
            .zip(&graph.items)
            .map(|(item, what)| Value {
                bytes: if what.name_of == NONE { what.bytes } else { 0 },
                items: vec![item],
                ..Value::default()
            })
            .collect();
        // The first of the items that are written over each other.
        let mut firsts: Vec<u32> = (0..graph.items.len() as u32).collect();
        for (&kernel, at) in self.order.iter().zip(0..) {
            let what = graph.kernels[kernel as usize];
            if !what.is_name {
                for read in graph.reads(kernel) {
                    let bytes = read_bytes(graph, read);
                    let first = firsts[graph.stored_as(read.item) as usize];
                    let uses = &mut values[first as usize].uses;
                    match uses.last_mut() {
                        Some(last) if last.at == at => last.bytes = last.bytes.max(bytes),
                        _ => uses.push(Use { at, bytes }),
                    }
                }
            }
            for &item in graph.makes(kernel) {
                values[item as usize].made = Some(at);
                let is_in_hbm = !writes(kernel, at);
                values[item as usize].is_made_in_hbm = is_in_hbm;
                let Item { over, bytes, name_of, .. } = graph.items[item as usize];
                if over != NONE && name_of == NONE {
                    let over = graph.stored_as(over);
                    let first = firsts[over as usize];
                    let under = &mut values[first as usize];
                    let is_free = under.items.last() == Some(&over)
                        && under.uses.last().is_some_and(|last| last.at == at);
                    if under.bytes == bytes && is_free && !is_in_hbm {
                        under.items.push(item);
                        firsts[item as usize] = first;
                        values[item as usize].bytes = 0;
                        continue;
                    }
                }
                // What branches and callees make is where they made it.
                if what.is_op
                    && runs_blocks(program, what.op)
                    && program.kind(what.op) != OpKind::While
                {
                    values[item as usize].bytes = 0;
                }
            }
        }
        for &item in graph.returned.iter().filter(|&&item| item != NONE) {
            values[firsts[graph.stored_as(item) as usize] as usize].is_returned = true;
        }
        values
    }
}

impl Assignment<'_> {
    /// The seconds that it helps the kernels that write and read `value`, by the root of its bytes.
    fn priority(&self, value: &Value) -> f64 {
        let made = value.made.filter(|_| !value.is_made_in_hbm).map(|at| (at, value.bytes));
        let uses = value.uses.iter().map(|one| (one.at, one.bytes));
        let places = made.into_iter().chain(uses);
        let benefits = places
            .filter(|&(at, _)| !self.costs.runs_blocks(at))
            .map(|(at, bytes)| self.costs.benefit(at, bytes));
        let total =
            benefits.reduce(
                |total, one| {
                    if total > 0.0 && one > 0.0 {
                        total + one
                    } else {
                        total.max(one)
                    }
                },
            );
        total.unwrap_or(f64::NEG_INFINITY) / (value.bytes as f64).sqrt()
    }
    /// Assigns `value`, and returns the positions between which it is in HBM.
    fn assign(&mut self, value: &Value) -> Option<(u32, u32)> {
        let made = value.made.unwrap_or(0);
        let end = (self.idle.len() as u32).saturating_sub(1);
        let mut place = Place { held_until: None, in_hbm: None };
        if value.made.is_none() || value.is_made_in_hbm {
            place.in_hbm = Some((made, made));
        } else if value.uses.is_empty() {
            // Nobody waits for it.
            let is_held = !value.is_returned && self.fits((made, made), value.bytes);
            return (!is_held).then_some((made, if value.is_returned { end } else { made }));
        }
        let mut before = made;
        for &one in &value.uses {
            self.assign_use(value, before, one, &mut place);
            before = one.at;
        }
        if value.is_returned {
            if place.in_hbm.is_none() {
                self.copies.add_eviction(value.bytes);
            }
            let from = place.in_hbm.map_or((made + 1).min(end), |(from, _)| from);
            place.in_hbm = Some((from, end));
        }
        place.in_hbm
    }
    /// Assigns a use of `value`, after one at position `before`.
    fn assign_use(&mut self, value: &Value, before: u32, one: Use, place: &mut Place) {
        let Use { at, bytes } = one;
        let made = value.made.unwrap_or(0);
        let is_first = place.held_until.is_none() && place.in_hbm.is_none();
        let from = place.held_until.map(|until| until + 1).or(is_first.then_some(made));
        if let Some(from) = from {
            let is_short = self.costs.between(before, at) < self.longest;
            if is_short && (from > at || self.fits((from, at), value.bytes)) {
                if from <= at {
                    self.vector.take((from, at), counted(value.bytes));
                }
                place.held_until = Some(at);
                return;
            }
        }
        // It is in HBM from where it is made, or copied there right after that.
        let first = if is_first { made } else { made + 1 };
        if place.in_hbm.is_none() && !is_first {
            self.copies.add_eviction(value.bytes);
        }
        let (from, until) = place.in_hbm.unwrap_or((first, first));
        place.held_until = None;
        let start = if value.made.is_some() { from } else { 0 };
        match self.prefetch(value, (start, at), bytes) {
            Some(copied) => {
                place.held_until = Some(at);
                place.in_hbm = Some((from, until.max(copied)));
            }
            None => place.in_hbm = Some((from, until.max(at))),
        }
    }
    /// Copies `value` to vector memory after the position `from` and before its use at `at`, if it can, and returns the position
    /// until which it is needed in HBM.
    fn prefetch(&mut self, value: &Value, (from, at): (u32, u32), used: u128) -> Option<u32> {
        // `inefficient_use_to_copy_ratio`
        if from >= at || used < value.bytes / 2 || self.costs.runs_blocks(at) {
            return None;
        }
        let copy = self.costs.copy(value.bytes);
        let least = copy - self.costs.reduction(at, used);
        let latest = self.costs.latest((from, at), least)?.min(at - 1);
        let earliest = self.costs.earliest((from, at), self.longest).min(latest);
        let full = self.last_full((earliest + 1, at), value.bytes);
        let earliest = full.unwrap_or(earliest);
        if earliest > latest {
            return None;
        }
        let preferred = self.costs.latest((from, at), PREFERRED * copy).unwrap_or(from);
        let preferred = preferred.clamp(earliest, latest);
        let later = preferred..=latest.min(preferred.saturating_add(MAX_TRIED));
        let sooner = (earliest.max(preferred.saturating_sub(MAX_TRIED))..preferred).rev();
        let mut starts = later.chain(sooner).chain([latest]);
        let start = starts.find(|&start| self.takes_time((start, at), copy))?;
        self.vector.take((start + 1, at), counted(value.bytes));
        self.copies.add_prefetch(value.bytes);
        Some(at - 1)
    }
    /// Whether there is room for `bytes`.
    fn fits(&self, range: (u32, u32), bytes: u128) -> bool {
        self.last_full(range, bytes).is_none()
    }
    /// The last position of `range` at which there is no room for `bytes`.
    fn last_full(&self, range: (u32, u32), bytes: u128) -> Option<u32> {
        self.vector.last_over(range, counted(self.room.saturating_sub(bytes)))
    }
    /// Takes the `seconds` of a copy from what kernels between two positions leave, if they do.
    fn takes_time(&mut self, (start, end): (u32, u32), seconds: f64) -> bool {
        let between = start as usize + 1..end as usize;
        let mut left = seconds;
        let mut until = between.start;
        for at in between.clone().take(MAX_BESIDE) {
            if left <= 0.0 {
                break;
            }
            left -= self.idle[at];
            until = at + 1;
        }
        if left > seconds * ROUNDING {
            return false;
        }
        let mut left = seconds;
        for idle in &mut self.idle[between.start..until] {
            let used = idle.min(left);
            *idle -= used;
            left -= used;
        }
        true
    }
}

/// Whether `kernel` is a fusion of several ops, none of which moves rows by indices, sorts or sends.
fn is_fusion(program: &Program, graph: &Graph, kernel: u32) -> bool {
    let Kernel { op, is_op, .. } = graph.kernels[kernel as usize];
    let name = program.op_name(op);
    let is_alone = || {
        let value = |read: &Read| graph.items[read.item as usize].value;
        let read: FxHashSet<ValueId> = graph.reads(kernel).iter().map(value).collect();
        program.operands(op).all(|value| read.contains(&value))
    };
    is_op
        && !COLLECTIVES.contains(&name)
        && !matches!(name, "stablehlo.gather" | "stablehlo.scatter" | "stablehlo.sort")
        && (graph.makes(kernel).len() > 1 || !is_alone())
}
