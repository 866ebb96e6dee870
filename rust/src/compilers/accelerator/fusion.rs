//! A model of fusion: which values are written to memory, and what each op reads.
//!
//! 1. The result of an elementwise op or of data movement that is used once, by an op that fuses with its
//!    producers, is not written: its user reads the operands instead.
//! 2. A broadcast or an iota is not written if all its users fuse.
//! 3. A reshape is an alias of its operand, and so is a value that a loop carries unchanged.
//!
//! Dots, convolutions, sorts, collectives, control flow and returns do not fuse: their operands are written.
//! Nor do broadcasts: their operands are small, and they may have many users.

use crate::index::{Id, OpId, ValueId};
use crate::ir::{OpKind, OpTraits, Program, ValueDef};
use crate::work::cached::Works;
use crate::work::ops::Movement;
use crate::work::spaces::Space;

/// How the values of a program are stored.
pub struct Fusion {
    /// How each value is stored.
    values: Vec<Stored>,
    /// The number of queries so far.
    num_queries: u32,
    /// The values that ops read, for the ops that were queried; all lists concatenated.
    reads: Vec<Read>,
    /// The ops that a query has yet to visit, with the most bytes that are read of each value; a field to reuse its memory.
    stack: Vec<(OpId, u128)>,
    /// For each op that was queried where its list begins in `reads`, and its length.
    reads_of: Vec<(u32, u32)>,
}

/// How a value is stored.
#[derive(Clone, Copy)]
struct Stored {
    /// For an alias, or a value computed from one operand: the value that a consumer reads instead.
    leaf: Leaf,
    /// The number of uses of the value, including those of its aliases.
    uses: u32,
    /// The last query that visited the value.
    query: u32,
    /// The index of the value in that query's list of reads.
    place: u32,
    /// Whether some user does not fuse.
    has_barrier: bool,
    /// Whether the value is never written.
    is_virtual: bool,
}

impl Stored {
    /// A value without uses.
    const UNUSED: Self = Self {
        leaf: Leaf { value: ValueId::NONE, row: FREE },
        uses: 0,
        query: 0,
        place: 0,
        has_barrier: false,
        is_virtual: false,
    };
}

/// The value that a kernel reads in place of a fused value.
#[derive(Clone, Copy)]
struct Leaf {
    /// The value that is read; none if it is the fused value itself.
    value: ValueId,
    /// The row of [`crate::work::tensors::Tensors`] whose bytes are read of it; [`FREE`] if nothing is read.
    row: u32,
}

/// The row of a value that takes no bytes to read.
const FREE: u32 = u32::MAX;

