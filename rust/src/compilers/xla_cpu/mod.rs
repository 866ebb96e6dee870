//! XLA:CPU's compilation of a per-device program: its kernels, their order, and buffer assignment.
//!
//! 1. [`passes`]: rewrites before fusion, one file for each pass; [`cost_analysis`]: what `HloCostAnalysis` counts after them.
//! 2. [`fusion`]: which values are materialized; [`layout_assignment`]: which operands are copied into another layout.
//! 3. [`kernels`]: what each kernel of a block reads and writes; [`copy_insertion`]: which buffers are copied before they are
//!    overwritten.
//! 4. [`breadth_first_scheduler`]: the order in which kernels run.
//! 5. [`buffer_assignment`]: the live range of each value, in a block and in the program, and the heap for temporary buffers.
//!
//! Arguments and outputs are live throughout. An output to which an argument is donated has that argument's buffer; before any
//! other output is written, its buffer can hold smaller values. A loop updates its carried values in place, and needs the peak of
//! its body in addition; a `case` needs the peak of the branch with the largest one.

pub(crate) mod breadth_first_scheduler;
pub mod buffer_assignment;
pub(in crate::compilers) mod by_signature;
mod bytes_accessed;
mod copy_insertion;
pub mod cost_analysis;
mod entry;
pub(crate) mod fusion;
pub mod kernel_rows;
pub(crate) mod kernels;
pub(crate) mod layout_assignment;
pub mod passes;
pub(crate) mod ragged_rows;

use crate::compilers::compilation::{ChipFacts, Target};
use crate::compilers::xla_cpu::buffer_assignment::liveness::Liveness;
use crate::compilers::xla_cpu::buffer_assignment::results::{is_live, made};
use crate::compilers::xla_cpu::kernels::builder::Builder;
use crate::compilers::xla_cpu::kernels::graph::{Graph, Item, NONE};
use crate::compilers::xla_cpu::kernels::hoisted::hoisted;
use crate::compilers::xla_tpu::async_copies::AsyncCopies;
use crate::compilers::xla_tpu::cost_analysis::Needs;
use crate::compilers::Live;
use crate::index::{BlockId, FuncId, OpId, ValueId};
use crate::ir::{OpKind, Program};
use crate::work::cached::Works;
use crate::work::execution::Execution;
use crate::work::ops::Movement;
use rustc_hash::FxHashMap;

/// The peak memory of a program.
#[derive(Clone, Debug, Default)]
pub struct CompiledPeak {
    /// Bytes besides arguments.
    pub bytes: u128,
    /// The op at the peak.
    pub op: Option<OpId>,
    /// The values that are live there, arguments included.
    pub live: Vec<Live>,
    /// Bytes between buffers that are allocated, too.
    pub holes: u128,
    /// The copies between memories.
    pub copies: AsyncCopies,
}

/// The peak of a block, without its arguments.
#[derive(Clone, Copy, Debug, Default)]
struct Peak {
    bytes: u128,
    at: u32,
    op: Option<OpId>,
    /// The block inside `op` with the largest peak.
    inner: Option<BlockId>,
    /// What the kernels need, on chips with vector memory.
    needs: Needs,
}

/// The graphs and peaks of the blocks of a program.
struct Blocks<'p, 'w, 'a> {
    builder: Builder<'p, 'w, 'a>,
    execution: &'w Execution,
    entry: FuncId,
    facts: ChipFacts,
    peaks: FxHashMap<BlockId, Peak>,
    /// What a kernel reads: items, and bytes of each; a field to reuse its memory.
    reads: Vec<(u32, u64)>,
}

/// The ops of the entry function of `program` in scheduled order, with the live bytes at each besides arguments. For the parameters
/// see [`buffer_assignment::lifetimes::compiled_peak`].
pub fn compiled_order(
    program: &Program,
    works: &mut Works<'_>,
    execution: &Execution,
    entry: FuncId,
    donated: &[(usize, ValueId)],
    target: Target<'_>,
) -> Vec<(OpId, u128)> {
    let Some(body) = program.func_body(entry).get() else { return Vec::new() };
    let mut blocks = Blocks::new(program, works, execution, entry, target);
    let (_, entry, taken) = blocks.of_entry(body, donated);
    blocks.over_time(body, &entry, &taken)
}

