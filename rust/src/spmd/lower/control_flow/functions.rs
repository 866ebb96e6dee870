//! Functions, calls and returns.

use crate::error::Result;
use crate::index::{FuncId, OpId, TypeId, ValueId};
use crate::ir::Payload;
use crate::spmd::digits::Digit;
use crate::spmd::lower::{LocalValue, Lowering, Task};
use crate::spmd::placement::PlacementId;
use crate::spmd::unknown_ops::UnknownOps;

impl Lowering<'_, '_, '_> {
    /// Lowers the body of `func` and gives it local types. `free` are the digits that are not manual in it, if it is called in
    /// manual computations.
    pub fn lower_function(&mut self, func: FuncId, free: Option<&Vec<Digit>>) -> Result<()> {
        if let Some(free) = free {
            self.free_digits.push(free.clone());
            self.plans.clear();
        }
        let results = self.result_placements(func);
        let args = self.arg_placements(func);
        let body = self.emit.program.func_body(func);
        if let Some(body) = body.get() {
            let values: Vec<ValueId> = self.emit.program.block_args(body).collect();
            for (&arg, &placement) in values.iter().zip(&args) {
                self.keep(arg, placement);
            }
            self.returns.push(results.clone());
            let first = self.emit.program.first_op(body);
            if let (true, Some(first)) = (self.sends_from_single, first.get()) {
                self.broadcast_arguments(func, &values, first);
            }
            self.tasks.push(Task::Ops(first));
            self.run()?;
            self.returns.pop();
        }
        if free.is_some() {
            self.free_digits.pop();
            self.plans.clear();
        }
        for (index, &placement) in args.iter().enumerate() {
            let ty = self.emit.program.func_args(func)[index].ty;
            let ty = self.local_type(ty, placement);
            self.emit.program.set_func_arg_type(func, index, ty);
        }
        for (index, &placement) in results.iter().enumerate() {
            let ty = self.emit.program.func_results(func)[index].ty;
            let ty = self.local_type(ty, placement);
            self.emit.program.set_func_result_type(func, index, ty);
        }
        Ok(())
    }
    fn arg_placements(&mut self, func: FuncId) -> Vec<PlacementId> {
        let types: Vec<TypeId> =
            self.emit.program.func_args(func).iter().map(|port| port.ty).collect();
        let list = types.into_iter().enumerate().map(|(index, ty)| {
            let sharding = self.emit.program.func_arg_sharding(func, index);
            self.placement_of(sharding, ty)
        });
        list.collect()
    }
    fn result_placements(&mut self, func: FuncId) -> Vec<PlacementId> {
        let ports = self.emit.program.func_results(func).to_vec();
        ports.iter().map(|port| self.placement_of(port.sharding, port.ty)).collect()
    }

    /// Lowers a call: operands are resharded to the shardings of the callee's arguments. A callee may have been lowered
    /// before and have local types, so that placements are taken from its shardings only.
    pub fn lower_call(&mut self, op: OpId) -> Result<()> {
        let callee = match self.emit.program.payload(op) {
            Some(Payload::Call(name)) => self.functions.get(name).copied(),
            _ => None,
        };
        let Some(callee) = callee else {
            if self.how.unknown == UnknownOps::Replicate {
                self.lower_whole(op);
                return Ok(());
            }
            return Err(self.refusal(op, "its callee is unknown", "define the function"));
        };
        let args = self.arg_placements(callee);
        let results = self.result_placements(callee);
        let operands: Vec<ValueId> = self.emit.program.operands(op).collect();
        let mut local = Vec::with_capacity(operands.len());
        for (&operand, &placement) in operands.iter().zip(&args) {
            let held = self.held(operand);
            self.note_sent(op, held, placement);
            local.push(self.reshard(held, placement).value);
        }
        self.set_operands(op, &local);
        self.drop_dict_as_shardy(op);
        let values: Vec<ValueId> = self.emit.program.op_results(op).collect();
        for (&value, &placement) in values.iter().zip(&results) {
            let target = self.target(value);
            self.settle(op, value, placement, target);
        }
        Ok(())
    }
    /// Records that `value`, a result of `op`, has the placement `placement`, and reshards it to `target` after the op.
    pub fn settle(
        &mut self,
        op: OpId,
        value: ValueId,
        placement: PlacementId,
        target: PlacementId,
    ) {
        let held = self.keep(value, placement);
        self.settle_held(op, value, held, target);
    }
    /// Reshards `held`, which was computed from `value`, a result of `op`, to `target` after the op, unless `value` already has an
    /// equal reshard. A value without uses is not resharded.
    pub fn settle_held(&mut self, op: OpId, value: ValueId, held: LocalValue, target: PlacementId) {
        let is_used = self.emit.program.users(value).next().is_some();
        if is_used && (held.placement != target || held.value != value) {
            self.emit.go_after(op);
            let first = self.held(value);
            self.note_sent(op, first, target);
            let new = self.reshard(held, target);
            self.set_held(value, new);
        }
    }

    /// Lowers a terminator: its operands are resharded to the placements that the enclosing op expects.
    pub fn lower_return(&mut self, op: OpId) {
        let wanted = self.returns.last().cloned().unwrap_or_default();
        let operands: Vec<ValueId> = self.emit.program.operands(op).collect();
        let mut local = Vec::with_capacity(operands.len());
        for (index, &operand) in operands.iter().enumerate() {
            let held = self.held(operand);
            let placement = wanted.get(index).copied().unwrap_or(held.placement);
            self.note_sent(op, held, placement);
            local.push(self.reshard(held, placement).value);
        }
        self.set_operands(op, &local);
        self.drop_dict_as_shardy(op);
    }
    /// The first op of the `index`-th region of `op`.
    pub fn first_op_of_region(&self, op: OpId, index: usize) -> OpId {
        let program = &*self.emit.program;
        let region = program.region(op, index);
        program
            .region_entry(region)
            .get()
            .map_or_else(OpId::default, |block| program.first_op(block))
    }
}
