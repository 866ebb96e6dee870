//! The call stacks of functions in the user's program.
//!
//! JAX outlines some helpers, such as `jnp.linalg.norm` or `one_hot`, into functions whose ops have
//! only names as locations, without a line of a file. Such ops get the line of the function's
//! caller: the call stack of the first call that has a line. A call in such a function gets its
//! line in the same way.

use super::innermost::Origin;
use super::installed::is_installed;
use crate::index::{FuncId, OpId, StrId, ValueId};
use crate::ir::{OpKind, Payload, Program};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;
use std::collections::BTreeMap;

/// The calls of each function of a program, and the call stack of the first call that has a line.
#[derive(Clone, Debug, Default)]
pub struct CallSites {
    /// For each function its calls in program order.
    calls: BTreeMap<FuncId, Vec<OpId>>,
    /// For each function a call stack of `file:line:column`, innermost first; only for functions
    /// that are called from a line of the user's program.
    stacks: FxHashMap<FuncId, Vec<String>>,
}

impl CallSites {
    /// The calls of `program`; takes linear time.
    pub fn new(program: &Program) -> Self {
        let mut this = Self::default();
        if !program.has_any(&[OpKind::Call]) {
            return this;
        }
        let functions = program.functions_in_order().into_iter();
        let by_name: FxHashMap<StrId, FuncId> =
            functions.map(|func| (program.func_name(func), func)).collect();
        for op in program.ops_of(&[OpKind::Call]) {
            let Some(Payload::Call(name)) = program.payload(op) else { continue };
            if let Some(&callee) = by_name.get(name) {
                this.calls.entry(callee).or_default().push(op);
            }
        }
        this.find_stacks(program);
        this
    }
    /// The functions that are called from a line: by a call for which `is_there` holds, or by a
    /// call without a line in such a function.
    pub(super) fn called_from(
        &self,
        program: &Program,
        is_there: impl Fn(OpId) -> bool,
        has_place: impl Fn(OpId) -> bool,
    ) -> FxHashSet<FuncId> {
        let mut inside: FxHashMap<FuncId, Vec<FuncId>> = FxHashMap::default();
        let mut todo = Vec::new();
        for (&callee, calls) in &self.calls {
            for &call in calls {
                if is_there(call) {
                    todo.push(callee);
                } else if !has_place(call) {
                    inside.entry(function_around(program, call)).or_default().push(callee);
                }
            }
        }
        let mut called = FxHashSet::default();
        while let Some(function) = todo.pop() {
            if called.insert(function) {
                todo.extend(inside.remove(&function).unwrap_or_default());
            }
        }
        called
    }
    /// The call stack of ops of `function` without a line, innermost first.
    pub fn stack(&self, function: FuncId) -> &[String] {
        self.stacks.get(&function).map_or(&[], Vec::as_slice)
    }
    /// The source line of an op in `function` with the location `text`: its own line, else that of
    /// the call, else its name. A line in an installed package is returned only if neither has a
    /// line of the user's program.
    pub fn location(&self, program: &Program, text: &str, function: FuncId) -> Option<String> {
        let called = self.stack(function);
        let called_by_user = || called.iter().find(|frame| !is_installed(frame)).cloned();
        match program.origin(text) {
            Some(Origin::Place(place)) if !is_installed(&place) => Some(place),
            Some(Origin::Place(place)) => called_by_user().or(Some(place)),
            own => called_by_user()
                .or_else(|| called.first().cloned())
                .or_else(|| own.map(Origin::into_text)),
        }
    }
    /// The source line of `op`.
    pub fn op_location(&self, program: &Program, op: OpId) -> Option<String> {
        self.location(program, program.text().get(program.loc(op)), function_around(program, op))
    }
    /// The source line of `value`.
    pub fn value_location(&self, program: &Program, value: ValueId) -> Option<String> {
        let function = program.function_of_value(value);
        self.location(program, program.value_loc_text(value), function)
    }
    /// The call stack of `value`, as `file:line:column`, innermost first.
    pub fn traceback(&self, program: &Program, value: ValueId) -> Vec<String> {
        let own = program.stack(program.value_loc_text(value));
        if own.is_empty() {
            return self.stack(program.function_of_value(value)).to_vec();
        }
        own
    }
    /// Finds the stacks, first for functions with a call that has a line, then for functions that
    /// those call without a line.
    fn find_stacks(&mut self, program: &Program) {
        let mut inside: FxHashMap<FuncId, Vec<FuncId>> = FxHashMap::default();
        let mut found = Vec::new();
        for (&callee, calls) in &self.calls {
            let stacks =
                calls.iter().map(|&call| program.stack(program.text().get(program.loc(call))));
            if let Some(stack) = stacks.into_iter().find(|stack| !stack.is_empty()) {
                found.push((callee, stack));
                continue;
            }
            for &call in calls {
                inside.entry(function_around(program, call)).or_default().push(callee);
            }
        }
        while let Some((function, stack)) = found.pop() {
            let Entry::Vacant(entry) = self.stacks.entry(function) else { continue };
            for callee in inside.remove(&function).unwrap_or_default() {
                found.push((callee, stack.clone()));
            }
            entry.insert(stack);
        }
    }
}

/// The function that `op` is in.
fn function_around(program: &Program, op: OpId) -> FuncId {
    program.function_of(program.top_level_op(op))
}
