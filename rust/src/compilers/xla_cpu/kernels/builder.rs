//! Builds the kernel graph of a block from its ops.

use crate::compilers::accelerator::fusion::is_only_read;
use crate::compilers::compilation::{EntryKernels, Target};
use crate::compilers::xla_cpu::fusion::materialization::Storage;
use crate::compilers::xla_cpu::fusion::op_facts::Fact;
use crate::compilers::xla_cpu::kernels::graph::{Graph, Item, Kernel, Read, Use, NONE};
use crate::compilers::xla_cpu::kernels::stored_values::stored;
use crate::compilers::xla_cpu::layout_assignment::dim_orders::DimOrder;
use crate::compilers::xla_cpu::layout_assignment::operand_copies::Layouts;
use crate::compilers::xla_cpu::passes::conditional_simplifier;
use crate::compilers::xla_cpu::passes::conditional_simplifier::Alike;
use crate::compilers::xla_cpu::passes::tree_reduction_rewriter::after_first_step;
use crate::compilers::xla_gpu::priority_fusion::TakenIn;
use crate::compilers::xla_tpu::convolution_layouts::ConvolutionLayouts;
use crate::compilers::xla_tpu::multi_output_fusion::is_reduced;
use crate::compilers::xla_tpu::narrowed_values::Narrowed;
use crate::compilers::xla_tpu::tiles::{narrowed, stored_bytes, tiled_bytes};
use crate::index::{BlockId, Id, OpId, TypeId, ValueId};
use crate::ir::{OpKind, Program, ValueDef};
use crate::work::cached::Works;
use crate::work::ops::Movement;
use crate::work::spaces::Space;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// A value that a walk has yet to visit.
#[derive(Clone, Copy)]
pub(in crate::compilers::xla_cpu) struct Visit {
    pub value: ValueId,
    /// The op that reads it, and the index of the operand; [`OpId::NONE`] if that is a copy.
    pub user: (OpId, u32),
    /// Whether each element is needed only for the element of the kernel's result at its place.
    pub is_elementwise: bool,
    /// Whether a reduction of a library needs it.
    pub is_sum: bool,
    /// The most bytes of it that are needed.
    pub bytes: u64,
}

/// The inputs from which kernel graphs are built, and the state while one is built.
pub struct Builder<'p, 'w, 'a> {
    pub program: &'p Program,
    pub works: &'w mut Works<'a>,
    pub layouts: Layouts,
    pub storage: Storage,
    /// The most bytes of combined collectives; `None` if there is no threshold.
    pub(in crate::compilers::xla_cpu) combined_bytes: Option<u128>,
    /// The memory of which there are items; what is in the other one takes no bytes. `None` where there is but one.
    pub(in crate::compilers::xla_cpu) space: Option<Space>,
    /// The block of the entry function.
    entry_block: Option<BlockId>,
    /// The item of each value, while its block is built.
    pub(in crate::compilers::xla_cpu) items: Vec<u32>,
    /// The last walk that visited a value, and the place of the item among its reads.
    pub(in crate::compilers::xla_cpu) stamps: Vec<(u32, u32)>,
    pub(in crate::compilers::xla_cpu) num_walks: u32,
    pub(in crate::compilers::xla_cpu) copies: FxHashMap<(ValueId, DimOrder), u32>,
    /// The places of the elements of arrays, by type; see [`crate::compilers::xla_cpu::passes::select_and_scatter_expander`].
    pub(in crate::compilers::xla_cpu) places: FxHashMap<TypeId, Vec<u32>>,
    /// The other names of results of products in the dims that these have; see [`crate::compilers::xla_cpu::passes::dot_decomposer`].
    pub(in crate::compilers::xla_cpu) reshaped_results: FxHashMap<ValueId, u32>,
    /// The copies of the operands of products that reductions take in.
    pub(in crate::compilers::xla_cpu) taken_in: FxHashMap<OpId, Vec<u32>>,
    /// What products compute of their operands themselves.
    pub(in crate::compilers::xla_cpu) in_products: TakenIn,
    /// Seconds of the kernels that compute values, on GPUs.
    pub(in crate::compilers::xla_cpu) seconds: FxHashMap<ValueId, f64>,
    /// Items that hold arrays one after the other.
    pub(in crate::compilers::xla_cpu) flat: FxHashSet<u32>,
    /// For groups of merged dots the items of their concatenated operands, and of their results.
    pub(in crate::compilers::xla_cpu) concatenations: FxHashMap<u32, u32>,
    pub(in crate::compilers::xla_cpu) merged_results: FxHashMap<u32, u32>,
    /// The transposed operands of updates; see [`super::slice_updates`].
    pub(in crate::compilers::xla_cpu) transposed: FxHashMap<ValueId, u32>,
    pub(in crate::compilers::xla_cpu) reads: Vec<(u32, Read)>,
    /// The kernels of reductions, and which of these reads are theirs.
    pub(in crate::compilers::xla_cpu) reduced: Vec<(u32, Range<usize>)>,
    /// The values that a walk has yet to visit, and the copies of the operands of an op; fields to reuse their memory.
    pub(in crate::compilers::xla_cpu) stack: Vec<Visit>,
    pub(in crate::compilers::xla_cpu) operand_copies: Vec<u32>,
    /// The values that are stored as `bf16`.
    pub(in crate::compilers::xla_cpu) narrowed: Narrowed<'p>,
    /// The layouts of what convolutions read and write, in tiles.
    convolutions: ConvolutionLayouts,
    /// The values that share a kernel, as numbered sets; and the kernel of each in the block.
    pub(in crate::compilers::xla_cpu) joined: FxHashMap<ValueId, u32>,
    pub(in crate::compilers::xla_cpu) kernel_of_joined: FxHashMap<u32, u32>,
    /// The ops that are computed in each kernel besides its own, if they are asked for.
    pub(in crate::compilers::xla_cpu) fused: Option<Vec<(u32, OpId)>>,
    /// The ops in kernels that read what is in memory, if those are asked for.
    pub(in crate::compilers::xla_cpu) uses: Option<Vec<Use>>,
    pub(in crate::compilers::xla_cpu) graph: Graph,
    /// The kernels of the entry function, if they are known.
    pub(in crate::compilers::xla_cpu) entry: Option<EntryKernels>,
}

