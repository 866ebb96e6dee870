//! Clones of functions that share nothing with the original: whatever they call is cloned too.

use super::callee;
use crate::error::Result;
use crate::index::{FuncId, StrId};
use crate::ir::{AttrRange, OpKind, Payload, Place, Program, SymbolTable, ValueMap, ORIGINAL_NAME};
use rustc_hash::FxHashMap;

/// A clone under construction.
struct Frame {
    clone: FuncId,
    /// The calls in it that are still to be redirected, by the order in which calls were made.
    next_call: usize,
    end: usize,
}

/// Clones functions together with whatever they call.
#[derive(Default)]
pub struct FunctionCloner {
    /// The attributes of clones of functions that are no clones themselves.
    attrs: FxHashMap<FuncId, AttrRange>,
    stack: Vec<Frame>,
    /// The values of the function that is cloned.
    map: ValueMap,
}

impl FunctionCloner {
    /// Clones `func` and everything it calls, once for each call, and puts all of it at the end of the
    /// module. Linear in the size of the clones, without recursion; the call graph must be acyclic.
    pub fn clone_recursively(
        &mut self,
        program: &mut Program,
        symbols: &mut SymbolTable,
        func: FuncId,
    ) -> Result<StrId> {
        self.stack.clear();
        self.open(program, func);
        loop {
            let Some(frame) = self.stack.last_mut() else {
                unreachable!("the outermost frame returns")
            };
            if frame.next_call < frame.end {
                let call = program.kinds.made(OpKind::Call, frame.next_call);
                frame.next_call += 1;
                let inner = callee(program, symbols, call)?;
                self.open(program, inner);
                continue;
            }
            let clone = frame.clone;
            self.stack.pop();
            let op = program.functions[clone].op;
            program.insert_op(op, Place::End(program.module_block()));
            let name = symbols.insert(program, clone);
            let Some(caller) = self.stack.last() else { return Ok(name) };
            let call = program.kinds.made(OpKind::Call, caller.next_call - 1);
            program.set_payload(call, Payload::Call(name));
        }
    }
    /// Clones `func`; the calls in the clone come next.
    fn open(&mut self, program: &mut Program, func: FuncId) {
        let next_call = program.kinds.num_made(OpKind::Call);
        let clone = program.clone_function(func, &mut self.map);
        let end = program.kinds.num_made(OpKind::Call);
        self.name_original(program, func, clone);
        self.stack.push(Frame { clone, next_call, end });
    }
    /// Has `clone` say what `func` is a clone of, or is itself.
    fn name_original(&mut self, program: &mut Program, func: FuncId, clone: FuncId) {
        let op = program.functions[clone].op;
        if program.attr(op, ORIGINAL_NAME).is_some_and(|text| text.starts_with('"')) {
            program.mark_attrs_changed(op);
        } else if let Some(&range) = self.attrs.get(&func) {
            program.ops[op].attrs = range;
            program.mark_attrs_changed(op);
        } else {
            let name = program.original_name(func);
            let quoted = format!("\"{}\"", program.strings.get(name));
            program.set_attr(op, ORIGINAL_NAME, &quoted);
            self.attrs.insert(func, program.ops[op].attrs);
        }
    }
}
