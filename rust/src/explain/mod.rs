//! Why a value is sharded as it is: for each axis the propagation steps from a user's annotation, in the names of the given
//! program.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`absence`] | why an axis is not on a dim |
//! | [`collective_context`] | the tensors of an op that required a collective |
//! | [`frames`] | what each visit changed |
//! | [`names`] | the name that a value of the propagated program has in the given one |
//! | [`tensors`] | tensors and steps in words |
//! | [`source`] | which annotation an axis comes from |
//!
//! [`crate::propagation::explain`] finds the steps.

mod absence;
mod collective_context;
mod frames;
mod names;
mod source;
mod tensors;

use crate::index::{Id, OpId, ShardingId, ValueId};
use crate::inlining::call_graph::Calls;
use crate::ir::{Direction, OpKind, Payload, Program, ValueDef};
use crate::propagation::explain::{AxisName, Code, Explanation, Neighbours, Path, Place};
use crate::propagation::observe::Slot;
use crate::sharding::TensorSharding;
pub use absence::{Missing, Reason};
pub use collective_context::CollectiveContext;
pub use frames::{Frame, Visit};
pub use source::{Kind, Source};
use std::sync::Arc;
pub use tensors::Step;
use tensors::Tensors;

/// Where an axis of a value comes from.
#[derive(Clone, Debug)]
pub struct AxisSource {
    /// The axis.
    pub axis: AxisName,
    /// The dim that has it.
    pub dim: usize,
    /// The user's annotation.
    pub source: Source,
    /// The steps from the annotation to the value.
    pub chain: Vec<Step>,
}

/// A program whose propagation can be explained.
pub struct Explained {
    tensors: Tensors,
    /// The ops around each tensor, computed for the first [`Explained::missing`].
    around: Option<Neighbours>,
    /// The functions of the completed program.
    calls: Calls,
}

impl Explained {
    /// The explanation of `done`, which was propagated from `given`; `result` is the completed program.
    pub fn new(
        given: Arc<Program>,
        done: Program,
        explanation: Explanation,
        result: &Program,
    ) -> Self {
        let tensors = Tensors::new(given, done, explanation, result);
        Self { tensors, around: None, calls: Calls::new(result) }
    }
    /// Where the axes of `value` of `result`, the completed program, come from.
    pub fn value(&mut self, result: &Program, value: ValueId) -> Vec<AxisSource> {
        let sharding = result.visible_sharding(value);
        sources(result, sharding.as_deref(), |axis| self.axis(result, value, axis))
    }
    /// Where the axes of a result of the entry function of `result`, the completed program, come from.
    pub fn func_result(&mut self, result: &Program, index: usize) -> Vec<AxisSource> {
        let Some(func) = result.entry_function() else { return Vec::new() };
        let port = result.func_results(func).get(index).map(|port| port.sharding);
        let sharding = port.and_then(|id| result.shardings().get(id));
        sources(result, sharding, |axis| {
            let slot = Slot::FuncResult(func, index);
            self.slot(slot, axis).or_else(|| self.returned(result, index, axis))
        })
    }
    /// Why `axis` is not on dim `dim` of `value` of `result`, the completed program; `None` for a value that the export created.
    pub fn missing(
        &mut self,
        result: &Program,
        value: ValueId,
        dim: usize,
        axis: &AxisName,
    ) -> Option<Missing> {
        let value = before_reshards(result, value);
        if value.index() >= self.tensors.done.num_value_ids() {
            return None;
        }
        let slot = self.tensors.explanation.slot_of(value)?;
        if let Some(op) = manual_around(result, value, axis) {
            let at = (self.result_name(result, value), dim);
            let op = Some((self.tensors.op_name(op).0, self.tensors.line(op)));
            return Some(Missing {
                reason: Reason::Propagation(Code::Manual),
                at,
                op,
                instead: None,
            });
        }
        Some(self.missing_at(Place { slot, dim }, axis))
    }
    /// Why `axis` is not on dim `dim` of a result of the entry function.
    pub fn missing_in_result(
        &mut self,
        index: usize,
        dim: usize,
        axis: &AxisName,
    ) -> Option<Missing> {
        let func = self.tensors.done.entry_function()?;
        Some(self.missing_at(Place { slot: Slot::FuncResult(func, index), dim }, axis))
    }
    /// All greedy runs, in order, with what each visit changed. Shardings are those of [`Explained::sharding_text`].
    pub fn frames(&self) -> Vec<Frame> {
        self.tensors.frames()
    }
    /// The text of a sharding of the propagated program; `None` for no sharding.
    pub fn sharding_text(&self, sharding: ShardingId) -> Option<String> {
        self.tensors.sharding_text(sharding)
    }
    /// The operands and results of the op of the given program that `op` of `program` is or was cloned from; `None` if there is
    /// none.
    pub fn around(&self, program: &Program, op: OpId) -> Option<CollectiveContext> {
        self.tensors.around(program, op)
    }
    /// The annotation on `value` itself in the given program, if there is one.
    pub fn annotation(&self, value: ValueId) -> Option<Source> {
        self.tensors.annotation(value)
    }
    /// The name of `value` in the given program.
    pub fn name(&self, value: ValueId) -> String {
        self.tensors.names.of(&self.tensors.given, &self.tensors.done, value)
    }
    fn missing_at(&mut self, place: Place, axis: &AxisName) -> Missing {
        let around = self.around.get_or_insert_with(|| self.tensors.explanation.neighbours());
        self.tensors.missing(around, place, axis)
    }
    /// The source of `axis` on a result of the entry function, if the export copied it from the returned value.
    fn returned(
        &mut self,
        result: &Program,
        index: usize,
        axis: &AxisName,
    ) -> Option<(Source, Vec<Step>)> {
        let func = result.entry_function()?;
        let last = result.last_op(result.func_body(func).get()?).get()?;
        let value = result.operands(last).nth(index)?;
        let (source, mut chain) = self.axis(result, value, axis)?;
        let to = format!("result {index}");
        let from = chain.last().map_or_else(|| source.name.clone(), |step| step.value.clone());
        chain.push(Step::made(from, to, "func.return", None, Direction::Forward));
        Some((source, chain))
    }