/// The entry function, whose outputs have buffers that the caller keeps.
struct Entry {
    graph: Graph,
    liveness: Liveness,
    num_arguments: usize,
    /// The items of results that take no donated buffer.
    outputs: Vec<u32>,
}

impl<'p, 'w, 'a> Blocks<'p, 'w, 'a> {
    /// The blocks of `program`, in one memory space; the peaks of all functions but `entry` are computed here. See
    /// [`Builder::new`].
    fn new(
        program: &'p Program,
        works: &'w mut Works<'a>,
        execution: &'w Execution,
        entry: FuncId,
        target: Target<'_>,
    ) -> Self {
        let functions: Vec<OpId> =
            execution.functions.iter().map(|&func| program.func_op(func)).collect();
        let builder = Builder::new(program, works, &functions, target);
        let facts = target.facts;
        let peaks = FxHashMap::default();
        let mut blocks = Self { builder, execution, entry, facts, peaks, reads: Vec::new() };
        blocks.find_peaks();
        blocks
    }
    /// Finds the peaks of all functions but the entry function.
    fn find_peaks(&mut self) {
        let program = self.builder.program;
        for &func in &self.execution.functions {
            if let Some(block) = program.func_body(func).get().filter(|_| func != self.entry) {
                let _ = self.peak_of(block);
            }
        }
    }
    /// The peak of `body`, the entry block; and the live bytes at each kernel besides arguments.
    fn of_entry(
        &mut self,
        body: BlockId,
        donated: &[(usize, ValueId)],
    ) -> (CompiledPeak, Entry, Vec<u128>) {
        let entry = self.entry(body, donated);
        let (graph, liveness) = (&entry.graph, &entry.liveness);
        let mut taken = Vec::with_capacity(liveness.order.len());
        let peak = self.peak(graph, liveness, &mut taken);
        let mut live: Vec<Live> = Vec::new();
        let mut outputs: u128 = 0;
        let as_live = |item: &Item| Live { value: item.value, bytes: item.bytes };
        live.extend(graph.items[..entry.num_arguments].iter().map(as_live));
        for &item in &entry.outputs {
            let item = &graph.items[item as usize];
            outputs = outputs.saturating_add(item.bytes);
            if !self.is_made_inside(graph, peak, item.made_by) {
                live.push(as_live(item));
            }
        }
        self.collect(graph, liveness, peak, &mut live);
        live.retain(|live| live.bytes > 0);
        let op = self.innermost(peak);
        for bytes in &mut taken {
            *bytes = bytes.saturating_add(outputs);
        }
        let bytes = peak.bytes.saturating_add(outputs);
        let inside = self.peaks.values().map(|peak| peak.needs.copies);
        let copies = inside.fold(liveness.needs.copies, AsyncCopies::and);
        let peak = CompiledPeak { bytes, op, live, holes: 0, copies };
        (peak, entry, taken)
    }
    fn peak_of(&mut self, block: BlockId) -> Peak {
        if let Some(&known) = self.peaks.get(&block) {
            return known;
        }
        let (graph, liveness) = self.liveness_of(block);
        let mut peak = self.peak(&graph, &liveness, &mut Vec::new());
        peak.needs = liveness.needs;
        self.peaks.insert(block, peak);
        peak
    }
    /// Whether `block` is the body or the condition of a loop.
    fn is_loop(&self, block: BlockId) -> bool {
        let program = self.builder.program;
        program.kind(program.block_parent_op(block)) == OpKind::While
    }
    /// The kernel graph of `block`, which is inside an op, and the values that it carries if it is in a loop: pairs of the index of
    /// a result and an item.
    fn graph_of(&mut self, block: BlockId) -> (Graph, Vec<(usize, u32)>) {
        let program = self.builder.program;
        let graph = self.builder.graph(block);
        // The body of a loop updates what it carries in place.
        let carried = if self.is_loop(block) { graph.returned.len() } else { 0 };
        let carried: Vec<(usize, u32)> = (0..carried).zip(0..).collect();
        let copies_initial = self.builder.layouts.compiler().fuses_by_priority();
        let graph = crate::compilers::xla_cpu::copy_insertion::in_place_updates::with_copies(
            program,
            graph,
            &carried,
            copies_initial,
        );
        (graph, carried)
    }
    fn liveness_of(&mut self, block: BlockId) -> (Graph, Liveness) {
        let (graph, carried) = self.graph_of(block);
        let mut always = Vec::new();
        if self.is_loop(block) {
            always = hoisted(&self.builder.storage.invariant, &graph);
        }
        let (program, compiler) = (self.builder.program, self.builder.layouts.compiler());
        let inside = self.needs_inside(&graph);
        let chip = (compiler, self.facts, &inside[..]);
        let context = (program, &mut *self.builder.works);
        let liveness = Liveness::inside(context, &graph, &carried, &always, chip);
        (graph, liveness)
    }
    /// For each kernel of `graph` what the blocks inside of it need; empty on chips without vector memory.
    fn needs_inside(&mut self, graph: &Graph) -> Vec<Needs> {
        if !self.builder.layouts.compiler().has_vector_memory() {
            return Vec::new();
        }
        let mut found = Vec::with_capacity(graph.kernels.len());
        for kernel in &graph.kernels {
            let mut needs = Needs::default();
            if kernel.is_op && self.has_blocks(kernel.op) {
                for block in self.blocks_inside(kernel.op) {
                    needs = needs.and(self.peak_of(block).needs);
                }
            }
            found.push(needs);
        }
        found
    }
    /// The peak of a block, including the blocks inside its ops; appends the live bytes at each position to `taken`.
    fn peak(&mut self, graph: &Graph, liveness: &Liveness, taken: &mut Vec<u128>) -> Peak {
        let program = self.builder.program;
        let mut peak = Peak::default();
        for (at, &kernel) in liveness.order.iter().enumerate() {
            let what = graph.kernels[kernel as usize];
            let has_blocks = what.is_op && self.has_blocks(what.op);
            let mut inside = if has_blocks { self.peak_inside(what.op) } else { Peak::default() };
            let mut now = liveness.taken[at].saturating_add(inside.bytes);
            if inside.inner.is_some() && program.kind(what.op) != OpKind::While {
                // The blocks inside make the results: their peak counts instead of these, where it is larger.
                let shared = self.shared_with(graph, liveness, kernel, inside);
                let shared =
                    shared.iter().fold(0, |bytes: u128, item| bytes.saturating_add(item.bytes));
                let made = made(graph, liveness, kernel).saturating_add(shared).min(inside.bytes);
                now = now.saturating_sub(made);
                if made == inside.bytes {
                    inside = Peak::default();
                }
            }
            taken.push(now);
            if now > peak.bytes || peak.op.is_none() {
                let (at, op) = (at as u32, Some(what.op));
                peak = Peak { bytes: now, at, op, inner: inside.inner, needs: Needs::default() };
            }
        }
        peak
    }
    /// The items that are live at the peak `inside` of the block in `kernel` and are returned as results of `kernel` whose buffers
    /// are counted elsewhere: those of a donated argument or of an output.
    fn shared_with(
        &mut self,
        graph: &Graph,
        liveness: &Liveness,
        kernel: u32,
        inside: Peak,
    ) -> Vec<Item> {
        let program = self.builder.program;
        let is_elsewhere =
            |&item: &usize| liveness.spans[item].is_none() && !liveness.is_output[item];
        let made = graph.makes(kernel).iter().map(|&item| item as usize).filter(is_elsewhere);
        let results: Vec<ValueId> = made.map(|item| graph.items[item].value).collect();
        let Some(block) = inside.inner.filter(|_| !results.is_empty()) else { return Vec::new() };
        let (graph_inside, within) = self.liveness_of(block);
        let op = graph.kernels[kernel as usize].op;
        let returned = program.op_results(op).zip(&graph_inside.returned);
        let returned = returned.filter(|(result, &item)| item != NONE && results.contains(result));
        let mut shared: Vec<u32> =
            returned.map(|(_, &item)| graph_inside.stored_as(item)).collect();
        shared.sort_unstable();
        shared.dedup();
        shared.retain(|&item| is_live(within.spans[item as usize], inside.at));
        shared.into_iter().map(|item| graph_inside.items[item as usize]).collect()
    }
    /// Whether `op` has blocks inside, or may have a callee.
    #[inline]
    fn has_blocks(&self, op: OpId) -> bool {
        self.execution.has_calls() || self.builder.program.num_regions(op) > 0
    }
    /// The blocks inside `op` that are executed, or the body of its callee.
    fn blocks_inside(&mut self, op: OpId) -> Vec<BlockId> {
        let program = self.builder.program;
        let callee = self.execution.callee(program, op).map(|callee| program.func_body(callee));
        let mut blocks: Vec<BlockId> = callee.into_iter().collect();
        if self.builder.works.movement(op) == Movement::Inside {
            blocks.extend(program.op_regions(op).flat_map(|region| program.region_blocks(region)));
        }
        blocks
    }
    /// The largest peak among the blocks inside `op`, or that of its callee.
    fn peak_inside(&mut self, op: OpId) -> Peak {
        let mut most = Peak::default();
        for block in self.blocks_inside(op) {
            let peak = self.peak_of(block);
            if peak.bytes > most.bytes {
                most = Peak { inner: Some(block), ..peak };
            }
        }
        most
    }
    fn innermost(&mut self, mut peak: Peak) -> Option<OpId> {
        while let Some(inner) = peak.inner {
            let deeper = self.peak_of(inner);
            if deeper.op.is_none() {
                break;
            }
            peak = deeper;
        }
        peak.op
    }
    /// Whether kernel `by` is the one at `peak`, and the blocks inside its op write its results.
    fn is_made_inside(&self, graph: &Graph, peak: Peak, by: u32) -> bool {
        let program = self.builder.program;
        let op = peak.op.filter(|&op| program.kind(op) != OpKind::While);
        let kernel = graph.kernels.get(by as usize);
        peak.inner.is_some() && kernel.is_some_and(|kernel| Some(kernel.op) == op)
    }
    /// Appends the values that are live at `peak` of the entry function and in the blocks inside, outermost first (iterative: calls
    /// may be deep). A value in a buffer that is counted for an outer block is not appended again.
    fn collect(
        &mut self,
        graph: &Graph,
        liveness: &Liveness,
        mut peak: Peak,
        live: &mut Vec<Live>,
    ) {
        let mut shared = self.collect_here(graph, liveness, peak, &[], live);
        while let Some(inner) = peak.inner {
            let (graph, liveness) = self.liveness_of(inner);
            peak = self.peak_of(inner);
            shared = self.collect_here(&graph, &liveness, peak, &shared, live);
        }
    }
    /// Appends the values that are live at `peak` of one block, except `shared`; returns those whose buffers the block inside
    /// shares with it.
    fn collect_here(
        &mut self,
        graph: &Graph,
        liveness: &Liveness,
        peak: Peak,
        shared: &[ValueId],
        live: &mut Vec<Live>,
    ) -> Vec<ValueId> {
        for (item, &span) in graph.items.iter().zip(&liveness.spans) {
            if is_live(span, peak.at)
                && !shared.contains(&item.value)
                && !self.is_made_inside(graph, peak, item.made_by)
            {
                live.push(Live { value: item.value, bytes: item.bytes });
            }
        }
        let Some(inner) = peak.inner else { return Vec::new() };
        if peak.op.is_some_and(|op| self.builder.program.kind(op) == OpKind::While) {
            return Vec::new();
        }
        let inside = Peak { inner: Some(inner), ..self.peak_of(inner) };
        let kernel = liveness.order[peak.at as usize];
        let shared = self.shared_with(graph, liveness, kernel, inside);
        shared.iter().map(|item| item.value).collect()
    }
}
