//! Which annotation an axis comes from, and how it got to the value that had it before propagation.

use super::tensors::{Step, Tensors};
use crate::attribute::print_sharding;
use crate::index::{FuncId, OpId, ShardingId, ValueId};
use crate::ir::{Direction, OpKind, Payload, Program, ValueDef};
use crate::propagation::explain::{part_in, AxisName};
use crate::propagation::observe::Slot;

/// What carries the annotation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// An argument of a function.
    Argument,
    /// A result of a function.
    Result,
    /// A sharding constraint.
    Constraint,
    /// Another member of a sharding group.
    Group,
    /// The op that makes the value.
    Op,
    /// A manual computation.
    Manual,
}

impl Kind {
    /// The name in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Argument => "argument",
            Self::Result => "result",
            Self::Constraint => "constraint",
            Self::Group => "group",
            Self::Op => "op",
            Self::Manual => "manual",
        }
    }
}

/// An annotation.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name, in the given program, of what is annotated.
    pub name: String,
    /// What carries the annotation.
    pub kind: Kind,
    /// The path of an argument or result in the user's program.
    pub label: Option<String>,
    /// The source line.
    pub location: Option<String>,
    /// The annotation.
    pub sharding: String,
}

impl Tensors {
    /// The annotation from which `slot` has `sharding`, with `axis` in it, before propagation; and the step from there to `slot`
    /// that import made, if any.
    pub(super) fn source(
        &self,
        slot: Slot,
        axis: &AxisName,
        sharding: ShardingId,
    ) -> (Source, Option<Step>) {
        let Slot::Value(value) = slot else {
            let Slot::FuncResult(_, index) = slot else { return self.of(slot, Kind::Op, sharding) };
            return (self.func_result_source(self.given.entry_function(), index, sharding), None);
        };
        let owner = self.owner(value);
        let known = self.names.given_value(&self.given, &self.done, value);
        if let Some(kind) = known.and_then(|known| self.own_kind(known, axis)) {
            return self.of(slot, kind, sharding);
        }
        if let Some(found) = self.constrained(value, owner, axis) {
            return found;
        }
        if let Some(found) = self.callee_result(owner, sharding) {
            return found;
        }
        if let Some(found) = known.and_then(|known| self.constrained_as_given(value, known, axis)) {
            return found;
        }
        match self.group(value, owner, axis) {
            Some(group) => self.grouped(slot, group, sharding),
            None => self.of(slot, Kind::Op, sharding),
        }
    }

    /// The sharding group of `value`, whose owner is `owner`, by its number in the given program: import merges groups that share a
    /// value. If it is in several, one that has another member with `axis`.
    fn group(&self, value: ValueId, owner: ValueId, axis: &AxisName) -> Option<i64> {
        let members = self.explanation.grouped_with(value);
        if members.len() < 2 {
            return None;
        }
        let ids_of = |value: ValueId| {
            let given = self.names.given_value(&self.given, &self.done, value);
            let users = given.into_iter().flat_map(|given| self.given.users(given));
            users.filter_map(|op| match self.given.payload(op) {
                Some(&Payload::ShardingGroup(id)) => Some(id),
                _ => None,
            })
        };
        let own: Vec<i64> = [value, owner].into_iter().flat_map(ids_of).collect();
        let others = || members.iter().filter(|&&member| member != value && member != owner);
        let any = || others().flat_map(|&member| ids_of(member)).next();
        let mut with_axis = None;
        if own.len() > 1 {
            let annotated = others().filter(|&&member| self.is_annotated(member, axis));
            let annotated: Vec<i64> = annotated.flat_map(|&member| ids_of(member)).collect();
            with_axis = own.iter().copied().find(|id| annotated.contains(id));
        }
        with_axis.or(own.first().copied()).or_else(any)
    }

    /// Whether `value`, or a constraint on it, is annotated with `axis` in the given program.
    fn is_annotated(&self, value: ValueId, axis: &AxisName) -> bool {
        self.names.given_value(&self.given, &self.done, value).is_some_and(|given| {
            self.own_kind(given, axis).is_some() || self.written_constraint(given, axis).is_some()
        })
    }

