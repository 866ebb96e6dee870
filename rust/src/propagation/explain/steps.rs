//! The steps that brought an axis to a tensor.
//!
//! An axis came to a tensor by the last change before which the tensor did not have it. The cause
//! of that change is a visit. The shardings before it follow from the trace, and repeating the
//! visit tells the factor, the direction and the tensor that had the axis. That tensor is searched
//! in turn, at the time before the visit, until no change brought the axis: then the user's
//! annotation has it. Each step goes back in time, so this ends.

use super::trace::Trace;
use crate::axis::{AxisRef, SubAxis};
use crate::index::{FactorId, FuncId, Id, OpId, RuleId, ShardingId, ValueId};
use crate::ir::{Direction, Program};
use crate::propagation::observe::{Cause, Slot};
use crate::propagation::origins::{Arrival, Arrivals};
use crate::propagation::plan::edges::{Edges, Holder};
use crate::propagation::plan::groups::ShardingGroups;
use crate::propagation::plan::Plan;
use crate::propagation::state::Finished;
use crate::propagation::visit::{Subset, VisitInput};
use crate::sharding::TensorSharding;
use rustc_hash::FxHashMap;

/// An axis, or a part of it, by its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AxisName {
    /// The name.
    pub name: String,
    /// Which part, or `None` for all of it.
    pub sub: Option<SubAxis>,
}

/// What propagates an axis from one tensor to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Through {
    /// An op, along a factor of its rule.
    Op(OpId, Option<(RuleId, FactorId)>),
    /// The return of the main function.
    Return(FuncId),
    /// A sharding group.
    Group,
}

/// One tensor gets an axis from another.
#[derive(Clone, Debug)]
pub struct Step {
    /// The tensor that had it.
    pub from: Slot,
    /// The tensor that gets it.
    pub to: Slot,
    /// What propagates the axis.
    pub through: Through,
    /// Forward to results, backward to operands.
    pub direction: Direction,
    /// The user priority of the greedy run.
    pub priority: i64,
    /// The op-priority step of the greedy run.
    pub step: usize,
}

/// How an axis came to a tensor.
#[derive(Clone, Debug)]
pub struct Path {
    /// The tensor that had the axis before propagation.
    pub source: Slot,
    /// The axis of that tensor: `axis` or a part of it, or an axis that contains it.
    pub axis: AxisName,
    /// The sharding that `source` had.
    pub sharding: ShardingId,
    /// The steps from there, in order.
    pub steps: Vec<Step>,
}

/// A completed propagation with the trace that explains it.
pub struct Explanation {
    pub(super) plan: Plan,
    groups: ShardingGroups,
    /// For each slot the groups whose members' shardings it holds. The owner of a data-flow edge
    /// may hold members of several groups.
    groups_by_slot: FxHashMap<Slot, Vec<usize>>,
    pub(super) trace: Trace,
}

impl Explanation {
    /// The explanation of a run.
    pub(in crate::propagation) fn new(finished: Finished, trace: Trace) -> Self {
        let Finished { plan, groups, .. } = finished;
        let mut groups_by_slot = FxHashMap::<Slot, Vec<usize>>::default();
        for (group, member) in groups.all() {
            if let Some(slot) = holder_slot(&plan.edges, member) {
                groups_by_slot.entry(slot).or_default().push(group);
            }
        }
        Self { plan, groups, groups_by_slot, trace }
    }
    /// The slot that holds the sharding of `value`, if any.
    pub fn slot_of(&self, value: ValueId) -> Option<Slot> {
        self.plan.edges.holder_of(value).map(Slot::Value)
    }
    /// The members of the groups of the slot that holds the sharding of `value`.
    pub fn grouped_with(&self, value: ValueId) -> Vec<ValueId> {
        let groups = self.slot_of(value).and_then(|slot| self.groups_by_slot.get(&slot));
        let groups = groups.into_iter().flatten();
        groups.flat_map(|&group| self.groups.members(group)).copied().collect()
    }
    /// How `axis` came to `slot` of `program`, which was propagated; `None` if `slot` does not have
    /// it.
    pub fn path(&self, program: &mut Program, slot: Slot, axis: &AxisName) -> Option<Path> {
        let (mut slot, mut axis, mut time) = (slot, axis.clone(), self.trace.num_changes());
        let mut steps = Vec::new();
        loop {
            let sharding = self.sharding_at(program, slot, time);
            if part_in(program, sharding, &axis).is_none() {
                let sharding = self.manual_sharding(program, steps.last()?)?;
                steps.reverse();
                return Some(Path { source: slot, axis, sharding, steps });
            }
            let Some(index) = self.arrival(program, slot, &axis, time) else {
                steps.reverse();
                let sharding = self.sharding_at(program, slot, 0);
                let sharding = if sharding.is_none() {
                    self.sharding_at(program, slot, time)
                } else {
                    sharding
                };
                return Some(Path { source: slot, axis, sharding, steps });
            };
            let start = self.trace.visit(index).start;
            let (found, next) = self.step(program, slot, &axis, index)?;
            slot = found.last()?.from;
            steps.extend(found);
            (axis, time) = (next, start);
        }
    }

