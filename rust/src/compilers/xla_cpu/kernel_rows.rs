//! The kernels of a program as rows: the ops of each, and the bytes that it reads and writes.

use crate::compilers::target::Compiler;
use crate::compilers::xla_cpu::fusion::op_facts::Fact;
use crate::compilers::xla_cpu::kernels::graph::{Graph, Kernel, NONE};
use crate::compilers::xla_cpu::Blocks;
use crate::index::{BlockId, FuncId, OpId, ValueId};
use crate::ir::{OpKind, Program};
use crate::work::cached::Works;
use crate::work::execution::Execution;
use crate::work::ops::Movement;
use crate::work::spaces::Space;
use rustc_hash::FxHashMap;

/// A kernel, or one that is started as often as it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRow {
    /// The op whose result it writes; of a copy the op that it is made for.
    pub op: OpId,
    /// The ops that it computes besides that one.
    pub fused: Vec<OpId>,
    /// Whether it copies something for `op`, and does not compute that.
    pub is_copy: bool,
    /// Bytes that each run reads.
    pub read: u128,
    /// Bytes that each run writes.
    pub written: u128,
    /// The number of runs.
    pub runs: u128,
}

/// The kernels of `program` as `compiler` has them, block by block; arguments are those of [`super::compiled_peak`].
pub fn kernel_rows(
    program: &Program,
    works: &mut Works<'_>,
    execution: &Execution,
    entry: FuncId,
    donated: &[(usize, ValueId)],
    compiler: Compiler,
) -> Vec<KernelRow> {
    let target = (compiler, Some(Space::Device));
    let mut blocks = Blocks::new(program, works, execution, entry, target);
    blocks.builder.fused = Some(Vec::new());
    let mut rows = Vec::new();
    for &func in execution.functions.iter().rev() {
        let Some(body) = program.func_body(func).get() else { continue };
        let mut open = vec![body];
        while let Some(block) = open.pop() {
            if execution.times(block) == 0 {
                continue;
            }
            let graph = if func == entry && block == body {
                blocks.entry_graph(block, donated).0
            } else {
                blocks.graph_of(block).0
            };
            blocks.add_rows(block, &graph, &mut rows);
            for op in program.block_ops(block) {
                if blocks.builder.works.movement(op) == Movement::Inside {
                    let regions = program.op_regions(op);
                    open.extend(regions.flat_map(|region| program.region_blocks(region)));
                }
            }
        }
    }
    rows
}

impl Blocks<'_, '_, '_> {
    /// Adds the kernels of `graph`, that of `block`.
    fn add_rows(&mut self, block: BlockId, graph: &Graph, rows: &mut Vec<KernelRow>) {
        let fused = self.builder.fused.as_mut().map(std::mem::take).unwrap_or_default();
        let mut fused_into: FxHashMap<u32, Vec<OpId>> = FxHashMap::default();
        for (kernel, op) in fused {
            fused_into.entry(kernel).or_default().push(op);
        }
        let runs = self.execution.times(block);
        for (kernel, at) in graph.kernels.iter().zip(0..) {
            if !self.runs(graph, kernel, at) {
                continue;
            }
            let (read, written) = self.traffic(graph, kernel, at);
            let fused = fused_into.remove(&kernel.built).unwrap_or_default();
            let is_copy = !kernel.is_op;
            rows.push(KernelRow { op: kernel.op, fused, is_copy, read, written, runs });
        }
    }
    /// Whether `kernel`, number `at`, is one that runs: not a name, a loop, a branch or a call, whose kernels are those inside.
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
    /// The bytes that `kernel`, number `at`, reads and writes. What is updated in place is read and written only where the update is.
    fn traffic(&mut self, graph: &Graph, kernel: &Kernel, at: u32) -> (u128, u128) {
        let program = self.builder.program;
        let is_update = kernel.is_op && self.builder.works.movement(kernel.op) == Movement::Update;
        let over = graph.makes(at).iter().map(|&item| graph.items[item as usize].over);
        let over: Vec<u32> = over.filter(|&item| is_update && item != NONE).collect();
        // What several ops of a kernel read is read once.
        let reads = graph.reads(at).iter().map(|one| (graph.stored_as(one.item), one.bytes));
        let mut reads: Vec<(u32, u64)> = reads.collect();
        reads.sort_unstable_by_key(|&(item, bytes)| (item, std::cmp::Reverse(bytes)));
        reads.dedup_by_key(|one| one.0);
        let is_updated = |item| over.iter().any(|&other| graph.stored_as(other) == item);
        let read = reads.into_iter().filter(|&(item, _)| !is_updated(item));
        let read = read.map(|(item, bytes)| graph.items[item as usize].bytes.min(bytes.into()));
        let read = read.fold(0, u128::saturating_add);
        let update = program.operands(kernel.op).nth(1).filter(|_| !over.is_empty());
        let made = graph.makes(at).iter().map(|&item| graph.items[item as usize].bytes);
        let written = update.map_or_else(
            || made.fold(0, u128::saturating_add),
            |update| self.builder.works.tensors.bytes(update),
        );
        (read, written)
    }
}
