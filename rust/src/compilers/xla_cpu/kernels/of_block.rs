//! The kernel graph of a block, op by op.

use crate::compilers::xla_cpu::breadth_first_scheduler::breadth_first;
use crate::compilers::xla_cpu::fusion::op_facts::Fact;
use crate::compilers::xla_cpu::kernels::builder::Builder;
use crate::compilers::xla_cpu::kernels::collective_sets::{sizes_of, SetKernels};
use crate::compilers::xla_cpu::kernels::graph::{Graph, Item, Kernel, Read, NONE};
use crate::compilers::xla_cpu::passes::collective_combiner::{combined, combined_kernels};
use crate::index::{BlockId, Id, OpId, ValueId};
use crate::ir::{OpKind, OpTraits};
use rustc_hash::FxHashMap;

impl Builder<'_, '_, '_> {
    /// The kernel graph of `block`.
    pub fn graph(&mut self, block: BlockId) -> Graph {
        let program = self.program;
        let ops: Vec<OpId> = program.block_ops(block).collect();
        let compiler = self.layouts.compiler();
        if self.joined.is_empty() {
            let of = (&self.storage.facts, compiler, self.combined_bytes);
            let sets = combined(program, self.works, of, &ops);
            return self.with_sets(block, &ops, &sets);
        }
        let mut graph = self.with_sets(block, &ops, &FxHashMap::default());
        let of = (&self.storage.facts, compiler, self.combined_bytes);
        let sets = combined_kernels(program, self.works, of, &graph);
        if !sets.is_empty() {
            graph = self.with_sets(block, &ops, &sets);
        }
        if breadth_first(&graph).len() == graph.kernels.len() {
            return graph;
        }
        // Some kernels with several results wait for each other: here they are apart.
        let joined = std::mem::take(&mut self.joined);
        let graph = self.graph(block);
        self.joined = joined;
        graph
    }
    /// The kernel graph of `block`, which has these ops; `sets` says which collectives are combined.
    fn with_sets(&mut self, block: BlockId, ops: &[OpId], sets: &FxHashMap<OpId, u32>) -> Graph {
        let program = self.program;
        if let Some(fused) = &mut self.fused {
            fused.clear();
        }
        if let Some(uses) = &mut self.uses {
            uses.clear();
        }
        for value in program.block_args(block) {
            let bytes = self.bytes(value);
            self.make(value, bytes, NONE);
        }
        self.graph.kernels.reserve(ops.len());
        self.graph.items.reserve(ops.len());
        self.reads.reserve(2 * ops.len());
        let sizes = sizes_of(sets);
        let mut kernels: FxHashMap<u32, SetKernels> = FxHashMap::default();
        for &op in ops {
            if program.has_traits(op, OpTraits::TERMINATOR) {
                let returned = program.operands(op).map(|value| self.item_in_own_dims(value));
                self.graph.returned = returned.collect();
                continue;
            }
            if self.storage.equal.is_repeated(program, op) {
                continue;
            }
            if self.storage.facts.has(op, Fact::NAME) {
                self.add_name(op);
                continue;
            }
            let is_made =
                |value: ValueId| self.storage.is_written(value) || self.storage.has_tail(value);
            let is_unmade = program.num_results(op) > 0 && !program.op_results(op).any(is_made);
            if is_unmade && program.kind(op) != OpKind::While {
                if self.storage.is_computed_in_sum(program, op) {
                    let copies = self.copies_for(op);
                    self.operand_copies = Vec::new();
                    self.taken_in.insert(op, copies);
                }
                continue;
            }
            match sets.get(&op) {
                Some(set) if self.is_contiguous(op, sizes[set]) => {
                    let first = || self.flat_set(op);
                    let mut known = kernels.get(set).copied().unwrap_or_else(first);
                    self.add_to_flat_set(op, &mut known);
                    kernels.insert(*set, known);
                }
                Some(&set) => self.add_to_set(op, kernels.entry(set).or_default()),
                None => self.add_op(op),
            }
        }
        self.finish()
    }
    fn finish(&mut self) -> Graph {
        if !self.kernel_of_joined.is_empty() {
            self.merge_elementwise_reads();
        }
        self.reduced.clear();
        let Graph { mut kernels, ops, items, returned, .. } = std::mem::take(&mut self.graph);
        let mut reads = std::mem::take(&mut self.reads);
        for item in items.iter().filter(|item| item.made_by != NONE) {
            if let Some(seconds) = self.seconds.get(&item.value) {
                let micros = &mut kernels[item.made_by as usize].micros;
                *micros = micros.max((seconds * 1e6) as f32);
            }
        }
        for (_, read) in reads.iter_mut().filter(|(_, read)| self.flat.contains(&read.item)) {
            read.view |= 1;
        }
        self.flat.clear();
        if !self.kernel_of_joined.is_empty() {
            // One result of a kernel may be computed of another.
            reads.retain(|(kernel, read)| items[read.item as usize].made_by != *kernel);
        }
        if !self.in_products.is_empty() {
            drop_unread_names(&mut kernels, &items, &returned, &mut reads);
        }
        let graph = Graph::new(kernels, ops, items, returned, &reads);
        for item in &graph.items {
            self.items[item.value.index()] = NONE;
        }
        self.copies.clear();
        self.reshaped_results.clear();
        self.taken_in.clear();
        self.places.clear();
        self.kernel_of_joined.clear();
        self.concatenations.clear();
        self.merged_results.clear();
        self.transposed.clear();
        graph
    }
}

/// Drops what kernels read that only give it another name, which nothing reads any more, since products read it as it is.
fn drop_unread_names(
    kernels: &mut [Kernel],
    items: &[Item],
    returned: &[u32],
    reads: &mut Vec<(u32, Read)>,
) {
    let maker = |item: u32| items.get(item as usize).map_or(usize::MAX, |it| it.made_by as usize);
    let (mut num_readers, mut named) = (vec![0_u32; kernels.len()], vec![NONE; kernels.len()]);
    let mut makes_names = vec![false; kernels.len()];
    for item in items.iter().filter(|item| item.made_by != NONE) {
        makes_names[item.made_by as usize] = item.name_of != NONE;
    }
    let returned = returned.iter().filter(|&&item| item != NONE);
    for item in reads.iter().map(|(_, read)| read.item).chain(returned.copied()) {
        if let Some(count) = num_readers.get_mut(maker(item)) {
            *count += 1;
        }
    }
    for (at, read) in &*reads {
        // What names several is left as it is.
        let is_first = std::mem::replace(&mut named[*at as usize], read.item) == NONE;
        makes_names[*at as usize] &= is_first;
    }
    let mut is_dropped = vec![false; kernels.len()];
    for at in (0..kernels.len()).rev().filter(|&at| makes_names[at]) {
        let mut unread = at;
        while makes_names[unread] && num_readers[unread] == 0 && !is_dropped[unread] {
            (kernels[unread].is_name, is_dropped[unread]) = (true, true);
            let by = maker(named[unread]);
            let Some(count) = num_readers.get_mut(by) else { break };
            *count -= 1;
            unread = by;
        }
    }
    if is_dropped.contains(&true) {
        reads.retain(|&(at, _)| !is_dropped[at as usize]);
    }
}
