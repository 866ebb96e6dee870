//! Whether a program makes sense: shardings fit their values, rules their ops, Shardy's ops their
//! own rules.
//!
//! The parser has checked what each attribute says by itself (see [`crate::attribute`]). Here it is
//! checked against the program around it. All mistakes are found, in program order, each with its
//! place in the text where there is one.
//!
//! Assumes that SSA names, symbols and types of calls were resolved. Linear in the program, times the
//! depth in which manual computations are nested.
//!
//! Source: Shardy's verifiers.

mod collective;
mod data_flow;
mod manual;
mod place;
mod propagation_edges;
mod rule;
mod value;

use crate::error::{Code, Diagnostic, Span};
use crate::index::OpId;
use crate::ir::{Direction, OpKind, Payload, Program};
use propagation_edges::Names;

/// Everything that is wrong with `program`.
pub fn verify(program: &Program) -> Vec<Diagnostic> {
    let mut verifier = Verifier { program, names: Names::new(program), diagnostics: Vec::new() };
    for op in program.pre_order(program.module) {
        verifier.op(op);
    }
    verifier.diagnostics
}

/// A verification under way.
struct Verifier<'a> {
    program: &'a Program,
    names: Names,
    diagnostics: Vec<Diagnostic>,
}

impl Verifier<'_> {
    fn op(&mut self, op: OpId) {
        self.values(op);
        self.rule(op);
        self.propagation_edges(op);
        match self.program.kind(op) {
            OpKind::ManualComputation => self.manual_computation(op),
            OpKind::NamedComputation => self.named_computation(op),
            OpKind::ShardingConstraint | OpKind::Reshard => {
                self.requires_sharding(op);
            }
            OpKind::DataFlowEdge => self.data_flow_edge(op),
            OpKind::FuncDataFlowEdge => self.func_data_flow_edge(op),
            OpKind::PropagationBarrier => self.propagation_barrier(op),
            OpKind::AllGather
            | OpKind::AllSlice
            | OpKind::AllToAll
            | OpKind::CollectivePermute
            | OpKind::AllReduce
            | OpKind::ReduceScatter
            | OpKind::ShardedToUnreduced
            | OpKind::ReplicatedToUnreduced => self.collective(op),
            _ => {}
        }
    }
    /// A mistake in `op`, shown at its sharding, or else at its name.
    fn complain(&mut self, op: OpId, code: Code, message: impl Into<String>) {
        let span = self.sharding_span(op).or_else(|| self.name_span(op));
        self.complain_at(span, op, code, message);
    }
    /// A mistake in `op`, shown at `span`.
    fn complain_at(
        &mut self,
        span: Option<Span>,
        op: OpId,
        code: Code,
        message: impl Into<String>,
    ) {
        let name = self.program.op_name(op);
        let mut diagnostic = Diagnostic::new(code, format!("{name}: {}", message.into()));
        diagnostic.span = span;
        self.diagnostics.push(diagnostic);
    }
    fn hint(&mut self, hint: &str) {
        if let Some(last) = self.diagnostics.last_mut() {
            last.hint = Some(hint.to_owned());
        }
    }
    /// Whether `op`, which has one result and needs a sharding for it, has one; complains if not.
    fn requires_sharding(&mut self, op: OpId) -> bool {
        let result = self.program.op_results(op).next();
        let has_sharding = result.is_some_and(|result| self.program.sharding(result).is_some());
        if !has_sharding {
            self.complain(op, Code::InvalidOp, "it has no sharding");
        }
        has_sharding
    }
    fn propagation_barrier(&mut self, op: OpId) {
        if self.program.payload(op) == Some(&Payload::PropagationBarrier(Direction::Both)) {
            let message = "a barrier that lets BOTH directions through does nothing";
            self.complain(op, Code::InvalidOp, message);
            self.hint("allow FORWARD, BACKWARD or NONE, or drop the op");
        }
    }
}

#[cfg(test)]
mod tests;
