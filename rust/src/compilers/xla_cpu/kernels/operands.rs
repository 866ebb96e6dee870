//! The operands of kernels: those of their ops or, where an operand is fused, the operands of its producer.

use crate::compilers::xla_cpu::fusion::op_facts::Fact;
use crate::compilers::xla_cpu::kernels::builder::{Builder, Visit};
use crate::compilers::xla_cpu::kernels::graph::{Read, NONE};
use crate::compilers::xla_cpu::layout_assignment::dim_orders::DimOrder;
use crate::compilers::xla_cpu::passes::collective_combiner::is_expanded_scatter;
use crate::compilers::xla_tpu::product_fusion::is_product;
use crate::index::{Id, OpId, ValueId};
use crate::ir::OpKind;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::hash::Hasher;

impl Builder<'_, '_, '_> {
    /// The kernel that computes `op`: its own, or one that also computes other ops (multi-output fusion).
    pub(in crate::compilers::xla_cpu) fn kernel_of(
        &mut self,
        op: OpId,
        is_elementwise: bool,
    ) -> u32 {
        let set = self.program.op_results(op).next().and_then(|value| self.joined.get(&value));
        let Some(&set) = set else { return self.kernel(op, is_elementwise, true) };
        if let Some(&known) = self.kernel_of_joined.get(&set) {
            self.graph.kernels[known as usize].is_elementwise |= is_elementwise;
            if let Some(fused) = &mut self.fused {
                fused.push((known, op));
            }
            return known;
        }
        let kernel = self.kernel(op, is_elementwise, true);
        self.kernel_of_joined.insert(set, kernel);
        kernel
    }
    pub(in crate::compilers::xla_cpu) fn read_operands(
        &mut self,
        kernel: u32,
        op: OpId,
        copies: &[u32],
    ) {
        let program = self.program;
        let facts = self.storage.facts.of(op);
        let (fuses, is_sum) = (facts.has(Fact::FUSES), facts.has(Fact::SUM));
        let is_pointwise = facts.has(Fact::POINTWISE);
        let is_product = facts.has(Fact::PRODUCT);
        let first = self.reads.len();
        self.num_walks += 1;
        for (index, value) in program.operands(op).enumerate() {
            let copy = copies.get(index).copied().unwrap_or(NONE);
            if copy != NONE {
                self.reads.push((kernel, Read::whole(copy)));
            } else if let Some(computed) = self.in_products.get(&(op, index as u32)) {
                let computed = computed.clone();
                self.read_in_product(kernel, (op, index as u32), &computed);
            } else if fuses {
                let bytes = self.bytes_of_window(op, facts);
                let user = (op, index as u32);
                self.walk_on(
                    kernel,
                    Visit { value, user, is_elementwise: is_pointwise, is_sum, bytes },
                );
            } else {
                let mut value = self.storage.equal.first(value);
                if is_product {
                    let folded = self.layouts.folded_into(program, self.works, op, (index, value));
                    value = folded.unwrap_or(value);
                }
                if self.fuses_into_product(op, value) {
                    self.walk_on(
                        kernel,
                        Visit {
                            value,
                            user: (op, index as u32),
                            is_elementwise: false,
                            is_sum: false,
                            bytes: u64::MAX,
                        },
                    );
                    continue;
                }
                let item = if is_product { self.item(value) } else { self.item_in_own_dims(value) };
                if item != NONE {
                    let is_elementwise = self.is_in_place(op);
                    let view = if is_product { self.view(op, index) } else { 0 };
                    self.reads.push((kernel, Read { is_elementwise, view, ..Read::whole(item) }));
                } else if program.kind(op) == OpKind::While
                    || facts.has(Fact::EXPAND) && self.layouts.compiler().fuses_by_priority()
                {
                    // What is moved into the body reads its own operands there. On GPUs what is fused into a broadcast does.
                    self.walk(kernel, value, false);
                }
            }
        }
        if facts.has(Fact::CAPTURES) {
            for inner in program.pre_order(op).skip(1) {
                for value in program.operands(inner) {
                    let item = self.item(value);
                    if item != NONE && program.parent_block(inner) != program.parent_block(op) {
                        self.reads.push((kernel, Read::whole(item)));
                    }
                }
            }
        }
        if program.kind(op) == OpKind::Reduce && !self.joined.is_empty() {
            self.reduced.push((kernel, first..self.reads.len()));
        }
    }
    /// In a kernel of several results one may be written over an operand that all others read elementwise, too; and one reduction,
    /// which reads its operands before anything is written. Source: XLA's `GpuAliasInfo`.
    pub(in crate::compilers::xla_cpu) fn merge_elementwise_reads(&mut self) {
        let reduced = std::mem::take(&mut self.reduced);
        let mut is_joined = vec![false; self.graph.kernels.len()];
        self.kernel_of_joined.values().for_each(|&kernel| is_joined[kernel as usize] = true);
        // Kernels with a reduction, and those in which nothing is written over an operand.
        let (mut with_reduction, mut is_apart) = <(FxHashSet<u32>, FxHashSet<u32>)>::default();
        for &(kernel, _) in &reduced {
            if !with_reduction.insert(kernel) {
                is_apart.insert(kernel);
            }
        }
        let mut are_elementwise: FxHashMap<(u32, u32), bool> = FxHashMap::default();
        let mut reduced = reduced.into_iter().peekable();
        for (at, (kernel, read)) in self.reads.iter().enumerate() {
            while reduced.next_if(|(_, range)| range.end <= at).is_some() {}
            let is_reduced = reduced.peek().is_some_and(|(_, range)| range.contains(&at));
            if is_reduced || !is_joined[*kernel as usize] {
                continue;
            }
            *are_elementwise.entry((*kernel, read.item)).or_insert(true) &= read.is_elementwise;
            if !read.is_elementwise && self.graph.items[read.item as usize].made_by == *kernel {
                is_apart.insert(*kernel);
            }
        }
        for (kernel, read) in self.reads.iter_mut().filter(|it| is_joined[it.0 as usize]) {
            read.is_elementwise = !is_apart.contains(kernel)
                && are_elementwise.get(&(*kernel, read.item)) == Some(&true);
        }
    }
    /// Adds the items that `kernel`, that of a product, reads for this operand, where it computes the values `computed` itself.
    fn read_in_product(&mut self, kernel: u32, (op, index): (OpId, u32), computed: &[ValueId]) {
        let program = self.program;
        let Some(value) = program.operands(op).nth(index as usize) else { return };
        let value = self.storage.equal.first(value);
        let folded = self.layouts.folded_into(program, self.works, op, (index as usize, value));
        let view = self.view(op, index as usize);
        let (mut left, mut seen) = (vec![folded.unwrap_or(value)], FxHashSet::default());
        while let Some(value) = left.pop() {
            let value = self.storage.equal.first(value);
            if !seen.insert(value) {
                continue;
            }
            if let Some(made_by) = program.defining_op(value).filter(|_| computed.contains(&value))
            {
                if let Some(fused) = &mut self.fused {
                    fused.push((kernel, made_by));
                }
                left.extend(program.operands(made_by));
            } else if self.item(value) != NONE {
                self.reads.push((kernel, Read { view, ..Read::whole(self.item(value)) }));
            } else {
                self.walk(kernel, value, false);
            }
        }
    }
    /// A hash of the dims in which `op`, a product, reads operand `index` on GPUs: those of matrices; 0 if they are the operand's own.
    fn view(&mut self, op: OpId, index: usize) -> u16 {
        let Self { program, works, layouts, .. } = self;
        if !layouts.compiler().fuses_by_priority() {
            return 0;
        }
        let value = program.operand(op, index);
        let parts = layouts.split_k(program, works, op);
        let Some([batch, free, contracting]) = layouts.dims_of_dot(program, op, index) else {
            return 0;
        };
        let Some(sizes) = works.tensors.of(value).dims.as_deref() else { return 0 };
        let is_name = program
            .defining_op(value)
            .is_some_and(|made_by| self.storage.facts.has(made_by, Fact::NAME));
        if parts <= 1 && free.len() <= 1 && contracting.len() <= 1 && !is_name {
            return 0;
        }
        // Dims of one kind that are adjacent are one.
        let kind = |dim: usize| match (batch.contains(&dim), free.contains(&dim)) {
            (true, _) => dim + 2,
            (_, is_free) => usize::from(is_free),
        };
        let mut merged: Vec<(usize, i64)> = Vec::new();
        for (dim, &size) in sizes.iter().enumerate().filter(|(_, size)| **size != 1) {
            match merged.last_mut() {
                Some((last, whole)) if *last == kind(dim) => *whole = whole.saturating_mul(size),
                _ => merged.push((kind(dim), size)),
            }
        }
        let mut hash = FxHasher::default();
        for (kind, size) in merged {
            hash.write_i64(size);
            hash.write_u128(if kind == 0 { parts } else { 1 });
        }
        (hash.finish() >> 40) as u16 | 1
    }
    /// Whether `op`, a dot, fuses the producer of its operand `value`.
    fn fuses_into_product(&self, op: OpId, value: ValueId) -> bool {
        let row = self.storage.row(value);
        let takes_in =
            self.layouts.compiler().fuses_products() || self.layouts.carried.is_moved(value);
        takes_in
            && is_product(self.program, op)
            && row.is_inlined
            && !self.storage.is_written(value)
    }
    /// Adds the items that `kernel` reads to compute `value`.
    pub(in crate::compilers::xla_cpu) fn walk(
        &mut self,
        kernel: u32,
        value: ValueId,
        is_elementwise: bool,
    ) {
        self.num_walks += 1;
        let user = (OpId::NONE, 0);
        self.walk_on(kernel, Visit { value, user, is_elementwise, is_sum: false, bytes: u64::MAX });
    }
    /// An upper bound of the bytes that `op` reads of each operand: a slice, a gather and the like read no more than they write.
    fn bytes_of_window(&mut self, op: OpId, facts: Fact) -> u64 {
        if !facts.has(Fact::WINDOW) {
            return u64::MAX;
        }
        let result = self.program.op_results(op).next();
        result.map_or(u64::MAX, |value| {
            u64::try_from(self.works.tensors.bytes(value)).unwrap_or(u64::MAX)
        })
    }
    /// Adds the items that `kernel` reads to compute `value`, unless this walk has visited it. A library reduction (`is_sum`) reads
    /// all values that are materialized, and so does a dot that is fused into one.
    fn walk_on(&mut self, kernel: u32, first: Visit) {
        let program = self.program;
        let mut stack = std::mem::take(&mut self.stack);
        stack.push(first);
        while let Some(visit) = stack.pop() {
            let Visit { is_elementwise, is_sum, bytes, .. } = visit;
            let value = self.storage.equal.first(visit.value);
            let row = self.storage.row(value);
            if row.is_nothing {
                continue;
            }
            let stamp = self.stamps[value.index()];
            if stamp.0 == self.num_walks {
                if let Some((_, read)) = self.reads.get_mut(stamp.1 as usize) {
                    read.is_elementwise &= is_elementwise;
                    read.bytes = read.bytes.saturating_add(bytes);
                    let item = read.item;
                    self.note_use(kernel, item, visit.user);
                }
                continue;
            }
            self.stamps[value.index()] = (self.num_walks, NONE);
            let is_inlined =
                row.is_inlined && !row.has_tail && !(is_sum && self.items[value.index()] != NONE);
            let made_by = program.defining_op(value).filter(|_| is_inlined);
            match made_by {
                Some(op) => {
                    let facts = self.storage.facts.of(op);
                    if let Some(fused) = &mut self.fused {
                        fused.push((kernel, op));
                    }
                    let is_elementwise = is_elementwise && facts.has(Fact::PLACE_BY_PLACE);
                    let bytes = bytes.min(self.bytes_of_window(op, facts));
                    let visit = |(index, value)| {
                        let user = (op, index as u32);
                        Visit { value, user, is_elementwise, is_sum, bytes }
                    };
                    if !facts.has(Fact::OPAQUE) {
                        for (index, value) in program.operands(op).enumerate() {
                            stack.push(visit((index, value)));
                        }
                        continue;
                    }
                    let copies = self.taken_in.get(&op);
                    for (index, value) in program.operands(op).enumerate() {
                        match copies.and_then(|copies| copies.get(index)) {
                            None => stack.push(visit((index, value))),
                            Some(&NONE) => {
                                let at = (index, value);
                                let folded = self.layouts.folded(program, self.works, op, at);
                                let value = folded.unwrap_or(value);
                                stack.push(Visit {
                                    value,
                                    user: (op, index as u32),
                                    is_elementwise: false,
                                    is_sum: true,
                                    bytes,
                                });
                            }
                            Some(&item) => {
                                self.reads.push((kernel, Read::whole(item)));
                            }
                        }
                    }
                }
                None if self.items[value.index()] != NONE => {
                    self.stamps[value.index()].1 = self.reads.len() as u32;
                    let item = self.items[value.index()];
                    let is_gather = |op: OpId| self.storage.facts.has(op, Fact::GATHER);
                    // XLA gathers into more dims, which its users reshape: nothing is written over these.
                    let has_tail = row.has_tail && row.is_inlined;
                    let made_by = program.defining_op(value);
                    let is_in_order = |op: OpId| {
                        !is_gather(op)
                            && !(has_tail
                                && (is_expanded_scatter(program, self.layouts.compiler(), op)
                                    || self.layouts.moves_result(program, self.works, op)))
                    };
                    let is_elementwise = is_elementwise && made_by.is_none_or(is_in_order);
                    self.reads.push((kernel, Read { item, is_elementwise, view: 0, bytes }));
                    self.note_use(kernel, item, visit.user);
                }
                None => {}
            }
        }
        self.stack = stack;
    }
    /// The item of `value` in other dims, computed anew for `op` and all that read it so.
    pub(in crate::compilers::xla_cpu) fn reshaped(&mut self, op: OpId, value: ValueId) -> u32 {
        let key = (value, DimOrder::default());
        if let Some(&known) = self.copies.get(&key) {
            return known;
        }
        let bytes = self.bytes(value);
        let own = self.items[value.index()];
        let kernel = self.kernel(op, false, false);
        self.walk(kernel, value, false);
        let copy = self.make(value, bytes, kernel);
        self.items[value.index()] = own;
        self.copies.insert(key, copy);
        copy
    }
}