    /// The group that gave `slot` its sharding.
    fn grouped(&self, slot: Slot, group: i64, sharding: ShardingId) -> (Source, Option<Step>) {
        let (name, kind) = (format!("group {group}"), Kind::Group);
        let to = self.slot_name(slot);
        let step = Step::made(name.clone(), to, "sdy.sharding_group", None, Direction::Both);
        let sharding = self.text(sharding);
        (Source { name, kind, label: None, location: None, sharding }, Some(step))
    }

    /// The owner of `value`, if it is a data-flow edge, else `value`.
    fn owner(&self, value: ValueId) -> ValueId {
        match self.done.defining_op(value) {
            Some(op) if self.done.kind(op) == OpKind::DataFlowEdge => self.done.operand(op, 0),
            _ => value,
        }
    }

    /// The kind of the annotation on `value` of the given program, if that has `axis`.
    fn own_kind(&self, value: ValueId, axis: &AxisName) -> Option<Kind> {
        part_in(&self.given, self.given.sharding(value), axis)?;
        Some(self.kind_of(value))
    }

    /// The kind of the annotation on `value` of the given program.
    fn kind_of(&self, value: ValueId) -> Kind {
        let (op, is_arg) = match self.given.def(value) {
            ValueDef::Result(op) => (op, false),
            ValueDef::Arg(block) => (self.given.block_parent_op(block), true),
        };
        match self.given.kind(op) {
            OpKind::Func if is_arg => Kind::Argument,
            OpKind::ShardingConstraint => Kind::Constraint,
            OpKind::ManualComputation => Kind::Manual,
            _ => Kind::Op,
        }
    }

    /// The annotation `sharding` on `value` of the given program, whose tensor is `slot`.
    pub(super) fn own(&self, slot: Slot, value: ValueId, sharding: ShardingId) -> Source {
        let sharding = self.given.shardings().get(sharding);
        let text = sharding.map_or_else(String::new, |own| print_sharding(own, &*self.given));
        let (source, _) = self.of(slot, self.kind_of(value), ShardingId::NONE);
        Source { sharding: text, ..source }
    }

    /// The constraint on `owner`, or the manual computation that reads it, whose sharding import moved to it.
    fn constrained(
        &self,
        value: ValueId,
        owner: ValueId,
        axis: &AxisName,
    ) -> Option<(Source, Option<Step>)> {
        let users = self.done.uses(owner).chain(self.done.uses(value));
        let found = users.filter_map(|slot| {
            let (op, index) = (self.done.user(slot), self.done.operand_index(slot));
            let source = match self.done.kind(op) {
                OpKind::ShardingConstraint => self.constraint(op, axis),
                OpKind::ManualComputation => self.in_sharding(op, index, axis),
                _ => None,
            };
            Some((op, source?))
        });
        let (op, source) = found.last()?;
        let to = self.slot_name(Slot::Value(value));
        let (name, line) = (self.done.op_name(op).to_owned(), self.line(op));
        let step = Step::made(source.name.clone(), to, &name, line, Direction::Backward);
        Some((source, Some(step)))
    }

    /// The constraint on `value` of the given program that has `axis`, and its sharding.
    fn written_constraint(&self, value: ValueId, axis: &AxisName) -> Option<(OpId, ShardingId)> {
        let users = self.given.users(value);
        let mut constraints = users.filter(|&op| self.given.kind(op) == OpKind::ShardingConstraint);
        constraints.find_map(|op| {
            let sharding = self.given.sharding(self.given.result(op, 0));
            part_in(&self.given, sharding, axis)?;
            Some((op, sharding))
        })
    }

    /// The constraint in the given program on `known`, which became `value`, if it has `axis`: the constraints that propagation
    /// adds to members of a group take over their other uses.
    fn constrained_as_given(
        &self,
        value: ValueId,
        known: ValueId,
        axis: &AxisName,
    ) -> Option<(Source, Option<Step>)> {
        let (op, sharding) = self.written_constraint(known, axis)?;
        let result = self.given.result(op, 0);
        let source = self.own(self.explanation.slot_of(result)?, result, sharding);
        let to = self.slot_name(Slot::Value(value));
        let (name, line) = (self.given.op_name(op), self.calls.op_location(&self.given, op));
        let step = Step::made(source.name.clone(), to, name, line, Direction::Backward);
        Some((source, Some(step)))
    }