    fn axis(
        &mut self,
        result: &Program,
        value: ValueId,
        axis: &AxisName,
    ) -> Option<(Source, Vec<Step>)> {
        let known = self.known(value, axis);
        let Some((source, mut chain)) = known else { return self.resharded(result, value, axis) };
        let to = self.tensors.names.of(&self.tensors.given, &self.tensors.done, value);
        let last = chain.last().map_or(&source.name, |step| &step.value);
        if *last != to {
            // The value shares the sharding of the owner of a data-flow edge.
            let from = last.clone();
            let op = self.tensors.owner_op(value);
            let direction = Direction::Both;
            let (name, line) = (self.tensors.op_name(op).0, self.tensors.line(op));
            chain.push(Step::made(from, to, &name, line, direction));
        }
        Some((source, chain))
    }

    /// The source of `axis` on a value that has it by propagation.
    fn known(&mut self, value: ValueId, axis: &AxisName) -> Option<(Source, Vec<Step>)> {
        if value.index() >= self.tensors.done.num_value_ids() {
            return None;
        }
        let slot = self.tensors.explanation.slot_of(value)?;
        self.slot(slot, axis)
    }

    /// The source of `axis` on a value that has it by a reshard that the export inserted: the operand of the reshard, or else
    /// another tensor of the op that needs it.
    fn resharded(
        &mut self,
        result: &Program,
        value: ValueId,
        axis: &AxisName,
    ) -> Option<(Source, Vec<Step>)> {
        /// The most ops that are visited.
        const MOST: usize = 64;
        let mut near: Vec<OpId> = result.defining_op(value).into_iter().collect();
        let cause = near.first().and_then(|&op| result.cause(op));
        near.extend(cause);
        near.extend(result.users(value));
        // What the export makes of the value.
        let mut forms = vec![value];
        let mut next = 0;
        while let Some(&op) = near.get(next).filter(|_| next < MOST) {
            next += 1;
            if result.is_erased(op) {
                // A constraint that became collectives.
                let is_made = self.is_made(op);
                let results = self.tensors.done.op_results(op).filter(|_| !is_made);
                let results: Vec<ValueId> = results.collect();
                let known = results.into_iter().find_map(|tensor| self.known(tensor, axis));
                if let Some(known) = known {
                    return Some(self.brought(result, value, (near[0], op), known));
                }
                continue;
            }
            if result.operands(op).any(|operand| forms.contains(&operand)) && self.is_made(op) {
                forms.extend(result.op_results(op));
            }
            let mut tensors: Vec<ValueId> =
                result.operands(op).chain(result.op_results(op)).collect();
            tensors.extend(self.in_callee(result, op, &forms));
            for tensor in tensors {
                for tensor in [tensor, before_reshards(result, tensor)] {
                    if tensor != value {
                        if let Some(known) = self.known(tensor, axis) {
                            return Some(self.brought(result, value, (near[0], op), known));
                        }
                    }
                }
                let tensor = before_reshards(result, tensor);
                let around = result.defining_op(tensor).into_iter().chain(result.users(tensor));
                let new: Vec<OpId> = around.filter(|op| !near.contains(op)).collect();
                near.extend(new);
            }
        }
        None
    }

