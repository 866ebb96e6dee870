//! Clones functions together with all functions that they call.

use super::callee;
use crate::error::Result;
use crate::index::{FuncId, Id, IdVec, OpId, StrId};
use crate::ir::{OpKind, Payload, Place, Program, SymbolTable, ValueMap, ORIGINAL_NAME};
use rustc_hash::FxHashMap;

/// A function that is cloned after its callees.
struct Frame {
    func: FuncId,
    /// The range, in the list of calls, of its calls whose callees are not cloned yet.
    next_call: u32,
    end: u32,
}

/// Clones functions together with all functions that they call. Callees are cloned before callers,
/// so that table rows are in the order of the module.
#[derive(Default)]
pub struct FunctionCloner {
    /// For each original function its first clone: further clones get the attributes of that one.
    first_clones: FxHashMap<FuncId, OpId>,
    /// Calls, grouped by function.
    calls: Vec<OpId>,
    /// The range of the calls of each function in that list.
    ranges: IdVec<FuncId, Option<(u32, u32)>>,
    /// The callers of the function whose callees are being cloned, outermost first.
    stack: Vec<Frame>,
    /// Names of clones that are not assigned to calls yet.
    names: Vec<StrId>,
    /// The values of the function that is being cloned.
    map: ValueMap,
}

impl FunctionCloner {
    /// Clones `func` and everything it calls, once for each call, and appends the clones to the
    /// module. Takes linear time in the size of the clones, without recursion; the call graph must
    /// be acyclic.
    pub fn clone_recursively(
        &mut self,
        program: &mut Program,
        symbols: &mut SymbolTable,
        func: FuncId,
    ) -> Result<StrId> {
        self.stack.clear();
        self.names.clear();
        let mut frame = self.frame(program, func);
        loop {
            if frame.next_call < frame.end {
                let call = self.calls[frame.next_call as usize];
                frame.next_call += 1;
                let inner = callee(program, symbols, call)?;
                let inner = self.frame(program, inner);
                self.stack.push(std::mem::replace(&mut frame, inner));
                continue;
            }
            let name = self.clone_one(program, symbols, frame.func);
            let Some(caller) = self.stack.pop() else { return Ok(name) };
            self.names.push(name);
            frame = caller;
        }
    }
    /// The frame of `func`, none of whose callees is cloned yet.
    fn frame(&mut self, program: &Program, func: FuncId) -> Frame {
        if self.ranges.len() <= func.index() {
            self.ranges.resize(program.num_func_ids(), None);
        }
        let (next_call, end) = *self.ranges[func].get_or_insert_with(|| {
            let start = self.calls.len();
            let ops = program.pre_order(program.func_op(func));
            self.calls.extend(ops.filter(|&op| program.kind(op) == OpKind::Call));
            (start as u32, self.calls.len() as u32)
        });
        Frame { func, next_call, end }
    }
    /// Clones `func`; the last of `names` are those of the clones of its callees.
    fn clone_one(
        &mut self,
        program: &mut Program,
        symbols: &mut SymbolTable,
        func: FuncId,
    ) -> StrId {
        let first_made = program.num_made(OpKind::Call);
        let clone = program.clone_function(func, &mut self.map);
        self.name_original(program, func, clone);
        program.insert_op(program.func_op(clone), Place::End(program.module_block()));
        let start = self.calls.len();
        let num_calls = program.num_made(OpKind::Call) - first_made;
        let names = self.names.drain(self.names.len() - num_calls..);
        for (index, name) in names.enumerate() {
            let call = program.made(OpKind::Call, first_made + index);
            program.set_payload(call, Payload::Call(name));
            self.calls.push(call);
        }
        self.ranges.resize(program.num_func_ids(), None);
        self.ranges[clone] = Some((start as u32, self.calls.len() as u32));
        symbols.insert(program, clone)
    }
    /// Records in `clone` the name of the function that `func` was cloned from, or that of `func`.
    fn name_original(&mut self, program: &mut Program, func: FuncId, clone: FuncId) {
        let op = program.func_op(clone);
        if program.attr(op, ORIGINAL_NAME).is_some_and(|text| text.starts_with('"')) {
            program.mark_attrs_changed(op);
        } else if let Some(&first) = self.first_clones.get(&func) {
            program.copy_attrs(first, op);
        } else {
            let name = program.original_name(func);
            let quoted = format!("\"{}\"", program.str(name));
            program.set_attr(op, ORIGINAL_NAME, &quoted);
            self.first_clones.insert(func, op);
        }
    }
}
