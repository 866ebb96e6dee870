//! The kernels of a program as rows: the ops of each, and the bytes that it reads and writes.

use crate::compilers::compilation::{Kept, Target};
use crate::compilers::xla_cpu::copy_insertion::reads_before_writes::{are_read_after, Write};
use crate::compilers::xla_cpu::fusion::instruction_fusion::splat;
use crate::compilers::xla_cpu::fusion::op_facts::Fact;
use crate::compilers::xla_cpu::kernels::builder::Builder;
use crate::compilers::xla_cpu::kernels::graph::{Graph, Kernel, Read, NONE};
use crate::compilers::xla_cpu::kernels::kernel_row::KernelRow;
use crate::compilers::xla_cpu::ragged_rows::Rows;
use crate::compilers::xla_cpu::Blocks;
use crate::compilers::xla_tpu::fused_outputs::fused_rows;
use crate::index::{BlockId, FuncId, ValueId};
use crate::ir::{OpKind, Program};
use crate::stablehlo::trips::trip_count;
use crate::work::cached::Works;
use crate::work::execution::Execution;
use crate::work::ops::Movement;

/// A model of a cache with LRU replacement.
struct Cache {
    size: u128,
    /// The bytes that were read and written so far.
    clock: u128,
    /// The clock at the last read or write of each item, by item.
    used: Vec<Option<u128>>,
}

impl Cache {
    /// An empty cache of `size` bytes.
    fn new(size: u128) -> Self {
        Self { size, clock: 0, used: Vec::new() }
    }
    /// Renames the items at the end of a loop's trip: argument `n` of the next trip is the `n`-th item of `returned`.
    fn next_trip(&mut self, returned: impl Iterator<Item = Option<u32>>) {
        let last = |item: Option<u32>| self.used.get(item? as usize).copied().flatten();
        let carried: Vec<Option<u128>> = returned.map(last).collect();
        for (argument, used) in carried.into_iter().enumerate() {
            if used.is_some() {
                self.used[argument] = used;
            }
        }
    }
    /// Records a read or write of `bytes` of `item`; returns whether they were in the cache.
    fn touch(&mut self, item: u32, bytes: u128) -> bool {
        if self.size == 0 {
            return bytes == 0;
        }
        let last = self.used[item as usize].replace(self.clock.saturating_add(bytes));
        let since = last.map(|last| self.clock.saturating_sub(last).saturating_add(bytes));
        self.clock = self.clock.saturating_add(bytes);
        since.is_some_and(|since| since <= self.size)
    }
}

/// The kernels of `program` for the compiler of `target`, block by block; for the parameters see [`super::buffer_assignment::lifetimes::compiled_peak`]. `counts_accessed`: whether to count what XLA's analysis counts.
pub fn kernel_rows(
    program: &Program,
    works: &mut Works<'_>,
    execution: &Execution,
    entry: FuncId,
    donated: &[(usize, ValueId)],
    target: Target<'_>,
    counts_accessed: bool,
) -> Vec<KernelRow> {
    let mut blocks = Blocks::new(program, works, execution, entry, target);
    blocks.builder.fused = Some(Vec::new());
    blocks.builder.uses = counts_accessed.then(Vec::new);
    // Vector memory has what it is told to have.
    let cached = if target.compiler.has_vector_memory() { 0 } else { target.facts.fast_bytes };
    let (mut rows, mut kernels) = (Vec::new(), None);
    for &func in execution.functions.iter().rev() {
        let Some(body) = program.func_body(func).get() else { continue };
        let mut open = vec![body];
        while let Some(block) = open.pop() {
            if execution.times(block) == 0 {
                continue;
            }
            let is_entry = func == entry && block == body;
            let (graph, donations) =
                if is_entry { blocks.entry_graph(block, donated) } else { blocks.graph_of(block) };
            blocks.add_rows(block, &graph, Cache::new(cached), &mut rows);
            let is_carried = blocks.is_loop(block) && !blocks.is_counted(block);
            if target.compiler.fuses_by_priority() && is_carried {
                blocks.add_carried(block, &graph, &mut rows);
            }
            if is_entry {
                kernels = Some((graph, donations));
            }
            for op in program.block_ops(block) {
                if blocks.builder.works.movement(op) == Movement::Inside {
                    let regions = program.op_regions(op);
                    open.extend(regions.flat_map(|region| program.region_blocks(region)));
                }
            }
        }
    }
    if let Some(entry) = kernels.filter(|_| !counts_accessed) {
        let Builder { layouts, storage, .. } = blocks.builder;
        let kept = Kept { layouts, storage, entry };
        target.known.keep((target.compiler, target.space), kept);
    }
    rows
}

