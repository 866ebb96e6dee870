//! Values that only one kernel reads, at several places: they are computed in that kernel, once.
//!
//! What compiled programs show: a fusion that takes in all users of a value takes in the value, too. Kernels of products do not.

use crate::compilers::xla_cpu::fusion::materialization::Storage;
use crate::compilers::xla_cpu::fusion::op_facts::Fact;
use crate::compilers::xla_tpu::product_fusion::is_product;
use crate::index::{Id, OpId};
use crate::ir::{Program, ValueDef};
use crate::work::cached::Works;
use rustc_hash::FxHashSet;
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
            let reader = found.of_result(op);
            if let (true, Reader::Kernel(kernel)) = (is_product(program, op), reader) {
                found.of_products.insert(kernel);
            }
        });
    }
    let mut readers = Readers { of_products: found.of_products, ..Readers::new(program) };
    for ops in &inside {
        readers.walk(storage, ops, Readers::fuse);
    }
}

/// The readers of the values of a program.
struct Readers<'p> {
    program: &'p Program,
    readers: Vec<Reader>,
    /// The kernels that compute products.
    of_products: FxHashSet<OpId>,
}

impl<'p> Readers<'p> {
    fn new(program: &'p Program) -> Self {
        let readers = vec![Reader::Nobody; program.num_value_ids()];
        Self { program, readers, of_products: FxHashSet::default() }
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
                let known = &mut self.readers[value.index()];
                *known = match (*known, reader) {
                    _ if home != block => Reader::Many,
                    (Reader::Nobody, new) => new,
                    (old, new) if old == new => old,
                    _ => Reader::Many,
                };
            }
        }
    }
    fn of_result(&self, op: OpId) -> Reader {
        let value = self.program.op_results(op).next();
        value.map_or(Reader::Many, |value| self.readers[value.index()])
    }
    /// The kernel that reads the operands of `op`.
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
            && !self.of_products.contains(&op);
        let Reader::Kernel(kernel) = self.of_result(op) else { return };
        if !may_fuse || self.of_products.contains(&kernel) {
            return;
        }
        let value = self.program.result(op, 0);
        let row = storage.row(value);
        if storage.equal.first(value) == value && !row.is_inlined && !row.has_tail {
            storage.store(value, false, true);
        }
    }
}
