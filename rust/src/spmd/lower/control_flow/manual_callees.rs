//! Functions that manual computations call: axes that are manual around a call are manual in the callee.

use crate::axis::AxisRef;
use crate::index::{FuncId, OpId, ValueId};
use crate::ir::{OpKind, Payload};
use crate::spmd::digits::{remove, Digit};
use crate::spmd::lower::Lowering;
use rustc_hash::FxHashMap;

/// The digits along which the body of a function is manual.
#[derive(Clone, Default)]
struct Scope {
    digits: Vec<Digit>,
    /// Whether all its calls are in manual computations.
    is_always: bool,
}

impl Scope {
    fn add(&mut self, digits: &[Digit]) {
        let new = digits.iter().filter(|digit| !self.digits.contains(digit));
        let new: Vec<Digit> = new.copied().collect();
        self.digits.extend(new);
    }
}

impl Lowering<'_, '_, '_> {
    /// The digits that are not manual in each function that manual computations call, directly or through others; without functions
    /// that read the id of their device and are also called elsewhere.
    pub(in crate::spmd::lower) fn digits_free_in_callees(&self) -> FxHashMap<FuncId, Vec<Digit>> {
        let program = &*self.emit.program;
        if !program.has_any(&[OpKind::ManualComputation]) {
            return FxHashMap::default();
        }
        let calls: Vec<(FuncId, FuncId, Scope)> = program
            .ops_of(&[OpKind::Call])
            .into_iter()
            .filter_map(|call| self.scope_of_call(call))
            .collect();
        let mut calls_of: FxHashMap<FuncId, Vec<(FuncId, Scope)>> = FxHashMap::default();
        let mut num_callers: FxHashMap<FuncId, usize> = FxHashMap::default();
        for (caller, callee, around) in calls {
            num_callers.entry(caller).or_default();
            *num_callers.entry(callee).or_default() += 1;
            calls_of.entry(caller).or_default().push((callee, around));
        }
        // No function calls itself, so that each is reached once all calls of it are known.
        let mut ready: Vec<FuncId> =
            num_callers.iter().filter_map(|(&func, &count)| (count == 0).then_some(func)).collect();
        let mut scopes: FxHashMap<FuncId, Scope> = FxHashMap::default();
        while let Some(caller) = ready.pop() {
            let scope = scopes.get(&caller).cloned().unwrap_or_default();
            for (callee, around) in calls_of.remove(&caller).unwrap_or_default() {
                let known = scopes
                    .entry(callee)
                    .or_insert_with(|| Scope { digits: Vec::new(), is_always: true });
                known.add(&scope.digits);
                known.add(&around.digits);
                known.is_always &= scope.is_always || around.is_always;
                let Some(left) = num_callers.get_mut(&callee) else { continue };
                *left -= 1;
                if *left == 0 {
                    ready.push(callee);
                }
            }
        }
        let asks = |func: FuncId| {
            let root = program.func_op(func);
            let mut ops =
                std::iter::successors(Some(root), |&op| program.next_in_pre_order(op, root));
            ops.any(|op| program.op_name(op) == "stablehlo.partition_id")
        };
        scopes.retain(|&func, scope| scope.is_always || !scope.digits.is_empty() && !asks(func));
        let free = |scope: Scope| {
            let mut free = self.devices();
            for digit in scope.digits {
                // A digit that is not free any more was manual in an outer computation.
                let _ = remove(&mut free, digit);
            }
            free
        };
        scopes.into_iter().map(|(func, scope)| (func, free(scope))).collect()
    }
    /// The function that holds `call`, its callee, and the manual digits around it.
    fn scope_of_call(&self, call: OpId) -> Option<(FuncId, FuncId, Scope)> {
        let program = &*self.emit.program;
        let Some(Payload::Call(name)) = program.payload(call) else { return None };
        let callee = *self.functions.get(name)?;
        let mut scope = Scope::default();
        let mut at = call;
        while let Some(parent) = program.parent_op(at) {
            match program.kind(parent) {
                OpKind::ManualComputation => {
                    scope.is_always = true;
                    scope.add(&self.manual_digits(parent));
                }
                OpKind::Func => return Some((program.function_of(parent), callee, scope)),
                _ => {}
            }
            at = parent;
        }
        None
    }
    /// The digits that are manual in `op`, a manual computation.
    pub(in crate::spmd::lower) fn manual_digits(&self, op: OpId) -> Vec<Digit> {
        let program = &*self.emit.program;
        let region = program.region(op, 0);
        let args = program.region_entry(region).get().into_iter();
        let args = args.flat_map(|block| program.block_args(block));
        let values: Vec<ValueId> = args.chain(program.op_results(op)).collect();
        let mesh = values
            .iter()
            .find_map(|&value| Some(program.shardings().get(program.sharding(value))?.mesh));
        let Some(mesh) = mesh.map(|mesh| program.mesh(mesh)) else { return Vec::new() };
        let axes = self.manual_axes(op, mesh).into_iter();
        axes.map(|axis| Digit::of_axis(AxisRef::full(axis), mesh)).collect()
    }
}
