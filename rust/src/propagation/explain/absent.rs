//! Explains why an axis is not on a dim of a tensor.
//!
//! Dims with the same factor in an op have the same axes unless something prevents it. So the dims
//! that the axis could have come from are searched breadth-first, from op to op. If one of them has
//! the axis, the reason is at the op between it and the next dim, which lacks it.

use super::order::Link;
use super::reason::{Absence, Code, Place};
use super::steps::{holder_slot, in_mesh_of, is_free, name_of, part_in, AxisName, Explanation};
use crate::index::{FactorId, OpId, ShardingId, ValueId};
use crate::ir::{OpKind, Program};
use crate::op_sharding_rule::{OpShardingRule, TensorMapping};
use crate::propagation::observe::Slot;
use crate::sharding::DimSharding;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// For each tensor the ops that have it as operand or result: the op's position and the tensor's
/// index there.
#[derive(Default)]
pub struct Neighbours(FxHashMap<Slot, Vec<(u32, usize)>>);

/// A tensor of an op that has an axis: its index among the op's tensors, its slot and the dim.
type Having = (usize, Slot, usize);

/// The state of a search for an axis.
#[derive(Default)]
struct Searched {
    /// Factors whose dims were all searched, each with the position of its op.
    factors: FxHashSet<(u32, FactorId)>,
    /// For the positions of ops: the first tensor that has the axis, and the first one with another
    /// slot.
    having: FxHashMap<u32, [Option<Having>; 2]>,
}

impl Explanation {
    /// The ops that define or use each tensor.
    pub fn neighbours(&self) -> Neighbours {
        let mut found = Neighbours::default();
        for position in 0..self.plan.order().len() as u32 {
            for (index, slot) in self.slots(position) {
                found.0.entry(slot).or_default().push((position, index));
            }
        }
        found
    }

    /// Why `axis` is not on the dim at `place`.
    pub fn absence(
        &self,
        program: &Program,
        around: &Neighbours,
        place: Place,
        axis: &AxisName,
    ) -> Absence {
        if let Some((code, instead)) = self.own_reason(program, place, axis) {
            return Absence { code, at: place, op: None, instead: Some(instead) };
        }
        let mut seen: FxHashSet<Place> = std::iter::once(place).collect();
        let mut todo: VecDeque<Place> = seen.iter().copied().collect();
        let mut beside = None;
        let mut searched = Searched::default();
        while let Some(near) = todo.pop_front() {
            let ops = around.0.get(&near.slot).map_or(&[][..], Vec::as_slice);
            beside = beside
                .or_else(|| self.on_other_factor(program, ops, (near, axis), &mut searched.having));
            for link in self.links(program, ops, near, &mut searched.factors) {
                if self.has(program, link.place, axis) {
                    return self.between(program, near, &link, axis);
                }
                if seen.insert(link.place) {
                    todo.push_back(link.place);
                }
            }
        }
        let op = self.op_without_rule(program, place.slot, axis);
        let none = Absence { code: Code::NeverArrived, at: place, op, instead: None };
        if op.is_some() {
            return Absence { code: Code::NoRule, ..none };
        }
        beside.unwrap_or(none)
    }

    /// The absence with code `OtherFactor` or `NoFactor`: an op of `ops`, the ops of the tensor of
    /// `near`, has `axis` on a dim with another factor.
    fn on_other_factor(
        &self,
        program: &Program,
        ops: &[(u32, usize)],
        (near, axis): (Place, &AxisName),
        having: &mut FxHashMap<u32, [Option<Having>; 2]>,
    ) -> Option<Absence> {
        ops.chunk_by(|one, next| one.0 == next.0).find_map(|own| {
            let position = own[0].0;
            let rule = &program.rules()[self.plan.spec(position)?.rule];
            let having =
                having.entry(position).or_insert_with(|| self.having(program, position, axis));
            let mut others = having.iter().flatten().filter(|(_, slot, _)| *slot != near.slot);
            let &(index, slot, dim) = others.next()?;
            let factors = mapping(rule, index)?.dims.get(dim)?;
            let has_factor = |&(_, index): &(u32, usize)| {
                mapping(rule, index)
                    .is_some_and(|own| own.dims.iter().flatten().any(|one| factors.contains(one)))
            };
            let is_on_own = own.iter().any(has_factor);
            let code = if is_on_own { Code::OtherFactor } else { Code::NoFactor };
            let place = Place { slot, dim };
            let instead = Some((place, self.axes(program, place)));
            Some(Absence { code, at: near, op: Some(self.plan.op(position)), instead })
        })
    }