    /// The sharding, manual axes included, of the argument of a manual computation's body where
    /// `step` starts.
    fn manual_sharding(&self, program: &Program, step: &Step) -> Option<ShardingId> {
        let Through::Op(op, _) = step.through else { return None };
        self.plan.edges.manual_end(op).map(|end| program.sharding(end.owner))
    }

    /// The index of the change before `time` that brought `axis` to `slot`. `None` if `slot` had it
    /// before propagation, or got it back when its user priority started; the same if the axis was
    /// a replicated or unreduced axis of `slot` before, which is how a manual axis of a later
    /// priority is kept.
    pub(super) fn arrival(
        &self,
        program: &Program,
        slot: Slot,
        axis: &AxisName,
        time: usize,
    ) -> Option<usize> {
        for &index in self.trace.before(slot, time).iter().rev() {
            let change = self.trace.change(index as usize);
            if part_in(program, change.old, axis).is_none() {
                let is_back =
                    change.cause == Cause::UserPriority || is_free(program, change.old, axis);
                return (!is_back).then_some(index as usize);
            }
        }
        None
    }

    /// The sharding that `slot` of `program` had before propagation.
    pub fn initial(&self, program: &Program, slot: Slot) -> ShardingId {
        self.sharding_at(program, slot, 0)
    }
    pub(super) fn sharding_at(&self, program: &Program, slot: Slot, time: usize) -> ShardingId {
        self.trace.sharding_at(slot, time).unwrap_or_else(|| match slot {
            Slot::Value(value) => program.sharding(value),
            Slot::FuncResult(func, index) => program.func_results(func)[index].sharding,
        })
    }

    /// The steps, last first, of the change with this index, and the axis where the first step
    /// starts.
    fn step(
        &self,
        program: &mut Program,
        slot: Slot,
        axis: &AxisName,
        index: usize,
    ) -> Option<(Vec<Step>, AxisName)> {
        let run = self.trace.run(index)?;
        let (priority, step) = (run.priority, run.run.step);
        let of = |from, through, direction| {
            let to = slot;
            Step { from, to, through, direction, priority, step }
        };
        match self.trace.change(index).cause {
            Cause::UserPriority => None,
            Cause::FuncResult(result) => {
                let (returned, ports) = self.returned(program, result)?;
                let (from, direction) = if slot == ports {
                    (returned, Direction::Forward)
                } else {
                    (ports, Direction::Backward)
                };
                let Slot::FuncResult(func, _) = ports else { return None };
                Some((vec![of(from, Through::Return(func), direction)], axis.clone()))
            }
            Cause::Visit(op) => {
                let start = self.trace.visit(index).start;
                let found = self.through_op(program, op, (slot, axis), (start, index))?;
                let Found { tensor, from, axis, factor, direction } = found;
                let through = Through::Op(op, factor);
                let mut steps = Vec::new();
                if tensor != slot {
                    steps.push(of(tensor, Through::Group, Direction::Both));
                }
                steps.push(Step { to: tensor, ..of(from, through, direction) });
                Some((steps, axis))
            }
        }
    }

    /// The slot of the value that is returned as this result of the main function, and the slot of
    /// the result.
    fn returned(&self, program: &Program, result: usize) -> Option<(Slot, Slot)> {
        let func = crate::propagation::main_function(program).ok()?;
        let last = program.last_op(program.func_body(func).get()?).get()?;
        let value = program.operands(last).nth(result)?;
        Some((self.slot_of(value)?, Slot::FuncResult(func, result)))
    }

