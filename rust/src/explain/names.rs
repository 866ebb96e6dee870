//! The names that values of the propagated program have in the given one.
//!
//! Import keeps the ids of existing values. It adds data-flow edges, which have the names of their owners, constraints, and clones,
//! which have the names of their originals. If the completed program has several copies of a function, a value is named as in its
//! copy, `@helper_0 %12`.

use crate::index::{BlockId, FuncId, Id, OpId, ValueId};
use crate::ir::{OpKind, Payload, Program, ValueDef};
use crate::mlir::QualifiedNames;
use rustc_hash::FxHashMap;

/// The ops of the given program by the start of their text.
pub(super) struct Names {
    ops: FxHashMap<u32, OpId>,
    /// Ops by the place where the text names their results.
    by_result: FxHashMap<u32, OpId>,
    functions: FxHashMap<String, FuncId>,
    /// The entry function of the given program.
    entry: Option<FuncId>,
    /// The copies of functions in the completed program, by their bodies.
    copies: FxHashMap<BlockId, String>,
    /// The names of the values of the given program.
    values: QualifiedNames,
}

impl Names {
    /// The names, in `given`, of the values of programs derived from it; `result` is the completed one.
    pub fn new(given: &Program, result: &Program) -> Self {
        let ops = given.pre_order(given.module_op());
        let ops = ops.filter_map(|op| Some((start(given, op)?, op))).collect();
        let by_result = given.pre_order(given.module_op());
        let by_result = by_result.filter_map(|op| Some((result_name(given, op)?, op))).collect();
        let functions = given.functions_in_order().into_iter();
        let functions =
            functions.map(|func| (given.str(given.func_name(func)).to_owned(), func)).collect();
        let (entry, copies) = (given.entry_function(), FxHashMap::default());
        let values = QualifiedNames::default();
        let mut names = Self { ops, by_result, functions, entry, copies, values };
        for func in result.functions_in_order() {
            let name = result.str(result.func_name(func));
            if let (false, Some(body)) =
                (names.functions.contains_key(name), result.func_body(func).get())
            {
                names.copies.insert(body, name.to_owned());
            }
        }
        names
    }
    /// The name of `value` of `done`, as `"%12"`, or `"@helper %12"` in another function than the entry function.
    pub fn of(&self, given: &Program, done: &Program, value: ValueId) -> String {
        let Some(copy) = self.copy(done, value) else {
            return self.original(given, done, value);
        };
        let known = self.given_value(given, done, value);
        let name =
            known.map_or_else(|| done.value_name(value), |known| self.values.name(given, known));
        format!("@{copy} {name}")
    }
    /// The copy of a function that `value` of `done` is in.
    fn copy(&self, done: &Program, value: ValueId) -> Option<&str> {
        if self.copies.is_empty() {
            return None;
        }
        let block_of = |op: OpId| done.parent_block(op).get();
        let mut block = match done.def(value) {
            ValueDef::Result(op) => block_of(op)?,
            ValueDef::Arg(block) => block,
        };
        loop {
            if let Some(name) = self.copies.get(&block) {
                return Some(name);
            }
            block = block_of(done.block_parent_op(block))?;
        }
    }
    /// The name in `given` of the value that `value` of `done` is, belongs to as an edge, or was cloned from.
    pub fn original(&self, given: &Program, done: &Program, value: ValueId) -> String {
        let Some(known) = self.given_value(given, done, value) else {
            return done.value_name(value);
        };
        let name = self.values.name(given, known);
        match given.function_of_value(known).get() {
            Some(func) if Some(func) != self.entry => {
                format!("@{} {name}", given.str(given.func_name(func)))
            }
            _ => name,
        }
    }
    /// The value of `given` that `value` of `done` is, belongs to as an edge, or was cloned from.
    pub fn given_value(&self, given: &Program, done: &Program, value: ValueId) -> Option<ValueId> {
        if value.index() < given.num_value_ids() {
            return Some(value);
        }
        match done.def(value) {
            ValueDef::Result(op) => match done.kind(op) {
                OpKind::DataFlowEdge | OpKind::FuncDataFlowEdge | OpKind::ShardingConstraint
                    if self.given_op(given, done, op).is_none() =>
                {
                    self.given_value(given, done, done.operand(op, 0))
                }
                _ => {
                    let known = self.given_op(given, done, op)?;
                    let index = done.value_index(value);
                    (index < given.num_results(known)).then(|| given.result(known, index))
                }
            },
            ValueDef::Arg(block) => {
                let (index, owner) = (done.value_index(value), done.block_parent_op(block));
                let payload = done.payload(owner);
                let body = if let Some(Payload::NamedComputation { name, .. }) = payload {
                    given.func_body(*self.functions.get(done.str(*name))?)
                } else {
                    let known = self.given_op(given, done, owner)?;
                    let region = done.block_region(block);
                    let place = done.op_regions(owner).position(|other| other == region)?;
                    given.region_entry(given.op_regions(known).nth(place)?)
                };
                let body = body.get()?;
                (index < given.num_block_args(body)).then(|| given.block_arg(body, index))
            }
        }
    }
    /// The op of `given` that `op` of `done` is or was cloned from.
    pub fn given_op(&self, given: &Program, done: &Program, op: OpId) -> Option<OpId> {
        if op.index() < given.num_op_ids() {
            return Some(op);
        }
        let by_text = start(done, op).and_then(|start| self.ops.get(&start));
        let known = by_text.or_else(|| self.by_result.get(&result_name(done, op)?));
        let known = *known?;
        let is_call = given.kind(known) == OpKind::Call;
        let kinds = (given.kind(known), done.kind(op));
        let is_same = done.op_name(op) == given.op_name(known)
            || kinds == (OpKind::Constant, OpKind::SdyConstant)
            || (is_call && kinds.1 == OpKind::NamedComputation);
        is_same.then_some(known)
    }
}

/// Where the text names the results of `op`, if it does.
fn result_name(program: &Program, op: OpId) -> Option<u32> {
    let first = program.op_results(op).next()?;
    program.printing().has_name(first).then(|| program.printing().value_name(first))
}

/// Where the text of `op` starts, if it has one.
fn start(program: &Program, op: OpId) -> Option<u32> {
    program.op_span(op).map(|span| span.start)
}