impl Blocks<'_, '_, '_> {
    /// Adds the kernels of `graph`, which is that of `block`.
    fn add_rows(
        &mut self,
        block: BlockId,
        graph: &Graph,
        mut cache: Cache,
        rows: &mut Vec<KernelRow>,
    ) {
        let fused = self.builder.fused.as_mut().map(std::mem::take).unwrap_or_default();
        let mut uses = self.builder.uses.as_mut().map(std::mem::take);
        if let Some(uses) = &mut uses {
            uses.sort_unstable();
        }
        let num_built = graph.kernels.iter().filter(|kernel| kernel.built != NONE).count();
        let fused_into = Rows::of(num_built, &fused);
        if cache.size > 0 {
            cache.used = vec![None; graph.items.len()];
        }
        let mut found: Vec<(u32, KernelRow)> = Vec::with_capacity(graph.kernels.len());
        let runs = if self.is_counted(block) { 0 } else { self.execution.times(block) };
        let numbered = || graph.kernels.iter().zip(0..);
        if runs > 1 && self.is_loop(block) {
            for (kernel, at) in numbered() {
                if self.runs(graph, kernel, at) {
                    self.traffic(graph, (kernel, at), &mut cache);
                }
            }
            let stored = |&item: &u32| (item != NONE).then(|| graph.stored_as(item));
            cache.next_trip(graph.returned.iter().map(stored));
        }
        for (kernel, at) in numbered() {
            if !self.runs(graph, kernel, at) {
                continue;
            }
            let Traffic { read, cached, written } = self.traffic(graph, (kernel, at), &mut cache);
            let accessed = match &uses {
                Some(uses) if kernel.built != NONE => {
                    self.builder.bytes_accessed(graph, (kernel, at), uses)
                }
                _ => read.saturating_add(written),
            };
            let fused = match kernel.built {
                NONE => Vec::new(),
                built => fused_into.row(built).to_vec(),
            };
            let is_copy = !kernel.is_op;
            let op = kernel.op;
            let mut elements = |item: u32| {
                self.builder.works.tensors.of(graph.items[item as usize].value).elements
            };
            let sizes = graph.reads(at).iter().map(|read| elements(read.item));
            let smallest = sizes.filter(|&size| size > 1).min().unwrap_or_default();
            let row =
                KernelRow { op, fused, is_copy, read, cached, written, smallest, accessed, runs };
            found.push((at, row));
        }
        if self.builder.layouts.compiler().has_vector_memory() {
            let Builder { program, works, storage, .. } = &mut self.builder;
            rows.extend(fused_rows((program, works), &storage.facts, graph, found));
        } else {
            rows.extend(found.into_iter().map(|(_, row)| row));
        }
    }
    /// Whether `block` is the condition of a loop whose trips are known, which XLA for GPUs counts on the host.
    ///
    /// Source: XLA's `WhileThunk`.
    fn is_counted(&self, block: BlockId) -> bool {
        let program = self.builder.program;
        let op = program.block_parent_op(block);
        let condition = program.op_regions(op).next();
        self.builder.layouts.compiler().fuses_by_priority()
            && program.kind(op) == OpKind::While
            && condition.is_some_and(|region| program.region_blocks(region).any(|it| it == block))
            && trip_count(program, op).is_some()
    }
    /// Adds the copies of what a loop carries: a value that is computed while the one of the trip before is still read is copied into
    /// the buffer of that at the end of the trip.
    ///
    /// Source: XLA's `CopyInsertion`.
    fn add_carried(&mut self, block: BlockId, graph: &Graph, rows: &mut Vec<KernelRow>) {
        let mut copied: Vec<u32> = Vec::new();
        let mut writes: Vec<Write> = Vec::new();
        for (&returned, argument) in graph.returned.iter().zip(0..) {
            if returned == NONE {
                continue;
            }
            let made = graph.stored_as(returned);
            let mut first = made;
            while graph.items[first as usize].over != NONE {
                first = graph.stored_as(graph.items[first as usize].over);
            }
            if first == argument {
                continue;
            }
            match graph.items[made as usize].made_by {
                NONE => copied.push(made),
                kernel => writes.push(Write { kernel, over: argument }),
            }
        }
        let bytes = |item: u32| graph.items[item as usize].bytes;
        let is_in_place = |at: usize, read: Read| {
            let kernel = writes[at].kernel;
            let is_as_large = |&made: &u32| bytes(made) == bytes(graph.stored_as(read.item));
            graph.kernels[kernel as usize].is_elementwise
                && read.is_elementwise
                && graph.makes(kernel).iter().any(is_as_large)
        };
        // Others are read before the write, by an edge of control.
        let are_after = are_read_after(graph, &writes, is_in_place);
        let after = writes.iter().zip(are_after).filter(|(_, is_after)| *is_after);
        // What takes the place of another argument is copied before that is overwritten.
        let after: Vec<u32> = after.map(|(write, _)| write.over).collect();
        let rotated = copied.clone();
        copied.extend(after.into_iter().filter(|over| !rotated.contains(over)));
        let runs = self.execution.times(block);
        let op = self.builder.program.last_op(block);
        for item in copied.into_iter().filter(|&item| bytes(item) > 0) {
            let bytes = bytes(item);
            rows.push(KernelRow {
                op,
                fused: Vec::new(),
                is_copy: true,
                read: bytes,
                cached: 0,
                written: bytes,
                smallest: 0,
                accessed: bytes.saturating_mul(2),
                runs,
            });
        }
    }
    /// Whether `kernel`, number `at`, is executed: not a bitcast, and not a loop, a branch or a call, which stand for the kernels
    /// inside.
    fn runs(&mut self, graph: &Graph, kernel: &Kernel, at: u32) -> bool {
        let has_inside = kernel.is_op
            && (self.builder.works.movement(kernel.op) == Movement::Inside
                || matches!(
                    self.builder.program.kind(kernel.op),
                    OpKind::While | OpKind::Case | OpKind::If
                ));
        // Constants, and which device it is, are known before the program runs.
        let is_known = self.builder.storage.facts.has(kernel.op, Fact::CONSTANT)
            || self.builder.program.num_operands(kernel.op) == 0 && !kernel.is_op;
        let makes = graph.makes(at);
        let is_name = !makes.is_empty()
            && makes.iter().all(|&item| graph.items[item as usize].name_of != NONE);
        !(has_inside || is_name || is_known || kernel.is_name)
    }
    /// Whether `kernel` is the copy of `item`, all of whose elements are the same: it writes these anew.
    fn is_splat_copy(&self, graph: &Graph, kernel: &Kernel, item: u32) -> bool {
        let program = self.builder.program;
        let made_by = program.defining_op(graph.items[item as usize].value);
        kernel.built == NONE
            && self.builder.layouts.compiler().fuses_by_priority()
            && made_by.is_some_and(|op| splat(program, program.result(op, 0)).is_some())
    }
    /// The bytes that `kernel`, number `at`, reads and writes. An in-place update counts only the updated bytes of its buffer.
    fn traffic(
        &mut self,
        graph: &Graph,
        (kernel, at): (&Kernel, u32),
        cache: &mut Cache,
    ) -> Traffic {
        let program = self.builder.program;
        let is_update = kernel.is_op && self.builder.works.movement(kernel.op) == Movement::Update;
        let made = if is_update { graph.makes(at) } else { &[] };
        let over = made.iter().map(|&item| graph.items[item as usize].over);
        let mut over = over.filter(|&item| item != NONE);
        // What several ops of a kernel read is read once.
        let mut reads = std::mem::take(&mut self.reads);
        reads.clear();
        for one in graph.reads(at) {
            // Parts of merged dots are read each by itself.
            let part = self.builder.part_of_merged(graph, one.item);
            let part = part.map(|(bytes, _)| u64::try_from(bytes).unwrap_or(u64::MAX));
            let item = if part.is_some() { one.item } else { graph.stored_as(one.item) };
            reads.push((item, one.bytes.min(part.unwrap_or(u64::MAX))));
        }
        reads.sort_unstable_by_key(|&(item, bytes)| (item, std::cmp::Reverse(bytes)));
        reads.dedup_by_key(|one| one.0);
        let is_updated = |item| over.clone().any(|other| graph.stored_as(other) == item);
        let mut traffic = Traffic::default();
        for &(item, bytes) in &reads {
            if is_update && is_updated(item) {
                continue;
            }
            let whole = graph.items[graph.stored_as(item) as usize].bytes;
            let bytes = whole.min(bytes.into());
            let bytes = if self.is_splat_copy(graph, kernel, item) { 0 } else { bytes };
            traffic.read = traffic.read.saturating_add(bytes);
            // Of what is sliced or gathered it may be another part each time.
            if cache.touch(item, bytes) && bytes == whole {
                traffic.cached = traffic.cached.saturating_add(bytes);
            }
        }
        let is_written_over = over.next().is_some();
        self.reads = reads;
        // Indices are between what is updated and the updates.
        let is_scatter = program.kind(kernel.op) == OpKind::Scatter;
        let updates = if is_scatter { program.num_operands(kernel.op) / 2 + 1 } else { 1 };
        let count = if is_scatter { updates - 1 } else { 1 };
        let updates = program.operands(kernel.op).skip(updates).take(count);
        let tensors = &mut self.builder.works.tensors;
        let update =
            is_written_over.then(|| updates.map(|update| tensors.bytes(update)).sum::<u128>());
        if is_scatter {
            // What is there is combined with the updates.
            traffic.read = traffic.read.saturating_add(update.unwrap_or_default());
        }
        for &item in graph.makes(at) {
            let bytes = update.unwrap_or(graph.items[item as usize].bytes);
            cache.touch(graph.stored_as(item), bytes);
            traffic.written = update.unwrap_or_else(|| traffic.written.saturating_add(bytes));
        }
        // Without a cache a row that is taken several times is read as often.
        let is_cached = self.builder.layouts.compiler().gathers_computed();
        if !is_cached && program.kind(kernel.op) == OpKind::Gather {
            traffic.read = traffic.read.max(traffic.written);
        }
        traffic
    }
}

/// The bytes that a kernel reads, those of them that are in the cache, and those that it writes.
#[derive(Clone, Copy, Default)]
struct Traffic {
    read: u128,
    cached: u128,
    written: u128,
}