    /// How `axis` came to `slot` by the visit of `op` whose first change is `start`.
    fn through_op(
        &self,
        program: &mut Program,
        op: OpId,
        (slot, axis): (Slot, &AxisName),
        (start, index): (usize, usize),
    ) -> Option<Found> {
        let (position, spec) = self.plan.position_and_spec(op)?;
        let tensors = self.plan.row(position).tensors;
        let mut shardings: Vec<ShardingId> = Vec::with_capacity(tensors.len());
        for &tensor in tensors {
            shardings.push(self.tensor_at(program, tensor, start));
        }
        if let (Some(end), Some(last)) = (self.plan.edges.manual_end(op), shardings.last_mut()) {
            *last = if end.is_arg {
                program.with_manual_axes(end.op, end.owner, *last)
            } else {
                program.inside_manual(end.op, *last)
            };
        }
        let input = VisitInput { spec, subset: Subset::ALL, shardings: &shardings };
        let run = self.trace.run(index)?.run;
        let arrivals = Arrivals::of(&program.tables(), input, run);
        let mesh = arrivals.mesh.get()?;
        let edges = &self.plan.edges;
        let is_here = |arrival: &&Arrival| {
            let holder = holder_slot(edges, tensors[arrival.target as usize]);
            let is_target = holder.is_some_and(|holder| self.are_alike(holder, slot));
            is_target && name_of(program, mesh, arrival.axis).overlaps(axis)
        };
        // The tensor itself has precedence over other members of its group.
        let of_slot =
            |arrival: &&Arrival| holder_slot(edges, tensors[arrival.target as usize]) == Some(slot);
        let here: Vec<&Arrival> = arrivals.list.iter().filter(is_here).collect();
        let arrival =
            here.iter().copied().find(|arrival| of_slot(arrival)).or(here.first().copied())?;
        let num_operands = program.rules()[spec.rule].operands.len();
        let is_result = arrival.target as usize >= num_operands;
        Some(Found {
            tensor: holder_slot(edges, tensors[arrival.target as usize])?,
            from: holder_slot(edges, tensors[arrival.source as usize])?,
            axis: name_of(program, mesh, arrival.axis),
            factor: Some((spec.rule, arrival.factor)),
            direction: if is_result { Direction::Forward } else { Direction::Backward },
        })
    }

    /// Whether a visit that updates `one` updates `other` in the same way: they are one slot, or
    /// `other` holds a member of the group of `one`.
    fn are_alike(&self, one: Slot, other: Slot) -> bool {
        let group = match one {
            Slot::Value(value) => self.groups.group_of(value),
            Slot::FuncResult(..) => None,
        };
        let held = || self.groups_by_slot.get(&other).into_iter().flatten();
        one == other || group.is_some_and(|group| held().any(|&known| known == group))
    }

    /// The sharding of `value`, whatever holds it, at `time`.
    fn tensor_at(&self, program: &mut Program, value: ValueId, time: usize) -> ShardingId {
        match self.plan.edges.holder(value) {
            Holder::None => ShardingId::NONE,
            Holder::Value(holder) => self.sharding_at(program, Slot::Value(holder), time),
            Holder::ManualArg(op, arg) => {
                let outer = self.sharding_at(program, Slot::Value(arg), time);
                program.inside_manual(op, outer)
            }
        }
    }
}

/// How a visit brought an axis to a tensor.
struct Found {
    tensor: Slot,
    from: Slot,
    axis: AxisName,
    factor: Option<(RuleId, FactorId)>,
    direction: Direction,
}

pub(super) fn holder_slot(edges: &Edges, value: ValueId) -> Option<Slot> {
    edges.holder_of(value).map(Slot::Value)
}

pub(super) fn name_of(program: &Program, mesh: crate::index::MeshId, axis: AxisRef) -> AxisName {
    AxisName { name: program.mesh(mesh).axis_name(axis.axis).to_owned(), sub: axis.sub }
}

impl AxisName {
    /// Whether the two have a part in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        let part =
            |axis: &Self| AxisRef { axis: crate::index::AxisId::from_index(0), sub: axis.sub };
        self.name == other.name && part(self).overlaps(part(other))
    }
}

/// `axis` as an axis of the mesh of `sharding`; `None` if the mesh has no such axis.
pub(super) fn in_mesh_of(
    program: &Program,
    sharding: &TensorSharding,
    axis: &AxisName,
) -> Option<AxisRef> {
    let found = program.mesh(sharding.mesh).axis_by_name(&axis.name)?;
    Some(AxisRef { axis: found, sub: axis.sub })
}

/// Whether `axis`, or a part of it, is a replicated or unreduced axis of the sharding.
pub(super) fn is_free(program: &Program, sharding: ShardingId, axis: &AxisName) -> bool {
    program.shardings().get(sharding).is_some_and(|sharding| {
        let wanted = in_mesh_of(program, sharding, axis);
        let mut kept = sharding.replicated.iter().chain(&sharding.unreduced);
        wanted.is_some_and(|wanted| kept.any(|kept| kept.overlaps(wanted)))
    })
}

/// The first dim of the sharding with an axis that overlaps `axis`, and that axis.
pub fn part_in(
    program: &Program,
    sharding: ShardingId,
    axis: &AxisName,
) -> Option<(usize, AxisName)> {
    let sharding: &TensorSharding = program.shardings().get(sharding)?;
    let wanted = in_mesh_of(program, sharding, axis)?;
    let mut axes = sharding
        .dims
        .iter()
        .enumerate()
        .flat_map(|(dim, row)| row.axes.iter().map(move |&axis| (dim, axis)));
    let (dim, found) = axes.find(|(_, found)| found.overlaps(wanted))?;
    Some((dim, name_of(program, sharding.mesh, found)))
}
