//! How many operands, results and regions an op has: what passes take for granted.

use super::parser::{Parser, PendingOp};
use crate::error::{Code, Diagnostic, Result};
use crate::ir::OpKind;
use crate::mlir::meaning::plural;

/// What an op has: operands, results, regions; `None` for any number.
type Arity = (Option<usize>, Option<usize>, Option<usize>);

const fn arity(kind: OpKind) -> Arity {
    const ONE: Option<usize> = Some(1);
    const NO: Option<usize> = Some(0);
    match kind {
        OpKind::Module | OpKind::Func => (NO, NO, ONE),
        OpKind::Mesh => (NO, NO, NO),
        OpKind::FuncReturn | OpKind::SdyReturn | OpKind::StablehloReturn => (None, NO, NO),
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
        | OpKind::ReplicatedToUnreduced
        | OpKind::Reshape
        | OpKind::Transpose
        | OpKind::BroadcastInDim
        | OpKind::Slice
        | OpKind::BitcastConvert
        | OpKind::GetTupleElement => (ONE, ONE, NO),
        OpKind::ShardingGroup => (ONE, NO, NO),
        OpKind::Constant | OpKind::SdyConstant | OpKind::Iota => (NO, ONE, NO),
        OpKind::While => (None, None, Some(2)),
        OpKind::If => (ONE, None, Some(2)),
        OpKind::Case => (ONE, None, None),
        OpKind::Dot | OpKind::DotGeneral | OpKind::Convolution | OpKind::Gather | OpKind::Pad => {
            (Some(2), ONE, NO)
        }
        OpKind::DynamicSlice | OpKind::DynamicUpdateSlice | OpKind::Concatenate | OpKind::Tuple => {
            (None, ONE, NO)
        }
        OpKind::ManualComputation
        | OpKind::NamedComputation
        | OpKind::Reduce
        | OpKind::ReduceWindow
        | OpKind::Scatter
        | OpKind::Sort => (None, None, ONE),
        OpKind::SelectAndScatter => (Some(3), ONE, Some(2)),
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
        let needs = [operands, results, regions];
        let nouns = ["operand", "result", "region"];
        for ((has, needs), noun) in has.into_iter().zip(needs).zip(nouns) {
            if let Some(needs) = needs.filter(|&needs| needs != has) {
                let name = self.program.str(pending.name.id);
                let message = format!("{name} has {}, and this one has {has}", plural(needs, noun));
                let span = self.name_span(pending);
                return Err(Diagnostic::new(Code::InvalidOp, message).at(span).into());
            }
        }
        if has[2] > 0 && pending.name.syntax != crate::ir::Syntax::Generic
            || matches!(kind, OpKind::Case | OpKind::If)
        {
            let span = self.name_span(pending);
            self.notes.note_regions(pending.op, span);
        }
        let is_same = matches!(kind, OpKind::While | OpKind::OptimizationBarrier);
        if is_same && has[0] != has[1] {
            let message = "the op has as many results as operands";
            let span = self.name_span(pending);
            return Err(Diagnostic::new(Code::InvalidOp, message).at(span).into());
        }
        Ok(())
    }
}
