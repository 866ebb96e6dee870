//! `sdy-flatten-call-graph`: every call of a function except the first gets its own clone, so that
//! shardings of different calls do not affect each other.
//!
//! The size of the result is computed before anything is cloned, and cloning takes linear time in
//! it. The size may be exponential in the depth of the call graph, so it is limited.

use super::{callee, mistake, CallGraph, FunctionCloner};
use crate::context::Context;
use crate::error::{Code, Result};
use crate::index::{FuncId, Id, OpId};
use crate::ir::{OpKind, Payload, Program, SymbolTable};

/// Runs the pass.
pub fn run(program: &mut Program, context: &mut Context<'_>) -> Result<()> {
    /// The number of clones between two reports of progress, which also check for interrupts.
    const REPORT_EVERY: usize = 1024;
    if !program.has_any(&[OpKind::Call]) && program.num_op_ids() <= context.limits.max_ops {
        return Ok(());
    }
    let mut symbols = SymbolTable::new(program);
    let graph = CallGraph::new(program, &symbols);
    graph.check_acyclic(program)?;
    check_size(program, &graph, &symbols, context.limits.max_ops)?;
    let mut is_called = vec![false; program.num_func_ids()];
    let mut cloner = FunctionCloner::default();
    let mut num_cloned = 0;
    for &func in &graph.post_order {
        for &call in graph.calls(func) {
            let target = callee(program, &symbols, call)?;
            if !std::mem::replace(&mut is_called[target.index()], true) {
                continue;
            }
            let name = cloner.clone_recursively(program, &mut symbols, target)?;
            program.set_payload(call, Payload::Call(name));
            num_cloned += 1;
            if num_cloned % REPORT_EVERY == 0 {
                context.progress("sdy-flatten-call-graph", 0, 1)?;
            }
        }
    }
    Ok(())
}

/// Fails if the program would have more than `max_ops` ops with a clone for each call except the
/// first.
pub(super) fn check_size(
    program: &Program,
    graph: &CallGraph,
    symbols: &SymbolTable,
    max_ops: usize,
) -> Result<()> {
    let (added, largest) = clones_size(program, graph, symbols)?;
    // This bound includes erased ops; if it is below the limit, no exact count is needed.
    let bound = added.saturating_add(program.num_op_ids() as u64);
    if bound <= max_ops as u64 {
        return Ok(());
    }
    let own = program.pre_order(program.module_op()).count();
    let total = added.saturating_add(own as u64);
    if total <= max_ops as u64 {
        return Ok(());
    }
    let amount = if total == u64::MAX { "more than 10^19".to_owned() } else { total.to_string() };
    let message = format!("the call graph flattens to {amount} ops, the limit is {max_ops}");
    let diagnostic = mistake(program, largest, Code::ProgramTooLarge, message);
    Err(diagnostic.with_hint("raise the limit `max_ops`, or call this function fewer times").into())
}

/// The number of ops of all clones, and the call with the largest clone.
fn clones_size(program: &Program, graph: &CallGraph, symbols: &SymbolTable) -> Result<(u64, OpId)> {
    let mut targets: Vec<FuncId> = Vec::new();
    let mut is_called = vec![false; program.num_func_ids()];
    let mut has_clones = false;
    for &func in &graph.post_order {
        for &call in graph.calls(func) {
            let target = callee(program, symbols, call)?;
            has_clones |= std::mem::replace(&mut is_called[target.index()], true);
            targets.push(target);
        }
    }
    if !has_clones {
        return Ok((0, OpId::NONE));
    }
    let mut targets = targets.into_iter();
    // Functions without calls are not cloned; declarations count as one op.
    let mut sizes: Vec<u64> = vec![1; program.num_func_ids()];
    let mut is_seen = vec![false; program.num_func_ids()];
    let mut total: u64 = 0;
    let mut largest: (u64, OpId) = (0, OpId::NONE);
    for &func in &graph.post_order {
        let mut size = 0;
        for (&call, target) in graph.calls(func).iter().zip(&mut targets) {
            let added = sizes[target.index()];
            size = added.saturating_add(size);
            if std::mem::replace(&mut is_seen[target.index()], true) {
                total = total.saturating_add(added);
                if added > largest.0 {
                    largest = (added, call);
                }
            }
        }
        if is_called[func.index()] {
            size = size.saturating_add(num_ops_inside(program, func));
        }
        sizes[func.index()] = size;
    }
    Ok((total, largest.1))
}

/// The number of ops of `func`, including the `func.func` op.
fn num_ops_inside(program: &Program, func: FuncId) -> u64 {
    program.pre_order(program.func_op(func)).count() as u64
}
