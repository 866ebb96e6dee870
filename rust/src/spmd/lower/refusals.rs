//! Ops that cannot be partitioned.

use super::Lowering;
use crate::error::{Code, Diagnostic, Error, Result};
use crate::index::OpId;
use crate::mlir::op_attribute;

impl Lowering<'_, '_, '_> {
    /// The complaint that `op` cannot be partitioned.
    pub fn refusal(&self, op: OpId, why: &str, hint: &str) -> Error {
        let name = self.emit.program.op_name(op);
        let message = format!("'{name}' op cannot be partitioned: {why}");
        let problem = Diagnostic::new(Code::Unpartitionable, message);
        problem.at_op(self.emit.program, op).with_hint(hint).into()
    }
    /// Fails if `op` does more than compute, or nobody knows what it computes.
    pub(super) fn check_known(&self, op: OpId) -> Result<()> {
        let program = &*self.emit.program;
        let name = program.op_name(op);
        match name {
            "stablehlo.infeed" | "stablehlo.outfeed" | "stablehlo.send" | "stablehlo.recv" => {
                Err(self.refusal(
                    op,
                    "it talks to the host, once in the source program",
                    "take it out of the program",
                ))
            }
            "stablehlo.partition_id" | "stablehlo.replica_id" if self.manual_depth == 0 => {
                Err(self.refusal(
                    op,
                    "the program of all devices asks which device it is",
                    "ask inside a manual computation (shard_map)",
                ))
            }
            "stablehlo.custom_call" if self.context.rules.rule(program, op).is_none() => {
                let target = op_attribute(program, op, "call_target_name");
                let target =
                    target.as_ref().and_then(|value| value.as_str()).unwrap_or("").to_owned();
                Err(self.refusal(
                    op,
                    &format!("nothing is known of custom call target \"{target}\""),
                    "give it a sharding rule with `shardcore.rule`",
                ))
            }
            _ if name.starts_with("stablehlo.")
                || name.starts_with("chlo.")
                || self.context.rules.rule(program, op).is_some() =>
            {
                Ok(())
            }
            _ => Err(self.refusal(
                op,
                "nothing is known of it",
                "give it a sharding rule with `shardcore.rule`",
            )),
        }
    }
}