    /// The explanation of an axis that the reshard `by`, which defines `value`, adds because of the op `cause`: `known` explains
    /// that axis on another tensor of `cause`.
    fn brought(
        &self,
        result: &Program,
        value: ValueId,
        (by, cause): (OpId, OpId),
        (source, mut chain): (Source, Vec<Step>),
    ) -> (Source, Vec<Step>) {
        let last = chain.last().map_or(&source.name, |step| &step.value).clone();
        let to = self.result_name(result, value);
        let line = self.tensors.calls.op_location(result, cause);
        chain.push(Step::made(last, to, result.op_name(by), line, Direction::Both));
        (source, chain)
    }

    /// Whether the export created `op`.
    fn is_made(&self, op: OpId) -> bool {
        op.index() >= self.tensors.done.num_op_ids()
    }

    /// The values in the callee of `op` that correspond to operands or results of the call among `forms`: calls that share a
    /// function have its shardings.
    fn in_callee(&self, result: &Program, op: OpId, forms: &[ValueId]) -> Vec<ValueId> {
        let callee = self.calls.callee(result, op);
        let Some(body) = callee.and_then(|func| result.func_body(func).get()) else {
            return Vec::new();
        };
        let is_form = |&(_, tensor): &(usize, ValueId)| forms.contains(&tensor);
        let passed = result.operands(op).enumerate().filter(is_form);
        let arguments = passed.map(|(index, _)| result.block_arg(body, index));
        let made = result.op_results(op).enumerate().filter(is_form);
        let returned = result.last_op(body).get();
        let results = made.filter_map(|(index, _)| result.operands(returned?).nth(index));
        arguments.chain(results).collect()
    }

    /// The name of `value` of the completed program, in the given program if it is in that.
    fn result_name(&self, result: &Program, value: ValueId) -> String {
        if value.index() < self.tensors.done.num_value_ids() {
            self.tensors.names.of(&self.tensors.given, &self.tensors.done, value)
        } else {
            result.value_name(value)
        }
    }

    /// The source of `axis` on `slot`.
    fn slot(&mut self, slot: Slot, axis: &AxisName) -> Option<(Source, Vec<Step>)> {
        let path = self.tensors.explanation.path(&mut self.tensors.done, slot, axis)?;
        let Path { source: start, axis, sharding, steps } = path;
        let (source, first) = self.tensors.source(start, &axis, sharding);
        // The chain goes on from the tensor as the steps call it.
        let name = self.tensors.slot_name(start);
        let first = match first {
            Some(step) => Some(Step { value: name, ..step }),
            None if source.name == name => None,
            None => {
                Some(Step::made(source.name.clone(), name, "func.call", None, Direction::Forward))
            }
        };
        let chain =
            first.into_iter().chain(steps.iter().map(|step| self.tensors.step(step))).collect();
        Some((source, chain))
    }
}

/// The innermost manual computation around `value` in which `axis` is manual.
fn manual_around(program: &Program, value: ValueId, axis: &AxisName) -> Option<OpId> {
    let mut around = match program.def(value) {
        ValueDef::Result(op) => program.parent_op(op),
        ValueDef::Arg(block) => Some(program.block_parent_op(block)),
    };
    while let Some(op) = around {
        if let Some(Payload::ManualComputation(axes)) = program.payload(op) {
            if axes.iter().any(|&name| program.str(name) == axis.name) {
                return Some(op);
            }
        }
        around = program.parent_op(op);
    }
    None
}

/// The value of which `value` is a reshard, directly or through others.
pub fn before_reshards(program: &Program, value: ValueId) -> ValueId {
    let mut value = value;
    while let Some(op) = program.defining_op(value) {
        if program.kind(op) != OpKind::Reshard {
            break;
        }
        value = program.operand(op, 0);
    }
    value
}

/// The sources of the axes of `sharding`, each by `source_of`.
fn sources(
    program: &Program,
    sharding: Option<&TensorSharding>,
    mut source_of: impl FnMut(&AxisName) -> Option<(Source, Vec<Step>)>,
) -> Vec<AxisSource> {
    let Some(sharding) = sharding else { return Vec::new() };
    let mesh = program.mesh(sharding.mesh);
    let mut found = Vec::new();
    for (dim, row) in sharding.dims.iter().enumerate() {
        for axis in &row.axes {
            let axis = AxisName { name: mesh.axis_name(axis.axis).to_owned(), sub: axis.sub };
            let known = source_of(&axis);
            found.extend(known.map(|(source, chain)| AxisSource { axis, dim, source, chain }));
        }
    }
    found
}
