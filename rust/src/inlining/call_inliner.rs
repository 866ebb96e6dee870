//! Inlines calls, as a compiler does before fusion and buffer assignment.
//!
//! Inlining may add exponentially many ops; calls that would add too many are left as they are.

use crate::error::Span;
use crate::index::{FuncId, Id, OpId, ValueId};
use crate::inlining::call_graph::Calls;
use crate::inlining::host_calls::{is_for_host, let_host_compute};
use crate::ir::{OpKind, Place, Program, ValueMap};
use crate::mlir::{is_installed, Origin};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// The most ops that inlining may add, besides four times those of the program: enough for any
/// model, and few enough to take little time.
const MAX_ADDED: usize = 1 << 17;

/// A program with inlined calls, and the originals of its ops and values.
pub struct Inlined<'a> {
    /// The program.
    pub program: Cow<'a, Program>,
    /// The originals of the clones in it.
    pub originals: Originals,
    /// The kinds of source lines of locations, cached.
    lines: FxHashMap<Span, Line>,
}

/// The originals of the ops and values of a program whose calls were inlined.
#[derive(Clone, Debug)]
pub struct Originals {
    ops: Origins<OpId>,
    values: Origins<ValueId>,
}

impl Originals {
    /// Those of `program`, to which nothing was added yet.
    pub fn of(program: &Program) -> Self {
        let (ops, values) = (program.num_op_ids(), program.num_value_ids());
        Self { ops: Origins::new(ops), values: Origins::new(values) }
    }
    /// The original of `op`: the op that it was cloned from, or `op` itself.
    pub fn op(&self, op: OpId) -> OpId {
        self.ops.of(op)
    }
    /// Records `op` and its only result as the originals of the ops and values made after the first
    /// `num_ops` and `num_values` of `program`.
    pub fn note_made(
        &mut self,
        program: &Program,
        (num_ops, num_values): (usize, usize),
        op: OpId,
    ) {
        let value = self.value(program.result(op, 0));
        for made in (num_ops..program.num_op_ids()).map(OpId::from_index) {
            self.ops.note(made, op);
        }
        for made in (num_values..program.num_value_ids()).map(ValueId::from_index) {
            self.values.note(made, value);
        }
    }
    /// Records `op` as the original of `made`.
    pub fn note_op(&mut self, made: OpId, op: OpId) {
        self.ops.note(made, op);
    }
    /// Records `value` as the original of `made`.
    pub fn note_value(&mut self, made: ValueId, value: ValueId) {
        self.values.note(made, value);
    }
    /// The original of `value`: the value that it was cloned from, or `value` itself.
    pub fn value(&self, value: ValueId) -> ValueId {
        self.values.of(value)
    }
}

/// The originals of the cloned rows of a table.
#[derive(Clone, Debug)]
struct Origins<I> {
    /// The number of rows before cloning.
    first: usize,
    originals: Vec<I>,
}

impl<I: Id> Origins<I> {
    const fn new(first: usize) -> Self {
        Self { first, originals: Vec::new() }
    }
    /// The original of `id`; `id` itself if it is not a clone, or is absent.
    fn of(&self, id: I) -> I {
        let at = id.index().checked_sub(self.first);
        at.and_then(|at| self.originals.get(at)).copied().unwrap_or(id)
    }
    /// Records that `clone` was cloned from `id`, which may be a clone itself.
    fn note(&mut self, clone: I, id: I) {
        let (at, original) = (clone.index() - self.first, self.of(id));
        while self.originals.len() <= at {
            self.originals.push(I::from_index(self.first + self.originals.len()));
        }
        self.originals[at] = original;
    }
}