    /// The first tensor of the op at `position` that has `axis`, and the first one with another
    /// slot.
    fn having(&self, program: &Program, position: u32, axis: &AxisName) -> [Option<Having>; 2] {
        let dim_of = |slot| part_in(program, self.now(program, slot), axis);
        let mut having =
            self.slots(position).filter_map(|(index, slot)| Some((index, slot, dim_of(slot)?.0)));
        let first = having.next();
        let other = having.find(|&(_, slot, _)| first.is_some_and(|first| first.1 != slot));
        [first, other]
    }

    /// The tensors of the op at `position` that have shardings: index and slot.
    fn slots(&self, position: u32) -> impl Iterator<Item = (usize, Slot)> + '_ {
        let tensors = self.plan.row(position).tensors.iter().enumerate();
        tensors.filter_map(|(index, &tensor)| Some((index, holder_slot(&self.plan.edges, tensor)?)))
    }

    /// An op that defines or uses the tensor of `slot`, has neither a sharding rule nor data-flow
    /// edges, is no call, and has another tensor with `axis`.
    fn op_without_rule(&self, program: &Program, slot: Slot, axis: &AxisName) -> Option<OpId> {
        let Slot::Value(value) = slot else { return None };
        let mut around = program.defining_op(value).into_iter().chain(program.users(value));
        around.find(|&op| {
            let mut tensors = program.operands(op).chain(program.op_results(op));
            let has_axis = |tensor: ValueId| {
                holder_slot(&self.plan.edges, tensor)
                    .is_some_and(|slot| part_in(program, self.now(program, slot), axis).is_some())
            };
            let is_call = program.kind(op) == OpKind::Call;
            let spec = program.edge_spec(op);
            let has_edges = spec.is_some_and(|spec| !spec.edges(program, op).is_empty());
            let is_opaque =
                program.num_results(op) > 0 && !(is_call || has_edges || self.plan.is_visited(op));
            is_opaque && tensors.any(has_axis)
        })
    }

    /// The reason, if it is in the tensor at `place` itself.
    fn own_reason(
        &self,
        program: &Program,
        place: Place,
        axis: &AxisName,
    ) -> Option<(Code, (Place, Vec<AxisName>))> {
        let id = self.now(program, place.slot);
        if let Some((dim, _)) = part_in(program, id, axis) {
            let other = Place { dim, ..place };
            return Some((Code::Taken, (other, self.axes(program, other))));
        }
        let sharding = program.shardings().get(id)?;
        if program.mesh(sharding.mesh).axis_by_name(&axis.name).is_none() {
            return Some((Code::OtherMesh, (place, self.axes(program, place))));
        }
        if is_free(program, id, axis) {
            return Some((Code::Replicated, (place, self.axes(program, place))));
        }
        let initial = program.shardings().get(self.initial(program, place.slot))?;
        let is_closed = initial.dims.get(place.dim).is_some_and(|dim| dim.is_closed);
        is_closed.then(|| (Code::Closed, (place, self.axes(program, place))))
    }

    /// The dims with the same factor as the dim at `near` in one of `ops`, the ops of its tensor;
    /// factors that are `known` are left out.
    fn links(
        &self,
        program: &Program,
        ops: &[(u32, usize)],
        near: Place,
        known: &mut FxHashSet<(u32, FactorId)>,
    ) -> Vec<Link> {
        let mut links = Vec::new();
        for &(position, index) in ops {
            let Some(spec) = self.plan.spec(position) else { continue };
            let rule = &program.rules()[spec.rule];
            let factors = mapping(rule, index).and_then(|mapping| mapping.dims.get(near.dim));
            for &factor in factors.into_iter().flatten() {
                // The dims of a factor are searched once: dims of a known factor do not have the
                // axis.
                if !known.insert((position, factor)) {
                    continue;
                }
                for (far, slot) in self.slots(position).filter(|&(far, _)| far != index) {
                    let dims = mapping(rule, far).into_iter().flat_map(|it| it.dims.iter());
                    let dims = dims.enumerate().filter(|(_, dim)| dim.contains(&factor));
                    links.extend(dims.map(|(dim, _)| Link {
                        position,
                        near: index,
                        factor,
                        place: Place { slot, dim },
                    }));
                }
            }
        }
        links
    }

    /// Why the op of `link` does not propagate `axis` to the dim at `near`.
    fn between(&self, program: &Program, near: Place, link: &Link, axis: &AxisName) -> Absence {
        let op = Some(self.plan.op(link.position));
        let of = |code, instead| Absence { code, at: near, op, instead };
        if let Some((code, instead)) = self.own_reason(program, near, axis) {
            return of(code, Some(instead));
        }
        let Some(spec) = self.plan.spec(link.position) else { return of(Code::NoRule, None) };
        let rule = &program.rules()[spec.rule];
        if rule.blocked.binary_search(&link.factor).is_ok() {
            return of(Code::Blocked, None);
        }
        if link.first_step(program, spec).is_none() {
            return of(Code::Direction, None);
        }
        let slots: Vec<(usize, Slot)> = self.slots(link.position).collect();
        let mesh = |slot| program.mesh_of(self.now(program, slot));
        let far = mesh(link.place.slot);
        let other = slots.iter().find(|&&(_, slot)| {
            mesh(slot).get().is_some_and(|mesh| program.mesh(mesh) != program.mesh(far))
        });
        if let Some(&(_, slot)) = other {
            let place = Place { slot, dim: 0 };
            return of(Code::OtherMesh, Some((place, self.axes(program, place))));
        }
        for &(index, slot) in &slots {
            let Some((dim, _)) = part_in(program, self.now(program, slot), axis) else { continue };
            let factors = mapping(rule, index).and_then(|mapping| mapping.dims.get(dim));
            if factors.is_some_and(|factors| !factors.contains(&link.factor)) {
                let won = Place { slot, dim };
                let code = self.earlier(program, won, (spec, link), axis);
                return of(code.unwrap_or(Code::OtherFactor), Some((won, self.axes(program, won))));
            }
        }
        let wanted = self.axes(program, link.place);
        let differs = slots.iter().find_map(|&(index, slot)| {
            let dims = mapping(rule, index)?.dims.iter().enumerate();
            let mut dims = dims.filter(|(_, dim)| dim.contains(&link.factor));
            let place = Place { slot, dim: dims.next()?.0 };
            let axes = self.axes(program, place);
            let is_prefix = wanted.starts_with(&axes) || axes.starts_with(&wanted);
            (!is_prefix).then_some((place, axes))
        });
        let Some((won, axes)) = differs else {
            let shut = slots.iter().find_map(|&(index, slot)| {
                let dims = mapping(rule, index)?.dims.iter().enumerate();
                let mut dims = dims.filter(|(_, dim)| dim.contains(&link.factor));
                let place = Place { slot, dim: dims.next()?.0 };
                let (code, _) = self.own_reason(program, place, axis)?;
                (code != Code::Taken).then_some((code, place))
            });
            let (code, place) = shut.unwrap_or_else(|| {
                let is_manual = self.plan.edges.manual_end(self.plan.op(link.position)).is_some();
                let code = if is_manual { Code::Manual } else { Code::NonDivisible };
                (code, near)
            });
            return of(code, Some((place, self.axes(program, place))));
        };
        let code = self.earlier(program, won, (spec, link), axis);
        of(code.unwrap_or(Code::Conflict), Some((won, axes)))
    }

    /// Whether the dim at `place` has `axis`, or a part of it, after propagation.
    pub fn has(&self, program: &Program, place: Place, axis: &AxisName) -> bool {
        let sharding = program.shardings().get(self.now(program, place.slot));
        sharding.is_some_and(|sharding| {
            let wanted = in_mesh_of(program, sharding, axis);
            let axes = sharding.dims.get(place.dim).into_iter().flat_map(|dim| &dim.axes);
            wanted.is_some_and(|wanted| axes.into_iter().any(|found| found.overlaps(wanted)))
        })
    }
    /// Whether the dim at `place` is open after propagation and has `axis`, or a part of it, in its
    /// first sub-axis or after that. Export removes such axes from inputs and outputs, whatever the
    /// size of the dim.
    pub fn has_after_part(&self, program: &Program, place: Place, axis: &AxisName) -> bool {
        let sharding = program.shardings().get(self.now(program, place.slot));
        let dim = sharding.and_then(|sharding| sharding.dims.get(place.dim));
        if dim.is_none_or(|dim| dim.is_closed) {
            return false;
        }
        let axes = self.axes(program, place);
        axes.iter().skip_while(|found| found.sub.is_none()).any(|found| found.overlaps(axis))
    }
    /// The axes of the dim at `place` after propagation.
    pub(super) fn axes(&self, program: &Program, place: Place) -> Vec<AxisName> {
        let Some(sharding) = program.shardings().get(self.now(program, place.slot)) else {
            return Vec::new();
        };
        let dim: Option<&DimSharding> = sharding.dims.get(place.dim);
        let axes = dim.into_iter().flat_map(|dim| &dim.axes);
        axes.map(|&axis| name_of(program, sharding.mesh, axis)).collect()
    }
    fn now(&self, program: &Program, slot: Slot) -> ShardingId {
        self.sharding_at(program, slot, self.trace.num_changes())
    }
}

/// The mapping of the tensor with this number, operands before results.
fn mapping(rule: &OpShardingRule, index: usize) -> Option<&TensorMapping> {
    match index.checked_sub(rule.operands.len()) {
        None => rule.operands.get(index),
        Some(index) => rule.results.get(index),
    }
}
