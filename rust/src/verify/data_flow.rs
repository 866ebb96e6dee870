//! Data-flow edges, and computations that values flow through.

use super::Verifier;
use crate::error::Code;
use crate::index::{BlockId, OpId, ValueId};
use crate::ir::{OpKind, ValueDef};

impl Verifier<'_> {
    /// The block of `op`'s only region.
    pub(super) fn body(&self, op: OpId) -> Option<BlockId> {
        let region = self.program.op_regions(op).next()?;
        self.program.region_entry(region).get()
    }
    /// The values that the body of `op` returns.
    pub(super) fn returned(&self, op: OpId) -> Vec<ValueId> {
        let terminator = self.program.region_terminator(op, 0);
        let operands = terminator.map_or(&[][..], |op| self.program.op_operands(op));
        operands.iter().map(|slot| slot.value).collect()
    }
    fn has_static_result(&self, op: OpId) -> bool {
        self.program
            .op_results(op)
            .next()
            .is_some_and(|result| self.program.value_type(result).is_static_tensor())
    }
    /// Checks what all edges need: a static shape, and an owner with no other use. Returns the owner.
    fn edge(&mut self, op: OpId) -> Option<ValueId> {
        if !self.has_static_result(op) {
            self.complain(op, Code::InvalidOp, "the value of an edge has a static shape");
        }
        let owner = self.program.op_operands(op).first()?.value;
        if !self.program.has_one_use(owner) {
            let message = "the value that an edge is for has no other use";
            self.complain(op, Code::InvalidOp, message);
            self.hint("let all users use the result of the edge");
        }
        Some(owner)
    }
    pub(super) fn data_flow_edge(&mut self, op: OpId) {
        let Some(owner) = self.edge(op) else { return };
        let Some(definition) = self.program.defining_op(owner) else { return };
        let is_flow = matches!(
            self.program.kind(definition),
            OpKind::NamedComputation | OpKind::ManualComputation
        );
        let name = self.program.op_name(definition);
        if name.starts_with("sdy.") && !is_flow {
            let message = format!("the value of an edge is not one of {name}");
            self.complain(op, Code::InvalidOp, message);
        }
    }
    pub(super) fn func_data_flow_edge(&mut self, op: OpId) {
        let Some(owner) = self.edge(op) else { return };
        let sound = match self.program.values[owner].def {
            ValueDef::Result(definition) => self.program.kind(definition) == OpKind::Call,
            ValueDef::Arg(block) => {
                self.program.kind(self.program.block_parent_op(block)) == OpKind::Func
            }
        };
        if !sound {
            let message = "its value is an argument of a function or a result of a call";
            self.complain(op, Code::InvalidOp, message);
        }
    }
    pub(super) fn named_computation(&mut self, op: OpId) {
        let args = self.body(op).map_or(Vec::new(), |b| self.program.block_args(b).collect());
        let operands: Vec<ValueId> =
            self.program.op_operands(op).iter().map(|slot| slot.value).collect();
        let results: Vec<ValueId> = self.program.op_results(op).collect();
        let returned = self.returned(op);
        self.same_types(op, ("operand", &operands), ("argument of its body", &args));
        self.same_types(op, ("result", &results), ("value that its body returns", &returned));
    }
    /// Complains unless the two lists have the same types.
    fn same_types(&mut self, op: OpId, outer: (&str, &[ValueId]), inner: (&str, &[ValueId])) {
        let span = self.name_span(op);
        let ((outer_kind, outer), (inner_kind, inner)) = (outer, inner);
        if outer.len() != inner.len() {
            let (a, b) = (outer.len(), inner.len());
            let message = format!("{outer_kind}s: {a}; each is one {inner_kind}: {b}");
            self.complain_at(span, op, Code::TypeMismatch, message);
            return;
        }
        for (i, (&a, &b)) in outer.iter().zip(inner).enumerate() {
            let (a, b) = (self.program.values[a].ty, self.program.values[b].ty);
            if a != b {
                let text = |ty| self.program.text.get(self.program.types.text(ty));
                let (a, b) = (text(a), text(b));
                let message = format!("{outer_kind} {i} is {a}, and the {inner_kind} is {b}");
                self.complain_at(span, op, Code::TypeMismatch, message);
            }
        }
    }
}