impl<'p, 'w, 'a> Builder<'p, 'w, 'a> {
    /// For the blocks of `functions`, given by their ops, as the compiler of `target` has them.
    pub fn new(
        program: &'p Program,
        works: &'w mut Works<'a>,
        functions: &[OpId],
        Target { compiler, space, known, facts }: Target<'_>,
    ) -> Self {
        let (layouts, storage, entry) = if let Some(kept) = known.take((compiler, space)) {
            (kept.layouts, kept.storage, Some(kept.entry))
        } else {
            let (layouts, storage) =
                stored(program, works, functions, (compiler, known, facts.lanes));
            (layouts, storage, None)
        };
        let (mut joined, mut in_products) = (FxHashMap::default(), TakenIn::default());
        let mut seconds = FxHashMap::default();
        if let Some(fused) = known.fused.get().filter(|_| compiler.fuses_by_priority()) {
            in_products.clone_from(&fused.taken_in);
            seconds.clone_from(&fused.seconds);
            let dots = layouts.merged.groups.iter();
            let dots = dots.map(|dots| dots.iter().map(|&op| program.result(op, 0)).collect());
            let sets = fused.joined.iter().cloned().chain(dots);
            for (set, values) in (0..).zip(sets) {
                joined.extend(Vec::into_iter(values).map(|value: ValueId| (value, set)));
            }
        }
        let narrowed = Narrowed::new(program, works, &storage.equal, functions, compiler);
        let convolutions = ConvolutionLayouts::new(program, works, functions, compiler);
        let count = program.num_value_ids();
        Self {
            program,
            works,
            layouts,
            storage,
            combined_bytes: compiler
                .combined_bytes()
                .map(|own| facts.combined_bytes.map_or(own, |most| own.min(most))),
            space,
            entry_block: program.entry_function().and_then(|func| program.func_body(func).get()),
            items: vec![NONE; count],
            stamps: vec![(0, 0); count],
            num_walks: 0,
            copies: FxHashMap::default(),
            places: FxHashMap::default(),
            reshaped_results: FxHashMap::default(),
            taken_in: FxHashMap::default(),
            in_products,
            seconds,
            flat: FxHashSet::default(),
            concatenations: FxHashMap::default(),
            merged_results: FxHashMap::default(),
            transposed: FxHashMap::default(),
            reads: Vec::new(),
            reduced: Vec::new(),
            stack: Vec::new(),
            operand_copies: Vec::new(),
            narrowed,
            convolutions,
            joined,
            kernel_of_joined: FxHashMap::default(),
            fused: None,
            uses: None,
            graph: Graph::default(),
            entry,
        }
    }
    /// The item of `value`; [`NONE`] if it has none in this block.
    pub(in crate::compilers::xla_cpu) fn item(&self, value: ValueId) -> u32 {
        self.items[self.storage.equal.first(value).index()]
    }
    /// The item of `value`, or of what it is another name of, if the kernels that read it take that name in.
    fn item_under(&self, mut value: ValueId) -> u32 {
        while self.item(value) == NONE {
            let named = self.program.defining_op(value);
            let Some(op) = named.filter(|&op| self.storage.facts.has(op, Fact::NAME)) else {
                break;
            };
            value = self.program.operand(op, 0);
        }
        self.item(value)
    }
    /// Whether `value` is an argument of the entry function.
    fn is_argument_of_entry(&self, value: ValueId) -> bool {
        matches!(self.program.def(value), ValueDef::Arg(block) if self.entry_block == Some(block))
    }
    /// The bytes that `value` takes in memory.
    pub(in crate::compilers::xla_cpu) fn bytes(&mut self, value: ValueId) -> u128 {
        let is_argument = self.is_argument_of_entry(value);
        let tensors = &mut self.works.tensors;
        if self.narrowed.has(tensors, value) {
            let tensor = narrowed(tensors.of(value));
            let laid_out = self.convolutions.bytes(&tensor);
            return laid_out.unwrap_or_else(|| tiled_bytes(&tensor, &tensor));
        }
        match self.convolutions.bytes(tensors.of(value)) {
            Some(bytes) if !is_argument => bytes,
            _ => stored_bytes(tensors, value, self.layouts.compiler()),
        }
    }
    pub(in crate::compilers::xla_cpu) fn make(
        &mut self,
        value: ValueId,
        bytes: u128,
        made_by: u32,
    ) -> u32 {
        let at = self.graph.items.len() as u32;
        let bytes = self.in_space(value, bytes);
        self.graph.items.push(Item { value, bytes, made_by, name_of: NONE, over: NONE });
        self.items[value.index()] = at;
        at
    }
    /// Makes `value` another name of `item`, as soon as `kernel` has run.
    pub(in crate::compilers::xla_cpu) fn name(&mut self, value: ValueId, item: u32, kernel: u32) {
        let name_of = self.graph.stored_as(item);
        let at = self.graph.items.len() as u32;
        self.graph.items.push(Item { value, bytes: 0, made_by: kernel, name_of, over: NONE });
        self.items[value.index()] = at;
    }
    pub(in crate::compilers::xla_cpu) fn kernel(
        &mut self,
        op: OpId,
        is_elementwise: bool,
        is_op: bool,
    ) -> u32 {
        let built = self.graph.kernels.len() as u32;
        let kernel = Kernel { is_elementwise, is_op, built, ..Kernel::copy_for(op) };
        self.graph.kernels.push(kernel);
        built
    }
    /// A reshape and the like is something that runs only if what reads it does not fuse.
    pub(in crate::compilers::xla_cpu) fn add_name(&mut self, op: OpId) {
        let (value, operand) = (self.program.result(op, 0), self.program.operand(op, 0));
        let item = self.item(operand);
        if self.storage.is_read_whole(value) && item != NONE {
            if let Some(update) = self.update_of(operand, self.storage.uses(value)) {
                let _ = self.update_again(op, update, value);
                return;
            }
            let operand = self.storage.equal.first(operand);
            if self.storage.is_reshaped_anew(operand) {
                let copy = self.reshaped(op, operand);
                let kernel = self.kernel(op, false, false);
                self.reads.push((kernel, Read::whole(copy)));
                self.name(value, copy, kernel);
                return;
            }
            let kernel = self.kernel(op, false, false);
            self.reads.push((kernel, Read::whole(item)));
            self.name(value, item, kernel);
        }
    }
    pub(in crate::compilers::xla_cpu) fn add_op(&mut self, op: OpId) {
        let program = self.program;
        if self.layouts.is_on_host() && program.kind(op) == OpKind::SelectAndScatter {
            self.add_pool(op);
            return;
        }
        let movement = self.works.movement(op);
        let mut copies = self.copies_for(op);
        let transposed = self.transposed_first(op);
        copies.extend(transposed);
        let is_elementwise = self.is_in_place(op) && !self.is_over(op)
            || movement == Movement::Pointwise
                && !(self.layouts.compiler().fuses_products()
                    && is_reduced(program, &self.storage, op));
        let kernel = self.kernel_of(op, is_elementwise);
        self.graph.ops.push((op, kernel));
        self.read_operands(kernel, op, &copies);
        self.operand_copies = copies;
        let alike =
            conditional_simplifier::alike(program, op, |value| self.storage.equal.first(value));
        for (index, value) in program.op_results(op).enumerate() {
            let other = match alike.get(index) {
                None | Some(None) => self.behind_barrier(op, index),
                Some(&Some(Alike::Outside(value))) => self.item(value),
                Some(&Some(Alike::Result(other))) => self.item(program.result(op, other)),
            };
            if other != NONE {
                self.name(value, other, kernel);
            } else if program.kind(op) == OpKind::While && is_only_read(program, op, index) {
                let item = self.item(program.operand(op, index));
                if item != NONE {
                    self.name(value, item, kernel);
                }
            } else if self.layouts.carried.restored.contains(&value) {
                self.restore(op, (index, value), kernel);
            } else if self.storage.has_tail(value) {
                let whole = self.make_whole(op, value, kernel);
                self.add_tail(op, value, whole);
            } else if self.layouts.image_groups(program, op) > 1 {
                self.add_pairs(op, value, kernel);
            } else if let Some(left) = after_first_step(program, self.works, &mut self.layouts, op)
            {
                self.add_second_step(op, (value, left), kernel);
            } else if self.storage.is_written(value) {
                let item = |value: Option<ValueId>| value.map_or(NONE, |value| self.item(value));
                let over = match (movement, program.kind(op)) {
                    (Movement::Update, _) if transposed.is_none() => {
                        self.item_under(program.operand(op, 0))
                    }
                    (_, OpKind::Sort) => item(program.operands(op).nth(index)),
                    _ if self.is_over(op) => item(program.operands(op).nth(index)),
                    (_, OpKind::While) => self.carried(op, index),
                    _ => NONE,
                };
                let bytes = self.bytes(value);
                let item = self.make(value, bytes, kernel);
                self.graph.items[item as usize].over = over;
                self.reshape_result(op, value);
            }
        }
    }
    /// For each operand of `op` its copy in the order in which `op` reads it; [`NONE`] if that is not needed.
    pub(in crate::compilers::xla_cpu) fn copies_for(&mut self, op: OpId) -> Vec<u32> {
        let program = self.program;
        let mut copies = std::mem::take(&mut self.operand_copies);
        copies.clear();
        if program.kind(op) == OpKind::While && !self.layouts.compiler().fuses_by_priority() {
            return self.converted_for(op, copies);
        }
        if !self.layouts.carried.may_copy(op, self.storage.facts.has(op, Fact::OPAQUE)) {
            // Others read their operands as they are.
            return copies;
        }
        for (index, value) in program.operands(op).enumerate() {
            let value = self.storage.equal.first(value);
            if self.in_products.contains_key(&(op, index as u32)) {
                copies.push(NONE);
                continue;
            }
            if let Some(joined) = self.concatenated(op, index) {
                copies.push(joined);
                continue;
            }
            let folded = self.layouts.folded(program, self.works, op, (index, value));
            let order = match folded {
                Some(_) => None,
                None if self.is_widened_outside(value) => {
                    self.layouts.moved(program, self.works, op, index).cloned()
                }
                None => self.layouts.order(program, self.works, op, index),
            };
            let Some(order) = order else {
                let reshapes =
                    folded.is_none() && self.layouts.reshapes(program, self.works, op, index);
                let update = if reshapes { self.update_of(value, 1) } else { None };
                let own = self.items[value.index()];
                copies.push(match update {
                    Some(update) => self.update_again(op, update, value),
                    None if reshapes && self.storage.is_reshaped_anew(value) => {
                        self.reshaped(op, value)
                    }
                    None if reshapes => self.as_matrix(op, index, value),
                    None => NONE,
                });
                self.items[value.index()] = own;
                continue;
            };
            let key = (value, order);
            if let Some(&known) = self.copies.get(&key) {
                copies.push(known);
                continue;
            }
            if let Some(updated) = self.updated_transposed(value) {
                self.copies.insert(key, updated);
                copies.push(updated);
                continue;
            }
            // What is only converted is written over what it is computed of, where that has as many bytes.
            let is_in_place = key.1.iter().copied().eq(0..key.1.len());
            let kernel = self.kernel(op, is_in_place, false);
            self.walk(kernel, value, is_in_place);
            let (own, bytes) = (self.items[value.index()], self.bytes(value));
            let is_wide = self.layouts.widens(program, self.works, op, value);
            let copy = self.make(value, bytes.saturating_mul(if is_wide { 2 } else { 1 }), kernel);
            self.items[value.index()] = own;
            self.copies.insert(key, copy);
            copies.push(copy);
        }
        copies
    }
}
