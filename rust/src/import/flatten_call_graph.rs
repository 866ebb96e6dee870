//! `sdy-flatten-call-graph`: every call but the first one of a function gets a clone of its own, so
//! that shardings of different calls do not meet.
//!
//! The size of the result is known before anything is cloned, and cloning is linear in it. It may be
//! exponential in the depth of the call graph, which is why there is a limit.

use super::{callee, clone_recursively, mistake, CallGraph};
use crate::context::Context;
use crate::error::{Code, Result};
use crate::index::{FuncId, OpId};
use crate::ir::{Payload, Program, SymbolTable};
use rustc_hash::{FxHashMap, FxHashSet};

/// Runs the pass.
pub fn run(program: &mut Program, context: &mut Context<'_>) -> Result<()> {
    /// Progress is reported, and interrupts are noticed, once in so many clones.
    const REPORT_EVERY: usize = 1024;
    let graph = CallGraph::new(program);
    graph.check_acyclic(program)?;
    let mut symbols = SymbolTable::new(program);
    check_size(program, &graph, &symbols, context.limits.max_ops)?;
    let mut called: FxHashSet<FuncId> = FxHashSet::default();
    let mut num_cloned = 0;
    for &func in &graph.post_order {
        for &call in graph.calls(func) {
            let target = callee(program, &symbols, call)?;
            if called.insert(target) {
                continue;
            }
            let name = clone_recursively(program, &mut symbols, target)?;
            program.set_payload(call, Payload::Call(name));
            num_cloned += 1;
            if num_cloned % REPORT_EVERY == 0 {
                context.progress("sdy-flatten-call-graph", 0, 1)?;
            }
        }
    }
    Ok(())
}

/// Fails if the program would have more than `max_ops` ops.
fn check_size(
    program: &Program,
    graph: &CallGraph,
    symbols: &SymbolTable,
    max_ops: usize,
) -> Result<()> {
    let mut sizes: FxHashMap<FuncId, u64> = FxHashMap::default();
    let mut called: FxHashSet<FuncId> = FxHashSet::default();
    let mut total: u64 = 0;
    let mut largest: (u64, OpId) = (0, OpId::NONE);
    for &func in &graph.post_order {
        let own = program.pre_order(program.functions[func].op).count() as u64;
        total = total.saturating_add(own);
        let mut size = own;
        for &call in graph.calls(func) {
            let target = callee(program, symbols, call)?;
            let added = sizes.get(&target).copied().unwrap_or(1);
            size = size.saturating_add(added);
            if !called.insert(target) {
                total = total.saturating_add(added);
                if added > largest.0 {
                    largest = (added, call);
                }
            }
        }
        sizes.insert(func, size);
    }
    if total <= max_ops as u64 {
        return Ok(());
    }
    let amount = if total == u64::MAX { "more than 10^19".to_owned() } else { total.to_string() };
    let message = format!("the call graph flattens to {amount} ops, the limit is {max_ops}");
    let diagnostic = mistake(program, largest.1, Code::ProgramTooLarge, message);
    Err(diagnostic.with_hint("raise the limit `max_ops`, or call this function fewer times").into())
}
