//! The calls of each function, along which shardings flow between operands and arguments.

use crate::error::{Code, Diagnostic, Result};
use crate::index::{FuncId, OpId, RegionId};
use crate::ir::{OpKind, Payload, Program};
use rustc_hash::FxHashMap;

/// The calls between the functions of a program.
#[derive(Clone, Default)]
pub struct Calls {
    callees: FxHashMap<OpId, FuncId>,
    callers: FxHashMap<FuncId, Vec<OpId>>,
    /// The calls inside each function that has any.
    inside: FxHashMap<FuncId, Vec<OpId>>,
}

impl Calls {
    /// The calls of `program`.
    pub fn new(program: &mut Program) -> Self {
        let mut calls = Self::default();
        if !program.has_any(&[OpKind::Call]) {
            return calls;
        }
        calls.inside = calls_by_function(program);
        let functions = program.functions_in_order();
        let by_name: FxHashMap<_, _> =
            functions.iter().map(|&func| (program.func_name(func), func)).collect();
        for &func in &functions {
            for &call in calls.inside.get(&func).into_iter().flatten() {
                let Some(Payload::Call(name)) = program.payload(call) else { continue };
                let Some(&callee) = by_name.get(name) else { continue };
                calls.callees.insert(call, callee);
                calls.callers.entry(callee).or_default().push(call);
            }
        }
        calls
    }
    /// Whether no op calls a function.
    pub fn is_empty(&self) -> bool {
        self.callees.is_empty()
    }
    /// The function that `call` calls.
    pub fn callee(&self, call: OpId) -> Option<FuncId> {
        self.callees.get(&call).copied()
    }
    /// The calls of `func`, in the order of the reference's symbol users.
    pub fn callers(&self, func: FuncId) -> &[OpId] {
        self.callers.get(&func).map_or(&[], Vec::as_slice)
    }
    /// Fails if calls are recursive, or if a callee has no body.
    pub fn check(&self, program: &Program) -> Result<()> {
        if self.callees.is_empty() {
            return Ok(());
        }
        let functions = program.functions_in_order();
        let bodyless = |&func: &FuncId| program.func_body(func).is_none();
        let mut called = functions.iter().copied().filter(bodyless).map(|func| self.callers(func));
        if let Some(&call) = called.find_map(<[OpId]>::first) {
            return Err(Diagnostic::new(
                Code::UnknownSymbol,
                "the function called here has no body",
            )
            .at_op(program, call)
            .into());
        }
        // Functions leave the graph once all functions that call them have left.
        let mut waiting: FxHashMap<FuncId, usize> =
            functions.iter().map(|&func| (func, self.callers(func).len())).collect();
        let mut ready: Vec<FuncId> =
            functions.iter().copied().filter(|func| waiting[func] == 0).collect();
        while let Some(func) = ready.pop() {
            waiting.remove(&func);
            for &call in self.inside.get(&func).into_iter().flatten() {
                let Some(callee) = self.callee(call) else { continue };
                if let Some(count) = waiting.get_mut(&callee) {
                    *count -= 1;
                    if *count == 0 {
                        ready.push(callee);
                    }
                }
            }
        }
        let Some(func) = functions.iter().find(|func| waiting.contains_key(func)) else {
            return Ok(());
        };
        let name = program.str(program.func_name(*func));
        let message = format!("function \"{name}\" calls itself, directly or through others");
        let diagnostic = Diagnostic::new(Code::RecursiveCall, message)
            .at(program.printing().function(*func).name);
        Err(diagnostic.with_hint("propagation needs a call graph without circles").into())
    }
}

/// The calls of `program` by the function they are in, in the order of [`calls_inside`]. If all are
/// in the function's own block, that is program order.
fn calls_by_function(program: &mut Program) -> FxHashMap<FuncId, Vec<OpId>> {
    let mut inside: FxHashMap<FuncId, Vec<OpId>> = FxHashMap::default();
    let mut nested = Vec::new();
    for call in program.ops_in_pre_order(&[OpKind::Call]) {
        let top = program.top_level_op(call);
        let func = program.function_of(top);
        if func.is_none() {
            continue;
        }
        inside.entry(func).or_default().push(call);
        if program.parent_op(call) != Some(top) && nested.last() != Some(&func) {
            nested.push(func);
        }
    }
    for func in nested {
        inside.insert(func, calls_inside(program, program.func_op(func)));
    }
    inside
}

/// The calls inside `root` in the order in which MLIR collects symbol uses: regions are pushed on a
/// stack when they are found, so that the last one found is searched first.
fn calls_inside(program: &Program, root: OpId) -> Vec<OpId> {
    let mut calls = Vec::new();
    let mut regions: Vec<RegionId> = program.op_regions(root).collect();
    while let Some(region) = regions.pop() {
        for block in program.region_blocks(region) {
            for op in program.block_ops(block) {
                if program.kind(op) == OpKind::Call {
                    calls.push(op);
                }
                regions.extend(program.op_regions(op));
            }
        }
    }
    calls
}
