//! Clones of functions that share nothing with the original: whatever they call is cloned too.

use super::callee;
use crate::error::Result;
use crate::index::{FuncId, OpId, StrId};
use crate::ir::{AttrRange, OpKind, Payload, Place, Program, SymbolTable};
use rustc_hash::FxHashMap;

/// The attribute in which a clone keeps the name of what it was cloned from.
pub const ORIGINAL_NAME: &str = "sdy.original_func_name";

/// The name that `func` had before anything was cloned.
pub fn original_name(program: &mut Program, func: FuncId) -> StrId {
    let row = &program.functions[func];
    let Some(text) = program.attr(row.op, ORIGINAL_NAME) else { return row.name };
    let name = text.trim_matches('"').to_owned();
    program.strings.intern(&name)
}

/// A clone under construction.
struct Frame {
    clone: FuncId,
    /// The calls in it, and how many of them have been redirected.
    calls: Vec<OpId>,
    next: usize,
}

type ClonedAttrs = FxHashMap<FuncId, AttrRange>;

impl Frame {
    /// Clones `func`; clones of one function share their attributes, which are kept in `attrs`.
    fn new(program: &mut Program, attrs: &mut ClonedAttrs, func: FuncId) -> Self {
        let clone = program.clone_function(func);
        let op = program.functions[clone].op;
        if let Some(&range) = attrs.get(&func) {
            program.ops[op].attrs = range;
            program.mark_attrs_changed(op);
        } else {
            let name = original_name(program, func);
            let quoted = format!("\"{}\"", program.strings.get(name));
            program.set_attr(op, ORIGINAL_NAME, &quoted);
            attrs.insert(func, program.ops[op].attrs);
        }
        let calls = program.pre_order(op).filter(|&op| program.kind(op) == OpKind::Call).collect();
        Self { clone, calls, next: 0 }
    }
}

/// Clones `func` and everything it calls, once for each call, and puts all of it at the end of the
/// module. Linear in the size of the clones, without recursion; the call graph must be acyclic.
pub fn clone_recursively(
    program: &mut Program,
    symbols: &mut SymbolTable,
    func: FuncId,
) -> Result<StrId> {
    let mut attrs = ClonedAttrs::default();
    let mut stack = vec![Frame::new(program, &mut attrs, func)];
    loop {
        let Some(frame) = stack.last_mut() else { unreachable!("the outermost frame returns") };
        if let Some(&call) = frame.calls.get(frame.next) {
            frame.next += 1;
            let inner = callee(program, symbols, call)?;
            stack.push(Frame::new(program, &mut attrs, inner));
            continue;
        }
        let clone = frame.clone;
        stack.pop();
        let op = program.functions[clone].op;
        program.insert_op(op, Place::End(program.module_block()));
        let name = symbols.insert(program, clone);
        let Some(caller) = stack.last() else { return Ok(name) };
        program.set_payload(caller.calls[caller.next - 1], Payload::Call(name));
    }
}
