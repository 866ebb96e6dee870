//! `symbol-dce`: erases functions that are not public and that no remaining op refers to.
//!
//! A reference is a call, or an `@name` anywhere in an attribute of an op. Functions in nested
//! modules are not erased.
//!
//! Source: MLIR's pass of the same name.

use crate::context::Context;
use crate::error::Result;
use crate::index::{FuncId, Id, OpId};
use crate::ir::{symbols_in, OpKind, Payload, Program, SymbolTable};

/// The op whose value is a function.
const CONSTANT: &str = "func.constant";

/// Runs the pass.
pub fn run(program: &mut Program, _: &mut Context<'_>) -> Result<()> {
    let top_level: Vec<OpId> = program.block_ops(program.module_block()).collect();
    let mut functions = top_level.iter().filter_map(|&op| program.function_of(op).get());
    if !functions.any(|func| is_discardable(program, func)) {
        return Ok(());
    }
    let symbols = SymbolTable::new(program);
    let has_references = program.has_symbol_attrs()
        || program.strings().find(CONSTANT).is_some()
        || program.has_any(&[OpKind::MpmdCall, OpKind::FragmentCall]);
    let calls = if has_references { None } else { Some(CalledBy::new(program, &symbols)) };
    let mut is_live = vec![false; program.num_func_ids()];
    let mut worklist: Vec<OpId> = Vec::new();
    for &op in &top_level {
        let func = program.function_of(op);
        if func.is_none() {
            worklist.push(op);
        } else if !is_discardable(program, func) {
            is_live[func.index()] = true;
            worklist.push(op);
        }
    }
    while let Some(root) = worklist.pop() {
        let mut mark = |func: FuncId| {
            if !std::mem::replace(&mut is_live[func.index()], true) {
                worklist.push(program.func_op(func));
            }
        };
        match (&calls, program.function_of(root).get()) {
            (Some(calls), Some(caller)) => calls.callees(caller).for_each(&mut mark),
            _ => {
                for op in program.pre_order(root) {
                    references(program, &symbols, op, &mut mark);
                }
            }
        }
    }
    for op in top_level {
        let func = program.function_of(op);
        if func.is_some() && !is_live[func.index()] {
            program.erase_op(op);
        }
    }
    Ok(())
}

/// The callees of each function: a linked list for each caller, all in one array.
struct CalledBy {
    /// The start of each caller's list.
    first: Vec<u32>,
    /// A callee, and the next entry of the list.
    links: Vec<(FuncId, u32)>,
}

const END: u32 = u32::MAX;

impl CalledBy {
    fn new(program: &Program, symbols: &SymbolTable) -> Self {
        let mut first = vec![END; program.num_func_ids()];
        let mut links = Vec::new();
        for call in program.repeated_ops_of(OpKind::Call) {
            let caller = program.function_of(program.top_level_op(call));
            if let (Some(caller), Some(func)) = (caller.get(), callee(program, symbols, call)) {
                let rest = std::mem::replace(&mut first[caller.index()], links.len() as u32);
                links.push((func, rest));
            }
        }
        Self { first, links }
    }
    fn callees(&self, caller: FuncId) -> impl Iterator<Item = FuncId> + '_ {
        let link = |at: u32| self.links.get(at as usize).copied();
        let start = link(self.first[caller.index()]);
        std::iter::successors(start, move |&(_, rest)| link(rest)).map(|(func, _)| func)
    }
}

/// The function that `op`, a call, calls.
fn callee(program: &Program, symbols: &SymbolTable, op: OpId) -> Option<FuncId> {
    match program.payload(op) {
        Some(&Payload::Call(name)) => symbols.function(name),
        _ => None,
    }
}

/// Whether `func` may be erased if it is not referenced.
fn is_discardable(program: &Program, func: FuncId) -> bool {
    let is_nested = || program.attr(program.func_op(func), "sym_visibility") == Some("\"nested\"");
    program.is_private(func) || is_nested()
}

/// Calls `mark` on each function that an attribute of `op` refers to.
fn references(program: &Program, symbols: &SymbolTable, op: OpId, mark: &mut impl FnMut(FuncId)) {
    callee(program, symbols, op).into_iter().for_each(&mut *mark);
    if matches!(program.kind(op), OpKind::Mesh | OpKind::Constant | OpKind::SdyConstant) {
        return;
    }
    let own = (program.op_name(op) == CONSTANT)
        .then(|| program.text().get(program.printing().op(op).span));
    let attrs = program.op_attrs(op).iter().map(|attr| program.text().get(attr.value));
    for text in attrs.chain(own) {
        for name in symbols_in(text) {
            let func = program.strings().find(name).and_then(|name| symbols.function(name));
            if let Some(func) = func {
                mark(func);
            }
        }
    }
}
