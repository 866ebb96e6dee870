//! A model of fusion: which values are written to memory, and what each op reads.
//!
//! 1. The result of an elementwise op or of data movement that is used once, by an op that fuses with its
//!    producers, is not written: its user reads the operands instead.
//! 2. A broadcast or an iota is not written if all its users fuse.
//! 3. A reshape is an alias of its operand, and so is a value that a loop carries unchanged.
//!
//! Dots, convolutions, sorts, collectives, control flow and returns do not fuse: their operands are written.
//! Nor do broadcasts: their operands are small, and they may have many users.

use super::work::Movement;
use super::works::Works;
use crate::index::{Id, OpId, ValueId};
use crate::ir::{OpKind, OpTraits, Program, ValueDef};

/// How the values of a program are stored.
pub struct Fusion {
    /// The number of uses of a value, including those of its aliases.
    uses: Vec<u32>,
    /// Whether some user does not fuse.
    has_barrier: Vec<bool>,
    /// Values that are never written.
    is_virtual: Vec<bool>,
    /// For an alias, or a value computed from one operand, what is read in its place.
    leaf: Vec<Leaf>,
    /// The last query that visited a value, and the place of the value among what is read.
    stamps: Vec<(u32, u32)>,
    /// The number of queries so far.
    num_queries: u32,
    /// What the ops that were asked for read, one after the other.
    reads: Vec<Read>,
    /// The ops that a query has yet to visit, with the most bytes that are read of each value; a field to reuse its memory.
    stack: Vec<(OpId, u128)>,
    /// For each op that was asked for where its part of `reads` begins, and how long it is.
    reads_of: Vec<(u32, u32)>,
}

/// What is read in the place of a value.
#[derive(Clone, Copy)]
struct Leaf {
    /// The value that is read; none if the value itself is.
    value: ValueId,
    /// The row of [`super::tensors::Tensors`] with as many bytes as are read of it; [`FREE`] if none are.
    row: u32,
}

/// The row of what takes no bytes to read.
const FREE: u32 = u32::MAX;

/// The part of `reads` of an op that was not asked for yet.
const NOT_ASKED: (u32, u32) = (u32::MAX, 0);

/// A value that an op reads from memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The value, one that is written.
    pub value: ValueId,
    /// Bytes of it that are read.
    pub bytes: u128,
}

