//! Ops that return their operand, such as the pads and slices by nothing that JAX puts around windows. The local value of the
//! result is that of the operand, so that a later reshard can move before the op.

use super::super::outcome::OutcomeKind;
use super::super::policy::Policy;
use super::super::results::Results;
use super::Lowering;
use crate::index::OpId;
use crate::mlir::op_attribute;
use std::sync::Arc;

impl Lowering<'_, '_, '_> {
    /// Whether the result of `op` equals its first operand, under the policy that sends the fewest bytes. Manual computations are
    /// not changed.
    pub(super) fn is_identity(&self, op: OpId) -> bool {
        let program = &*self.emit.program;
        let is_free = self.how.policy == Policy::FewestBytes && self.how.global_to_local.is_none();
        if !is_free || self.is_in_manual() {
            return false;
        }
        let has_type =
            || program.type_of(program.result(op, 0)) == self.global_type(program.operand(op, 0));
        match program.op_name(op) {
            "stablehlo.slice" | "stablehlo.reshape" | "stablehlo.convert" => has_type(),
            "stablehlo.pad" => {
                let is_zero = |name| {
                    let numbers = op_attribute(program, op, name).and_then(|list| list.as_ints());
                    numbers.is_some_and(|numbers| numbers.iter().all(|&number| number == 0))
                };
                has_type() && is_zero("edge_padding_low") && is_zero("interior_padding")
            }
            _ => false,
        }
    }
    /// Lowers `op` if its result is its operand.
    pub(super) fn lower_identity(&mut self, op: OpId) -> bool {
        if !self.is_identity(op) {
            return false;
        }
        let held = self.held(self.emit.program.operand(op, 0));
        let result = self.emit.program.result(op, 0);
        let target = self.target(result);
        let has_terms = |placement| !self.placements[placement].partial.is_empty();
        if has_terms(held.placement) || has_terms(target) {
            return false;
        }
        if self.how.results == Results::AsComputed {
            self.note(op, OutcomeKind::Local, Arc::default());
            self.set_held(result, held);
        } else {
            let target = self.wanted_of(result).unwrap_or(target);
            if self.reshard_elements(held, target) > 0 {
                self.note_sent(op, held, target);
            } else {
                self.note(op, OutcomeKind::Local, Arc::default());
            }
            let new = self.reshard(held, target);
            self.set_held(result, new);
        }
        self.dead.push(op);
        true
    }
}
