//! Checks data-flow edges and named computations.

use super::sdy_types::has_static_shape;
use super::Verifier;
use crate::error::{Code, Diagnostic};
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
        terminator.map_or_else(Vec::new, |op| self.program.operands(op).collect())
    }
    /// Checks what all edge ops require: a static shape, and an owner with no other use. Returns
    /// the owner, which messages call `noun`.
    fn edge(&mut self, op: OpId, noun: &str) -> Option<ValueId> {
        let name = self.program.op_name(op);
        let result = self.program.op_results(op).next()?;
        let ty = self.program.value_type_text(result);
        if !self.program.value_type(result).is_static_tensor() && !has_static_shape(ty) {
            let message = format!("expected {name} to have a static-shaped result. type: '{ty}'");
            self.report_at_sharding(op, Code::InvalidOp, &message);
        }
        let owner = self.program.operands(op).next()?;
        if !self.program.has_one_use(owner) {
            let message = format!("expected {noun} of {name} to have a single user");
            let hint = "let all users use the result of the edge";
            self.report_at_sharding_with_hint(op, Code::InvalidOp, &message, hint);
        }
        Some(owner)
    }
    pub(super) fn data_flow_edge(&mut self, op: OpId) {
        let Some(owner) = self.edge(op, "input") else { return };
        let Some(definition) = self.program.defining_op(owner) else { return };
        let is_flow = matches!(
            self.program.kind(definition),
            OpKind::NamedComputation | OpKind::ManualComputation
        );
        if self.program.op_name(definition).starts_with("sdy.") && !is_flow {
            let message =
                "expected input of sdy.data_flow_edge to not be defined by an SdyDialect op \
                           (other than an sdy.named_computation).";
            let mut problem = self.problem(op, Code::InvalidOp, message);
            problem.span = self.program.name_span(op);
            if let Some(span) = self.program.name_span(definition) {
                problem = problem
                    .with_related(span, "sdy op defining the input of the sdy.data_flow_edge");
            }
            self.report(op, problem);
        }
    }
    pub(super) fn func_data_flow_edge(&mut self, op: OpId) {
        let Some(owner) = self.edge(op, "operand") else { return };
        let (is_sound, what) = match self.program.def(owner) {
            ValueDef::Result(definition) => {
                (self.program.kind(definition) == OpKind::Call, "a result of call op.")
            }
            ValueDef::Arg(block) => {
                let parent = self.program.block_parent_op(block);
                (self.program.kind(parent) == OpKind::Func, "a block argument of a func op.")
            }
        };
        if !is_sound {
            let message = format!("expected operand of sdy.func_data_flow_edge to be {what}");
            self.report_at_sharding(op, Code::InvalidOp, &message);
        }
    }
    /// Checks that the arguments of a named computation's body have the types of the operands.
    pub(super) fn named_computation(&mut self, op: OpId) {
        self.body_args(op);
        let Some(body) = self.body(op) else { return };
        let operands = self.program.operands(op);
        let pairs: Vec<_> = self.program.block_args(body).zip(operands).collect();
        for (i, (arg, operand)) in pairs.into_iter().enumerate() {
            let (inner, outer) =
                (self.program.value_type_text(arg), self.program.value_type_text(operand));
            if self.program.type_of(arg) != self.program.type_of(operand) {
                let message = format!(
                    "expected the type of the {i}'th block argument to match the type of the \
                     corresponding operand: '{inner}' vs '{outer}'"
                );
                let mut problem = Diagnostic::new(Code::TypeMismatch, message);
                problem.span = self.program.name_span(op);
                self.report(op, problem);
            }
        }
    }
}