impl Fusion {
    /// How the values of `functions`, given by their ops, are stored.
    pub fn new(program: &Program, works: &mut Works<'_>, functions: &[OpId]) -> Self {
        let count = program.num_value_ids();
        let mut this = Self {
            uses: vec![0; count],
            has_barrier: vec![false; count],
            is_virtual: vec![false; count],
            leaf: vec![Leaf { value: ValueId::NONE, row: FREE }; count],
            stamps: vec![(0, 0); count],
            num_queries: 0,
            reads: Vec::new(),
            stack: Vec::new(),
            reads_of: vec![NOT_ASKED; program.num_op_ids()],
        };
        for &func in functions {
            let ops = works.ops_inside(func);
            for &op in ops.iter().rev() {
                this.count_uses(program, works, op);
            }
            for &op in ops.iter() {
                this.decide(program, works, op);
            }
        }
        this
    }
    /// Whether `value` is never written to memory of its own.
    pub fn is_virtual(&self, value: ValueId) -> bool {
        self.is_virtual[value.index()]
    }
    /// The value whose memory `value` is an alias of; itself if it is no alias.
    pub fn stored_as(&self, value: ValueId) -> ValueId {
        self.leaf[value.index()].value.get().unwrap_or(value)
    }
    /// Counts the operand uses of `op`; those of its own results were counted before.
    fn count_uses(&mut self, program: &Program, works: &mut Works<'_>, op: OpId) {
        let movement = works.movement(op);
        let fuses = matches!(
            movement,
            Movement::Pointwise | Movement::Window | Movement::Reduce | Movement::Update
        );
        let block = program.parent_block(op);
        for operand in program.operands(op) {
            let value = operand.index();
            let is_near = match program.def(operand) {
                ValueDef::Result(def) => program.parent_block(def) == block,
                ValueDef::Arg(owner) => owner == block,
            };
            if is_renaming(program, op, movement) && is_near {
                let result = program.result(op, 0).index();
                self.uses[value] = self.uses[value].saturating_add(self.uses[result]);
                self.has_barrier[value] |= self.has_barrier[result];
            } else {
                self.uses[value] = self.uses[value].saturating_add(1);
                self.has_barrier[value] |= !(fuses && is_near);
            }
        }
    }
    /// Decides how the results of `op` are stored; its operands are decided.
    fn decide(&mut self, program: &Program, works: &mut Works<'_>, op: OpId) {
        let movement = works.movement(op);
        if program.num_results(op) == 0 || program.is_erased(op) {
            return;
        }
        let result = program.result(op, 0);
        let at = result.index();
        match movement {
            Movement::Alias if program.num_operands(op) == program.num_results(op) => {
                for (value, result) in program.operands(op).zip(program.op_results(op)) {
                    self.leaf[result.index()] = self.single_source(works, value);
                    self.is_virtual[result.index()] = true;
                }
            }
            Movement::Expand if program.has_traits(op, OpTraits::CONSTANT_LIKE) => {
                // Constants are part of the program; a splat is broadcast where it is used.
                let is_small = is_splat(program, op);
                self.is_virtual[at] = !self.has_barrier[at] || !is_small;
                let row = if is_small { FREE } else { works.tensors.id(result) };
                self.leaf[at] = Leaf { value: result, row };
            }
            Movement::Expand if !self.has_barrier[at] => {
                self.is_virtual[at] = true;
                self.leaf[at] = match program.operands(op).next() {
                    Some(value) => {
                        let leaf = self.single_source(works, value);
                        let own = works.tensors.id(result);
                        let is_less = bytes_of_row(works, own) < bytes_of_row(works, leaf.row);
                        Leaf { row: if is_less { own } else { leaf.row }, ..leaf }
                    }
                    None => Leaf { value: result, row: FREE },
                };
            }
            Movement::Pointwise | Movement::Window if program.num_results(op) == 1 => {
                self.is_virtual[at] = self.uses[at] == 1 && !self.has_barrier[at];
            }
            _ if program.kind(op) == OpKind::While => {
                for (index, result) in program.op_results(op).enumerate() {
                    if is_only_read(program, op, index) {
                        let operand = program.operand(op, index);
                        self.leaf[result.index()] = self.single_source(works, operand);
                        self.is_virtual[result.index()] = true;
                    }
                }
            }
            _ => {}
        }
    }
    /// The only value that reading `value` reads, if there is exactly one.
    fn single_source(&self, works: &mut Works<'_>, value: ValueId) -> Leaf {
        let leaf = self.leaf[value.index()];
        if leaf.value.is_some() {
            return leaf;
        }
        Leaf { value, row: works.tensors.id(value) }
    }
    /// The values that `op` reads from memory, each once, through all ops that are fused with it.
    pub fn reads(&mut self, program: &Program, works: &mut Works<'_>, op: OpId) -> &[Read] {
        if self.reads_of[op.index()] == NOT_ASKED {
            let first = self.reads.len();
            self.find_reads(program, works, op);
            self.reads_of[op.index()] = (first as u32, (self.reads.len() - first) as u32);
        }
        let (first, count) = self.reads_of[op.index()];
        &self.reads[first as usize..][..count as usize]
    }
    /// Appends what `op` reads to `reads`.
    fn find_reads(&mut self, program: &Program, works: &mut Works<'_>, op: OpId) {
        self.num_queries += 1;
        let first = self.reads.len();
        let mut stack = std::mem::take(&mut self.stack);
        stack.push((op, u128::MAX));
        while let Some((reader, cap)) = stack.pop() {
            let movement = works.movement(reader);
            // The operand that is updated in place is not read.
            let skipped = usize::from(movement == Movement::Update);
            let cap = match (movement, program.op_results(reader).next()) {
                (Movement::Window, Some(result)) => cap.min(works.tensors.bytes(result)),
                _ => cap,
            };
            for value in program.operands(reader).skip(skipped) {
                let leaf = self.single_source(works, value);
                let at = leaf.value.index();
                let made_by = program.defining_op(leaf.value).filter(|_| self.is_virtual[at]);
                let is_source = self.leaf[at].value == leaf.value;
                if let (Some(inner), false) = (made_by, is_source) {
                    stack.push((inner, cap));
                    continue;
                }
                if self.stamps[at].0 != self.num_queries {
                    self.stamps[at] = (self.num_queries, self.reads.len() as u32);
                    self.reads.push(Read { value: leaf.value, bytes: 0 });
                }
                let bytes = bytes_of_row(works, leaf.row).min(cap);
                let read = &mut self.reads[self.stamps[at].1 as usize];
                read.bytes = read.bytes.saturating_add(bytes);
            }
        }
        self.stack = stack;
        let mut kept = first;
        for at in first..self.reads.len() {
            let Read { value, bytes } = self.reads[at];
            let bytes = bytes.min(works.tensors.bytes(value));
            if bytes > 0 {
                self.reads[kept] = Read { value, bytes };
                kept += 1;
            }
        }
        self.reads.truncate(kept);
    }
    /// Bytes that `op` reads and writes, with fusion.
    pub fn traffic(&mut self, program: &Program, works: &mut Works<'_>, op: OpId) -> u128 {
        let movement = works.movement(op);
        if matches!(movement, Movement::Inside | Movement::Alias)
            || program.has_traits(op, OpTraits::TERMINATOR)
        {
            return 0;
        }
        let mut results = program.op_results(op);
        if results.clone().next().is_some_and(|result| self.is_virtual(result)) {
            return 0;
        }
        let read: u128 = self.reads(program, works, op).iter().map(|read| read.bytes).sum();
        if movement == Movement::Update {
            // The update is written in place.
            return read.saturating_mul(2);
        }
        let written: u128 = results.by_ref().map(|value| works.tensors.bytes(value)).sum();
        read.saturating_add(written)
    }
}

