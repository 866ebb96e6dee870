//! Values that only one kernel reads, at several places: they are computed in that kernel, once.
//!
//! What compiled programs show: a fusion that takes in all users of a value takes in the value, too. Kernels of products do not.
//! Elementwise kernels and reductions that read the same value, of the shape of their own loops, are one kernel with several results,
//! if none needs a result of another, and no product reads one.

use crate::compilers::xla_cpu::fusion::materialization::Storage;
use crate::compilers::xla_cpu::fusion::op_facts::Fact;
use crate::compilers::xla_tpu::product_fusion::is_product;
use crate::index::{Id, OpId, ValueId};
use crate::ir::{OpKind, Program, ValueDef};
use crate::work::cached::Works;
use std::rc::Rc;

/// The kernel that reads a value, named after the op that it computes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// None so far.
    Nobody,
    /// One.
    Kernel(OpId),
    /// Several, or something that does not fuse.
    Many,
}

/// Stores the values of `functions`, given by their ops, that one kernel reads.
pub fn fuse_shared(
    program: &Program,
    works: &mut Works<'_>,
    storage: &mut Storage,
    functions: &[OpId],
) {
    let inside: Vec<Rc<[OpId]>> = functions.iter().map(|&func| works.ops_inside(func)).collect();
    let mut found = Readers::new(program);
    for ops in &inside {
        found.walk(storage, ops, |found, _, op| {
            if is_product(program, op) {
                if let Reader::Kernel(kernel) = found.of_result(op) {
                    found.of_products[kernel.index()] = true;
                }
            }
        });
    }
    let mut readers = found.again();
    for ops in &inside {
        readers.find_stages(storage, ops);
    }
    for ops in &inside {
        readers.walk(storage, ops, Readers::fuse);
    }
}

/// The readers of the values of a program.
struct Readers<'p> {
    program: &'p Program,
    readers: Vec<Reader>,
    /// For each op whether it is the kernel of a product.
    of_products: Vec<bool>,
    /// For each value the most reductions and other kernels on a path to it, once they are found.
    stages: Vec<u32>,
    /// For each op the kernel that its kernel is one with, possibly over others; its own if that stands alone.
    merged: Vec<OpId>,
}

