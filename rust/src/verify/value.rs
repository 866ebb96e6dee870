//! Checks shardings against the ops around them. The parser has checked that they fit the types of
//! their values.

use super::Verifier;
use crate::error::Code;
use crate::index::{OpId, ShardingId};

impl Verifier<'_> {
    /// Checks that the shardings of the results and block arguments of `op` use no axis that is
    /// manual around it.
    pub(super) fn result_axes(&mut self, op: OpId) {
        let count = self.program.num_results(op);
        let mut checked = ShardingId::NONE;
        for (i, value) in self.program.op_results(op).enumerate() {
            let sharding = self.program.sharding(value);
            if sharding.is_some() && sharding != checked {
                checked = sharding;
                self.bound_axes(op, sharding, false, i, count);
            }
        }
    }
    /// Checks that the block arguments of a function's body have the types of its signature.
    pub(super) fn body_types(&mut self, op: OpId) {
        let Some(id) = self.program.function_of(op).get() else { return };
        let Some(body) = self.program.func_body(id).get() else { return };
        let count = self.program.func_args(id).len();
        if self.program.block_args(body).len() != count {
            let message =
                format!("entry block must have {count} arguments to match function signature");
            self.report_at_sharding(op, Code::TypeMismatch, &message);
        }
    }
    /// Checks the in-shardings of a manual or named computation against its operands.
    pub(super) fn body_args(&mut self, op: OpId) {
        let Some(block) = self.body(op) else { return };
        let count = self.program.num_operands(op);
        let args: Vec<_> = self.program.block_args(block).enumerate().collect();
        for (i, arg) in args {
            self.bound_axes(op, self.program.sharding(arg), true, i, count);
        }
    }
}