/// The range in `reads` of an op that was not queried yet.
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
        let mut this = Self {
            values: vec![Stored::UNUSED; program.num_value_ids()],
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
        self.values[value.index()].is_virtual
    }
    /// The value whose memory `value` is an alias of; itself if it is no alias.
    pub fn stored_as(&self, value: ValueId) -> ValueId {
        self.values[value.index()].leaf.value.get().unwrap_or(value)
    }
    /// Counts the operand uses of `op`; those of its own results were counted before.
    fn count_uses(&mut self, program: &Program, works: &mut Works<'_>, op: OpId) {
        let movement = works.movement(op);
        let fuses = matches!(
            movement,
            Movement::Pointwise | Movement::Window | Movement::Reduce | Movement::Update
        );
        let block = program.parent_block(op);
        let is_near = |operand| match program.def(operand) {
            ValueDef::Result(def) => program.parent_block(def) == block,
            ValueDef::Arg(owner) => owner == block,
        };
        let renamed = is_renaming(program, op, movement).then(|| program.result(op, 0).index());
        for operand in program.operands(op) {
            let (uses, has_barrier) = match renamed {
                Some(result) if is_near(operand) => {
                    (self.values[result].uses, self.values[result].has_barrier)
                }
                _ => (1, !(fuses && is_near(operand))),
            };
            let value = &mut self.values[operand.index()];
            value.uses = value.uses.saturating_add(uses);
            value.has_barrier |= has_barrier;
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
                    let leaf = self.single_source(works, value);
                    self.make_virtual(result, leaf);
                }
            }
            Movement::Expand if program.has_traits(op, OpTraits::CONSTANT_LIKE) => {
                // Constants are part of the program; a splat is broadcast where it is used.
                let is_small = is_splat(program, op);
                let row = if is_small { FREE } else { works.tensors.id(result) };
                let value = &mut self.values[at];
                value.is_virtual = !value.has_barrier || !is_small;
                value.leaf = Leaf { value: result, row };
            }
            Movement::Expand if !self.values[at].has_barrier => {
                let leaf = match program.operands(op).next() {
                    Some(value) => {
                        let leaf = self.single_source(works, value);
                        let own = works.tensors.id(result);
                        let is_less = bytes_of_row(works, own) < bytes_of_row(works, leaf.row);
                        Leaf { row: if is_less { own } else { leaf.row }, ..leaf }
                    }
                    None => Leaf { value: result, row: FREE },
                };
                self.make_virtual(result, leaf);
            }
            Movement::Pointwise | Movement::Window if program.num_results(op) == 1 => {
                let value = &mut self.values[at];
                value.is_virtual = value.uses == 1 && !value.has_barrier;
            }
            _ if program.kind(op) == OpKind::While => {
                for (index, result) in program.op_results(op).enumerate() {
                    if is_only_read(program, op, index) {
                        let operand = program.operand(op, index);
                        let leaf = self.single_source(works, operand);
                        self.make_virtual(result, leaf);
                    }
                }
            }
            _ => {}
        }
    }
    /// Notes that `value` is not written, and that `leaf` is read in its place.
    fn make_virtual(&mut self, value: ValueId, leaf: Leaf) {
        let value = &mut self.values[value.index()];
        (value.leaf, value.is_virtual) = (leaf, true);
    }
    /// The single value that is read from memory to compute `value`, if there is exactly one.
    #[inline]
    fn single_source(&self, works: &mut Works<'_>, value: ValueId) -> Leaf {
        let leaf = self.values[value.index()].leaf;
        if leaf.value.is_some() {
            return leaf;
        }
        Leaf { value, row: works.tensors.id(value) }
    }
    /// The values that `op` reads from memory, each once, through all producers that are fused into it.
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
            let windowed =
                (movement == Movement::Window).then(|| program.op_results(reader).next());
            let cap = match windowed.flatten() {
                Some(result) => cap.min(works.tensors.bytes(result)),
                None => cap,
            };
            for value in program.operands(reader).skip(skipped) {
                let leaf = self.single_source(works, value);
                let stored = &mut self.values[leaf.value.index()];
                if stored.is_virtual && stored.leaf.value != leaf.value {
                    if let Some(inner) = program.defining_op(leaf.value) {
                        stack.push((inner, cap));
                        continue;
                    }
                }
                let bytes = bytes_of_row(works, leaf.row).min(cap);
                if stored.query == self.num_queries {
                    let read = &mut self.reads[stored.place as usize];
                    read.bytes = read.bytes.saturating_add(bytes);
                } else {
                    (stored.query, stored.place) = (self.num_queries, self.reads.len() as u32);
                    self.reads.push(Read { value: leaf.value, bytes });
                }
            }
        }
        self.stack = stack;
        let mut kept = first;
        for at in first..self.reads.len() {
            let Read { value, bytes } = self.reads[at];
            let bytes = bytes.min(works.bytes_in(Space::Device, value));
            if bytes > 0 {
                self.reads[kept] = Read { value, bytes };
                kept += 1;
            }
        }
        self.reads.truncate(kept);
    }
    /// Bytes of device memory that `op` reads and writes, after fusion.
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
        let written: u128 =
            results.by_ref().map(|value| works.bytes_in(Space::Device, value)).sum();
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