impl<'a> Inlined<'a> {
    /// `program` with its calls inlined.
    pub fn new(program: &'a Program) -> Self {
        Self::with_limit(program, most_added(program))
    }
    /// `program` with its calls inlined, as far as that adds no more than `limit` ops.
    pub fn with_limit(program: &'a Program, limit: usize) -> Self {
        Self::of_kinds(Cow::Borrowed(program), limit, &[OpKind::Call, OpKind::Composite])
    }
    /// `program` with its composites replaced by their decompositions; calls are kept.
    pub fn composites(program: &'a Program) -> Self {
        Self::of_kinds(Cow::Borrowed(program), program.num_op_ids(), &[OpKind::Composite])
    }
    fn of_kinds(program: Cow<'a, Program>, limit: usize, kinds: &[OpKind]) -> Self {
        let (originals, lines) = (Originals::of(&program), FxHashMap::default());
        let mut this = Self { program, originals, lines };
        let Some(entry) = this.program.entry_function() else { return this };
        if !this.program.has_any(kinds) {
            return this;
        }
        let calls = Calls::new(&this.program);
        let order = calls.callees_first(&this.program, entry);
        // The number of ops that a call adds.
        let mut sizes = vec![0; this.program.num_func_ids()];
        let mut left = limit;
        for func in order {
            this.inline_into(&calls, (func, kinds), &sizes, &mut left);
            let op = this.program.func_op(func);
            sizes[func.index()] = this.program.pre_order(op).count();
        }
        this
    }
    /// The program, and the originals of the clones in it.
    pub fn into_parts(self) -> (Program, Originals) {
        (self.program.into_owned(), self.originals)
    }
    fn inline_into(
        &mut self,
        calls: &Calls,
        (func, kinds): (FuncId, &[OpKind]),
        sizes: &[usize],
        left: &mut usize,
    ) {
        let inside = self.program.pre_order(self.program.func_op(func));
        let inside = inside.filter(|&op| kinds.contains(&self.program.kind(op)));
        let found: Vec<(OpId, FuncId)> =
            inside.filter_map(|op| Some((op, calls.callee(&self.program, op)?))).collect();
        for (call, callee) in found {
            let size = sizes[callee.index()];
            if size > *left {
                continue;
            }
            *left -= size;
            self.inline(call, callee);
        }
    }
    /// Replaces `call` by a clone of the body of `callee`.
    fn inline(&mut self, call: OpId, callee: FuncId) {
        let program = self.program.to_mut();
        let body = program.func_body(callee);
        let operands: Vec<ValueId> = program.operands(call).collect();
        let mut map = ValueMap::default();
        for (arg, operand) in program.block_args(body).zip(operands) {
            map.insert(arg, operand);
        }
        let ops: Vec<OpId> = program.block_ops(body).collect();
        let Some((&terminator, ops)) = ops.split_last() else { return };
        let mut clones: Vec<(OpId, OpId)> = Vec::new();
        for &op in ops {
            let clone = program.clone_op(op, &mut map, true);
            program.insert_op(clone, Place::Before(call));
            clones.extend(program.pre_order(op).zip(program.pre_order(clone)));
        }
        note_origins(program, &clones, &mut self.originals);
        if is_for_host(program, call) {
            for &(_, clone) in &clones {
                let_host_compute(program, clone);
            }
        }
        let called = line_of(program, &mut self.lines, program.loc(call));
        for &(_, clone) in &clones {
            if line_of(program, &mut self.lines, program.loc(clone)) < called {
                program.set_loc(clone, program.loc(call));
            }
        }
        let returned: Vec<ValueId> = program.operands(terminator).collect();
        let results: Vec<ValueId> = program.op_results(call).collect();
        for (result, value) in results.into_iter().zip(returned) {
            program.replace_all_uses(result, map.get(value).unwrap_or(value));
        }
        program.erase_op(call);
    }
}

impl Inlined<'static> {
    /// `program` with its calls inlined.
    pub fn of(program: Program) -> Self {
        let limit = most_added(&program);
        Self::of_kinds(Cow::Owned(program), limit, &[OpKind::Call, OpKind::Composite])
    }
}

/// The most ops that inlining the calls of `program` may add.
fn most_added(program: &Program) -> usize {
    program.num_op_ids().saturating_mul(4).saturating_add(MAX_ADDED)
}

/// The kind of source line in a location, from least to most useful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Line {
    /// A name, or nothing.
    None,
    /// A line of an installed package.
    Installed,
    /// A line of the user's program.
    Own,
}

/// The kind of source line in the location `loc`. Ops of JAX's own helpers have only names, and ops
/// of installed packages may have lines of the package; they get the location of the call if that
/// is more useful.
fn line_of(program: &Program, lines: &mut FxHashMap<Span, Line>, loc: Span) -> Line {
    *lines.entry(loc).or_insert_with(|| match program.origin(program.text().get(loc)) {
        Some(Origin::Place(place)) if is_installed(&place) => Line::Installed,
        Some(Origin::Place(_)) => Line::Own,
        _ => Line::None,
    })
}

/// Records the originals of the clones of a body's ops, and of their values. If an op of the body
/// is the cause of a collective, its clone is the cause of the cloned collective.
fn note_origins(program: &mut Program, clones: &[(OpId, OpId)], originals: &mut Originals) {
    let clone_of: FxHashMap<OpId, OpId> = clones.iter().copied().collect();
    for &(from, to) in clones {
        originals.ops.note(to, from);
        if let Some(cause) = program.cause(from) {
            program.set_cause(to, clone_of.get(&cause).copied().unwrap_or(cause));
        }
        for (from, to) in values_at(program, from).into_iter().zip(values_at(program, to)) {
            originals.values.note(to, from);
        }
    }
}

/// The results of `op`, then the arguments of its blocks.
fn values_at(program: &Program, op: OpId) -> Vec<ValueId> {
    let blocks = program.op_regions(op).flat_map(|region| program.region_blocks(region));
    let args = blocks.flat_map(|block| program.block_args(block));
    program.op_results(op).chain(args).collect()
}
