//! Checks the numbers of operands, results and regions of ops of `builtin`, `func` and Shardy, on
//! which passes rely. `crate::stablehlo` checks those of `StableHLO` and CHLO.

use super::parser::{Parser, PendingOp};
use crate::error::{Code, Diagnostic, Result};
use crate::ir::OpKind;
use crate::mlir::meaning::wrong_count;

/// Numbers of operands, results and regions; `None` for any number.
type Arity = (Option<usize>, Option<usize>, Option<usize>);

const fn arity(kind: OpKind) -> Arity {
    const ONE: Option<usize> = Some(1);
    const NO: Option<usize> = Some(0);
    match kind {
        OpKind::Module | OpKind::Func => (NO, NO, ONE),
        OpKind::Mesh => (NO, NO, NO),
        OpKind::FuncReturn | OpKind::SdyReturn | OpKind::MpmdReturn => (None, NO, NO),
        OpKind::ShardingConstraint
        | OpKind::Reshard
        | OpKind::DataFlowEdge
        | OpKind::FuncDataFlowEdge
        | OpKind::PropagationBarrier
        | OpKind::AllGather
        | OpKind::AllSlice
        | OpKind::AllToAll
        | OpKind::CollectivePermute
        | OpKind::AllReduce
        | OpKind::ReduceScatter
        | OpKind::ShardedToUnreduced
        | OpKind::ReplicatedToUnreduced => (ONE, ONE, NO),
        OpKind::ShardingGroup => (ONE, NO, NO),
        OpKind::SdyConstant => (NO, ONE, NO),
        OpKind::ManualComputation | OpKind::NamedComputation => (None, None, ONE),
        _ => (None, None, None),
    }
}

impl Parser<'_> {
    /// Checks the numbers of operands, results and regions of an op that is complete.
    pub(super) fn check_arity(&mut self, pending: &PendingOp) -> Result<()> {
        let kind = pending.name.kind;
        let (program, op) = (&self.program, pending.op);
        let has = [program.num_operands(op), program.num_results(op), program.num_regions(op)];
        let (operands, results, regions) = arity(kind);
        let regions = regions.filter(|_| kind != OpKind::Func || pending.is_generic || has[2] != 0);
        let counts = [
            ("region", regions, has[2]),
            ("result", results, has[1]),
            ("operand", operands, has[0]),
        ];
        for (noun, needs, has) in counts {
            if let Some(wrong) = needs.and_then(|needs| wrong_count(noun, needs, has)) {
                let name = self.program.str(pending.name.id);
                let message = format!("'{name}' op {wrong}");
                let span = self.name_span(pending);
                return Err(Diagnostic::new(Code::InvalidOp, message).at(span).into());
            }
        }
        if has[2] > 0 && pending.name.syntax != crate::ir::Syntax::Generic {
            let span = self.name_span(pending);
            self.notes.note_regions(pending.op, span);
        }
        Ok(())
    }
}
