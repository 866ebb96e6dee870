//! Control flow. Predicates are replicated scalars, so that all devices take the same branches and reach the
//! collectives in them.

use crate::index::{Id, OpId, ValueId};
use crate::ir::OpKind;
use crate::spmd::lower::{Lowering, LoweringKind, Task};
use crate::spmd::placement::PlacementId;

impl Lowering<'_, '_, '_> {
    /// Starts to lower a loop or a branch: carried values and branch results get the placements of the results.
    pub fn lower_control(&mut self, op: OpId) {
        let results: Vec<ValueId> = self.emit.program.op_results(op).collect();
        let targets: Vec<PlacementId> = results.iter().map(|&value| self.target(value)).collect();
        let operands: Vec<ValueId> = self.emit.program.operands(op).collect();
        let is_loop = self.emit.program.kind(op) == OpKind::While;
        let mut local = Vec::with_capacity(operands.len());
        for (index, &operand) in operands.iter().enumerate() {
            let held = self.held(operand);
            let target = if is_loop {
                targets.get(index).copied().unwrap_or(held.placement)
            } else {
                let rank = self.placements[held.placement].dims.len();
                self.placements.replicated(rank)
            };
            self.note_sent(op, held, target);
            local.push(self.reshard(held, target).value);
        }
        self.set_operands(op, &local);
        let num_regions = self.emit.program.num_regions(op);
        self.tasks.push(Task::Finish(op));
        for index in (0..num_regions).rev() {
            let region = self.emit.program.region(op, index);
            let args: Vec<ValueId> = match self.emit.program.region_entry(region).get() {
                Some(block) => self.emit.program.block_args(block).collect(),
                None => continue,
            };
            if is_loop {
                for (&arg, &target) in args.iter().zip(&targets) {
                    self.keep(arg, target);
                }
            }
            // The condition of a loop returns its predicate, other regions the results of the op.
            let is_condition = is_loop && index == 0;
            self.tasks.push(Task::EndReturns);
            self.tasks.push(Task::Ops(self.first_op_of_region(op, index)));
            self.tasks.push(Task::BeginReturns(if is_condition {
                vec![self.placements.replicated(0)]
            } else {
                targets.clone()
            }));
        }
        for (&value, &target) in results.iter().zip(&targets) {
            self.keep(value, target);
        }
    }
    /// Completes `op`, whose regions are lowered.
    pub fn finish_regions(&mut self, op: OpId) {
        if self.emit.program.kind(op) == OpKind::ManualComputation {
            self.finish_manual(op);
        }
    }
    /// Starts to lower a named computation, which only `sdy-convert-global-to-local` keeps; false otherwise, and for other ops.
    pub fn lower_named(&mut self, op: OpId) -> bool {
        let is_named = self.emit.program.kind(op) == OpKind::NamedComputation;
        let block = self.emit.program.op_regions(op).next();
        let block = block.and_then(|region| self.emit.program.region_entry(region).get());
        let Some(block) = block.filter(|_| is_named && self.how.global_to_local.is_some()) else {
            return false;
        };
        let operands: Vec<ValueId> = self.emit.program.operands(op).collect();
        let args: Vec<ValueId> = self.emit.program.block_args(block).collect();
        let mut local = Vec::with_capacity(operands.len());
        for (&operand, &arg) in operands.iter().zip(&args) {
            let (held, target) = (self.held(operand), self.target(arg));
            local.push(self.reshard(held, target).value);
            self.keep(arg, target);
        }
        self.set_operands(op, &local);
        let results: Vec<ValueId> = self.emit.program.op_results(op).collect();
        let mut wanted = Vec::with_capacity(results.len());
        for result in results {
            let target = self.target(result);
            self.keep(result, target);
            wanted.push(target);
        }
        self.tasks.push(Task::EndReturns);
        self.tasks.push(Task::Ops(self.emit.program.first_op(block)));
        self.tasks.push(Task::BeginReturns(wanted));
        true
    }
    /// Lowers an optimization barrier: each operand gets the placement of its result.
    pub fn lower_barrier(&mut self, op: OpId) {
        let operands: Vec<ValueId> = self.emit.program.operands(op).collect();
        let results: Vec<ValueId> = self.emit.program.op_results(op).collect();
        let mut local = Vec::with_capacity(operands.len());
        for (&operand, &result) in operands.iter().zip(&results) {
            let held = self.held(operand);
            let target = self.target(result);
            self.note_sent(op, held, target);
            local.push(self.reshard(held, target).value);
        }
        self.set_operands(op, &local);
        for &result in &results {
            let target = self.target(result);
            self.keep(result, target);
        }
    }
    /// Replaces captured values in the regions of `op` by their local values, and erases reshards and annotations there: the
    /// regions compute on local values.
    pub fn capture(&mut self, op: OpId) {
        if self.emit.program.num_regions(op) == 0 {
            return;
        }
        let inside: Vec<OpId> = self.emit.program.pre_order(op).skip(1).collect();
        for inner in inside {
            let treatment = LoweringKind::of(self.emit.program.kind(inner));
            if matches!(treatment, LoweringKind::Reshard | LoweringKind::Drop) {
                if treatment == LoweringKind::Reshard {
                    let operand = self.emit.program.operand(inner, 0);
                    let result = self.emit.program.result(inner, 0);
                    self.emit.program.replace_all_uses(result, operand);
                }
                self.emit.program.erase_op(inner);
                continue;
            }
            let slots = self.emit.program.op_uses(inner);
            for slot in slots {
                let value = self.emit.program.used_value(slot);
                let Some(held) = self.held.get(value.index()).copied().flatten() else { continue };
                let rank = self.placements[held.placement].dims.len();
                let whole = self.placements.replicated(rank);
                let held = self.reshard(held, whole);
                if held.value != value {
                    self.emit.program.set_operand(slot, held.value);
                }
            }
        }
    }
}