    /// The constraint `op`, if it has `axis`.
    fn constraint(&self, op: OpId, axis: &AxisName) -> Option<Source> {
        let result = self.done.result(op, 0);
        let sharding = self.initial(self.explanation.slot_of(result)?);
        part_in(&self.done, sharding, axis)?;
        Some(self.of(Slot::Value(result), Kind::Constraint, sharding).0)
    }

    /// The in-sharding with this index of the manual computation `op`, if it has `axis`: that of the given program, since manual
    /// axes are hidden during propagation.
    fn in_sharding(&self, op: OpId, index: usize, axis: &AxisName) -> Option<Source> {
        let arg = |program: &Program, op: OpId| {
            let body = program.region_entry(program.op_regions(op).next()?).get()?;
            (index < program.num_block_args(body)).then(|| program.block_arg(body, index))
        };
        let known = arg(&self.given, self.names.given_op(&self.given, &self.done, op)?)?;
        let sharding = self.given.sharding(known);
        part_in(&self.given, sharding, axis)?;
        Some(self.own(Slot::Value(arg(&self.done, op)?), known, sharding))
    }

    /// The result of the callee from which `owner`, the result of a call, has its sharding.
    fn callee_result(
        &self,
        owner: ValueId,
        sharding: ShardingId,
    ) -> Option<(Source, Option<Step>)> {
        let op = self.done.defining_op(owner)?;
        let Some(Payload::NamedComputation { name, .. }) = self.done.payload(op) else {
            return None;
        };
        let name = self.done.str(*name);
        let functions = self.given.functions_in_order();
        let func = functions
            .into_iter()
            .find(|&func| self.given.str(self.given.func_name(func)) == name)?;
        let index = self.done.value_index(owner);
        self.given.func_results(func).get(index)?.sharding.get()?;
        let source = self.func_result_source(Some(func), index, sharding);
        let to = self.slot_name(Slot::Value(owner));
        let line = self.line(op);
        let step = Step::made(source.name.clone(), to, "func.call", line, Direction::Forward);
        Some((source, Some(step)))
    }

    fn func_result_source(
        &self,
        func: Option<FuncId>,
        index: usize,
        sharding: ShardingId,
    ) -> Source {
        let is_entry = func == self.given.entry_function();
        let name = match func.filter(|_| !is_entry) {
            Some(func) => {
                format!("@{} result {index}", self.given.str(self.given.func_name(func)))
            }
            None => format!("result {index}"),
        };
        let label = func.and_then(|func| self.result_label(func, index));
        Source { name, kind: Kind::Result, label, location: None, sharding: self.text(sharding) }
    }

    fn of(&self, slot: Slot, kind: Kind, sharding: ShardingId) -> (Source, Option<Step>) {
        let name = self.original_name(slot);
        let known = match slot {
            Slot::Value(value) => self.names.given_value(&self.given, &self.done, value),
            Slot::FuncResult(..) => None,
        };
        let label = known
            .filter(|_| kind == Kind::Argument)
            .and_then(|value| self.given.value_location(value));
        let location = known.filter(|_| kind != Kind::Argument).and_then(|value| {
            let given = &*self.given;
            match given.def(value) {
                // Arguments of bodies have the name of the computation for a place.
                ValueDef::Arg(block) => self.calls.op_location(given, given.block_parent_op(block)),
                ValueDef::Result(_) => self.calls.value_location(given, value),
            }
        });
        (Source { name, kind, label, location, sharding: self.text(sharding) }, None)
    }

    fn text(&self, sharding: ShardingId) -> String {
        let sharding = self.done.shardings().get(sharding);
        sharding.map_or_else(String::new, |sharding| print_sharding(sharding, &self.done))
    }

    fn result_label(&self, func: FuncId, index: usize) -> Option<String> {
        let port = self.given.func_results(func).get(index)?;
        self.given.result_label(port.attrs)
    }
}