impl<'p> Readers<'p> {
    fn new(program: &'p Program) -> Self {
        let readers = vec![Reader::Nobody; program.num_value_ids()];
        let of_products = vec![false; program.num_op_ids()];
        let merged = program.op_ids().collect();
        Self { program, readers, of_products, stages: Vec::new(), merged }
    }
    /// For another walk, with the same kernels of products.
    fn again(mut self) -> Self {
        self.readers.fill(Reader::Nobody);
        self.merged.clear();
        self.merged.extend(self.program.op_ids());
        self
    }
    /// Finds the stages of the values that `ops` make.
    fn find_stages(&mut self, storage: &Storage, ops: &[OpId]) {
        let program = self.program;
        self.stages.resize(program.num_value_ids(), 0);
        for &op in ops {
            let is_within =
                storage.facts.of(op).has_any(Fact::POINTWISE.or(Fact::EXPAND).or(Fact::NAME));
            let stage = self.stage_of(op).saturating_add(u32::from(!is_within));
            for value in program.op_results(op) {
                self.stages[value.index()] = stage;
            }
        }
    }
    /// The stage of the operands of `op`.
    #[inline]
    fn stage_of(&self, op: OpId) -> u32 {
        let mut last = 0;
        for value in self.program.operands(op) {
            last = last.max(self.stages[value.index()]);
        }
        last
    }
    /// The kernel that `kernel` is one with.
    fn whole(&mut self, kernel: OpId) -> OpId {
        let mut whole = kernel;
        while self.merged[whole.index()] != whole {
            whole = self.merged[whole.index()];
        }
        let mut at = kernel;
        while at != whole {
            at = std::mem::replace(&mut self.merged[at.index()], whole);
        }
        whole
    }
    /// Whether the kernels `one` and `other`, which read `value`, can be one kernel.
    fn can_merge(&self, storage: &Storage, value: ValueId, one: OpId, other: OpId) -> bool {
        let program = self.program;
        let shape = |value: ValueId| program.value_type(value).shape();
        let loops_over = |op: OpId| {
            let is_reduction = program.kind(op) == OpKind::Reduce;
            let of_no_product = |value| !program.users(value).any(|user| is_product(program, user));
            let is_loop = is_reduction
                || storage.facts.has(op, Fact::POINTWISE)
                    && program.op_results(op).all(of_no_product);
            let looped = if is_reduction { program.operand(op, 0) } else { program.result(op, 0) };
            is_loop && shape(looped).is_some() && shape(looped) == shape(value)
        };
        !self.stages.is_empty()
            && [one, other].iter().all(|&op| !self.of_products[op.index()] && loops_over(op))
            && self.stage_of(one) == self.stage_of(other)
    }
    /// Finds the readers of the operands of `ops`, users first; `visit` may store the result of each op before.
    fn walk(
        &mut self,
        storage: &mut Storage,
        ops: &[OpId],
        visit: impl Fn(&mut Self, &mut Storage, OpId),
    ) {
        let program = self.program;
        for &op in ops.iter().rev() {
            visit(self, storage, op);
            let reader = self.reader_of(storage, op);
            let block = program.parent_block(op);
            for operand in program.operands(op) {
                let value = storage.equal.first(operand);
                let home = match program.def(value) {
                    ValueDef::Result(made_by) => program.parent_block(made_by),
                    ValueDef::Arg(home) => home,
                };
                let new = match (self.readers[value.index()], reader) {
                    _ if home != block => Reader::Many,
                    (Reader::Nobody, new) => new,
                    (old, new) if old == new => old,
                    (Reader::Kernel(old), Reader::Kernel(new)) => {
                        let (one, other) = (self.whole(old), self.whole(new));
                        if one == other {
                            Reader::Kernel(one)
                        } else if self.can_merge(storage, value, one, other) {
                            self.merged[other.index()] = one;
                            Reader::Kernel(one)
                        } else {
                            Reader::Many
                        }
                    }
                    _ => Reader::Many,
                };
                self.readers[value.index()] = new;
            }
        }
    }
    #[inline]
    fn of_result(&self, op: OpId) -> Reader {
        let value = self.program.op_results(op).next();
        value.map_or(Reader::Many, |value| self.readers[value.index()])
    }
    /// The kernel that reads the operands of `op`.
    #[inline]
    fn reader_of(&self, storage: &Storage, op: OpId) -> Reader {
        let facts = storage.facts.of(op);
        let reads_memory = facts.has(Fact::GATHER) && !facts.has(Fact::FUSES);
        if facts.has(Fact::SINGLE) && !reads_memory {
            let value = storage.equal.first(self.program.result(op, 0));
            let is_inlined = storage.row(value).is_inlined && !storage.is_written(value);
            if facts.has(Fact::NAME) || is_inlined {
                return self.readers[value.index()];
            }
        }
        if facts.has(Fact::FUSES) {
            Reader::Kernel(op)
        } else {
            Reader::Many
        }
    }
    /// Stores the result of `op` in the kernel that reads it, if that is one.
    fn fuse(&mut self, storage: &mut Storage, op: OpId) {
        let facts = storage.facts.of(op);
        let may_fuse = facts.has(Fact::SINGLE)
            && facts.has_any(Fact::POINTWISE.or(Fact::WINDOW))
            && !facts.has_any(Fact::APART.or(Fact::NAME))
            && !self.of_products[op.index()];
        if !may_fuse {
            return;
        }
        let Reader::Kernel(kernel) = self.of_result(op) else { return };
        if self.of_products[kernel.index()] {
            return;
        }
        let value = self.program.result(op, 0);
        let row = storage.row(value);
        if storage.equal.first(value) == value && !row.is_inlined && !row.has_tail {
            storage.store(value, false, true);
        }
    }
}
