//! Finds the span of the shardings of an op's results in the source text, since the program's
//! tables do not store it.

use super::Verifier;
use crate::error::Span;
use crate::index::OpId;
use crate::ir::OpKind;

impl Verifier<'_> {
    /// The span of the sharding of the results of `op`.
    pub(super) fn sharding_span(&self, op: OpId) -> Option<Span> {
        let name = match self.program.kind(op) {
            OpKind::ShardingConstraint | OpKind::Reshard => {
                return self.program.attr_span_from(op, &["<@", "<mesh"]);
            }
            OpKind::ManualComputation | OpKind::NamedComputation | OpKind::Fragment => {
                "out_shardings"
            }
            OpKind::DataFlowEdge => "sharding",
            kind if kind.is_collective() => "out_sharding",
            _ => "sdy.sharding",
        };
        self.program.attr_span(op, name)
    }
}
