//! Refuses ops that cannot be partitioned, with the reason.

use super::super::unknown_ops::UnknownOps;
use super::lowering_kind::{is_computed_whole, refused};
use super::Lowering;
use crate::error::{Code, Diagnostic, Error, Result};
use crate::index::OpId;
use crate::ir::OpKind;

impl Lowering<'_, '_, '_> {
    /// The error that `op` cannot be partitioned.
    pub fn refusal(&self, op: OpId, why: &str, hint: &str) -> Error {
        let name = self.emit.program.op_name(op);
        let message = format!("'{name}' op cannot be partitioned: {why}");
        let problem = Diagnostic::new(Code::Unpartitionable, message);
        problem.at_op(self.emit.program, op).with_hint(hint).into()
    }
    /// Fails if `op` has side effects or unknown semantics, unless such ops are to be replicated.
    pub(super) fn check_known(&mut self, op: OpId) -> Result<()> {
        if self.how.unknown == UnknownOps::Replicate {
            return Ok(());
        }
        if self.emit.program.kind(op) == OpKind::CustomCall {
            return self.check_custom_call(op);
        }
        let program = &*self.emit.program;
        if self.known_names.contains(&program.op_name_id(op)) {
            return Ok(());
        }
        let name = program.op_name(op);
        if let Some((why, hint)) = refused(name) {
            return Err(self.refusal(op, why, hint));
        }
        match name {
            "stablehlo.partition_id" | "stablehlo.replica_id" if self.is_in_manual() => Ok(()),
            "stablehlo.partition_id" | "stablehlo.replica_id" => Err(self.refusal(
                op,
                "the program of all devices asks which device it is",
                "ask inside a manual computation (shard_map)",
            )),
            _ if is_computed_whole(name) => {
                self.known_names.insert(program.op_name_id(op));
                Ok(())
            }
            _ if self.context.rules.rule(program, op).is_some() => Ok(()),
            _ => Err(self.refusal(
                op,
                "nothing is known of it",
                "give it a sharding rule with `shardcore.rule`",
            )),
        }
    }
}
