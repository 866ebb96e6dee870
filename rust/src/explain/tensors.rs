//! Tensors and steps of the propagated program, described with the names and lines of the given program.

use super::names::Names;
use crate::attribute::factor_symbol;
use crate::index::{Id, OpId, ShardingId, ValueId};
use crate::ir::{Direction, OpKind, Program, ValueDef};
use crate::mlir::CallSites;
use crate::propagation::explain::{Explanation, Step as Move, Through};
use crate::propagation::observe::Slot;
use crate::spmd::custom_partitioning::called;
use std::sync::Arc;

/// One tensor gets an axis from another one.
#[derive(Clone, Debug)]
pub struct Step {
    /// The tensor that had it.
    pub from: String,
    /// The tensor that gets it.
    pub value: String,
    /// The name of the op that passes it on.
    pub op: String,
    /// The source line of the op.
    pub line: Option<String>,
    /// The letter of the factor of the op's rule, where the op has one.
    pub factor: Option<String>,
    /// Forward to results, backward to operands.
    pub direction: Direction,
    /// The user priority of the greedy run.
    pub priority: i64,
    /// The op-priority step of the greedy run.
    pub step: usize,
}

impl Step {
    /// A step outside of propagation: a constraint that import applies to its operand, a data-flow edge, a reshard.
    pub(super) fn made(
        from: String,
        value: String,
        op: &str,
        line: Option<String>,
        direction: Direction,
    ) -> Self {
        let (op, factor) = (op.to_owned(), None);
        Self { from, value, op, line, factor, direction, priority: 0, step: 0 }
    }
}

/// The propagated program beside the given one.
pub(super) struct Tensors {
    pub given: Arc<Program>,
    pub done: Program,
    pub explanation: Explanation,
    pub names: Names,
    pub calls: CallSites,
}

impl Tensors {
    pub(super) fn new(
        given: Arc<Program>,
        done: Program,
        explanation: Explanation,
        result: &Program,
    ) -> Self {
        let (names, calls) = (Names::new(&given, result), CallSites::new(&given));
        Self { given, done, explanation, names, calls }
    }
    /// The op whose region has `value` as an argument, or that defines it.
    pub(super) fn owner_op(&self, value: ValueId) -> OpId {
        match self.done.def(value) {
            ValueDef::Result(op) => op,
            ValueDef::Arg(block) => self.done.block_parent_op(block),
        }
    }
    pub(super) fn step(&self, step: &Move) -> Step {
        let (op, line, factor) = match step.through {
            Through::Op(op, factor) => {
                let factor = factor.map(|(_, factor)| factor_symbol(factor.index()));
                let (name, is_edge) = self.op_name(op);
                (name, self.line(op), factor.filter(|_| !is_edge))
            }
            Through::Return(_) => ("func.return".to_owned(), None, None),
            Through::Group => ("sdy.sharding_group".to_owned(), None, None),
        };
        Step {
            from: self.slot_name(step.from),
            value: self.slot_name(step.to),
            op,
            line,
            factor,
            direction: step.direction,
            priority: step.priority,
            step: step.step,
        }
    }
    /// The name of `op`, or for a data-flow edge of the op that owns it; and whether it is an edge.
    pub(super) fn op_name(&self, op: OpId) -> (String, bool) {
        let is_edge = matches!(self.done.kind(op), OpKind::DataFlowEdge | OpKind::FuncDataFlowEdge);
        let named = if is_edge {
            let owner = self.done.operands(op).next();
            owner.map_or(op, |owner| self.owner_op(owner))
        } else {
            op
        };
        let name = match self.done.kind(named) {
            OpKind::NamedComputation | OpKind::Func => "func.call".into(),
            _ => called(&self.done, named),
        };
        (name.into_owned(), is_edge)
    }
    pub(super) fn line(&self, op: OpId) -> Option<String> {
        let given = self.names.given_op(&self.given, &self.done, op)?;
        self.calls.op_location(&self.given, given)
    }
    pub(super) fn slot_name(&self, slot: Slot) -> String {
        match slot {
            Slot::Value(value) => self.names.of(&self.given, &self.done, value),
            Slot::FuncResult(_, index) => format!("result {index}"),
        }
    }
    /// The name of `slot` in the given program, where it is annotated.
    pub(super) fn original_name(&self, slot: Slot) -> String {
        match slot {
            Slot::Value(value) => self.names.original(&self.given, &self.done, value),
            Slot::FuncResult(..) => self.slot_name(slot),
        }
    }
    /// The sharding that `slot` had before propagation.
    pub(super) fn initial(&self, slot: Slot) -> ShardingId {
        self.explanation.initial(&self.done, slot)
    }
}
