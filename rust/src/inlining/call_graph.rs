//! The call graph.

use crate::index::{FuncId, Id, OpId, StrId};
use crate::ir::{OpKind, Payload, Program};
use rustc_hash::FxHashMap;

/// The functions of a module by name.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    by_name: FxHashMap<StrId, FuncId>,
    /// Whether there are any calls.
    pub has_calls: bool,
}

impl Calls {
    /// The functions of `program`.
    pub fn new(program: &Program) -> Self {
        let functions = program.functions_in_order();
        let by_name = functions.into_iter().map(|id| (program.func_name(id), id)).collect();
        Self { by_name, has_calls: program.has_any(&[OpKind::Call, OpKind::Composite]) }
    }
    /// The callee of `op`, a call or a composite, if it has a body.
    #[inline]
    pub fn callee(&self, program: &Program, op: OpId) -> Option<FuncId> {
        if self.has_calls {
            self.named_callee(program, op)
        } else {
            None
        }
    }
    fn named_callee(&self, program: &Program, op: OpId) -> Option<FuncId> {
        let name = match (program.kind(op), program.payload(op)) {
            (OpKind::Call, Some(Payload::Call(name))) => *name,
            (OpKind::Composite, _) => program
                .strings()
                .find(program.attr(op, "decomposition")?.trim().strip_prefix('@')?)?,
            _ => return None,
        };
        let func = self.by_name.get(&name).copied()?;
        program.func_body(func).is_some().then_some(func)
    }
    /// `entry` and the functions reachable from it, each after its callees. Iterative, since call
    /// chains may be long.
    pub fn callees_first(&self, program: &Program, entry: FuncId) -> Vec<FuncId> {
        if !self.has_calls {
            return vec![entry];
        }
        let mut seen = vec![false; program.num_func_ids()];
        let mut order = Vec::new();
        let mut stack = vec![(entry, false)];
        while let Some((func, is_done)) = stack.pop() {
            if is_done {
                order.push(func);
                continue;
            }
            if std::mem::replace(&mut seen[func.index()], true) {
                continue;
            }
            stack.push((func, true));
            let ops = program.pre_order(program.func_op(func));
            let called = ops.filter_map(|op| self.callee(program, op));
            stack.extend(called.filter(|func| !seen[func.index()]).map(|func| (func, false)));
        }
        order
    }
}