/// Bytes of a row of tensors.
fn bytes_of_row(works: &Works<'_>, row: u32) -> u128 {
    if row == FREE {
        return 0;
    }
    works.tensors.row(row).bytes
}

/// Whether the result of `op` is an alias of its only operand.
fn is_renaming(program: &Program, op: OpId, movement: Movement) -> bool {
    movement == Movement::Alias
        && program.num_operands(op) == 1
        && program.num_results(op) == 1
        && program.kind(op) != OpKind::OptimizationBarrier
}

/// Whether the body of `op`, a loop, returns its argument `index` unchanged.
pub fn is_only_read(program: &Program, op: OpId, index: usize) -> bool {
    let body = program.op_regions(op).nth(1).and_then(|region| program.region_entry(region).get());
    let Some(body) = body else { return false };
    let argument = program.block_args(body).nth(index);
    let returned = program.last_op(body).get().and_then(|last| program.operands(last).nth(index));
    argument.is_some() && returned == argument
}

/// Whether all elements of a constant are the same.
pub fn is_splat(program: &Program, op: OpId) -> bool {
    let text = program.constant_text(op).trim_start();
    match text.strip_prefix("dense<") {
        Some(inner) => {
            let first = inner.trim_start().as_bytes().first().copied().unwrap_or(b'>');
            // A string of bytes is a splat only if it has one element; long ones are not.
            first != b'[' && (first != b'"' || inner.len() < 64)
        }
        None => !text.starts_with("dense_resource"),
    }
}
