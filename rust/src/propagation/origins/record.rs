//! Records origins and flows during propagation.

use super::compare::Arrival;
use super::origin::{Flow, NamedAxis, Origin, Origins, Settings};
use crate::attribute::EdgeValueRef;
use crate::index::{FuncId, OpId, ValueId};
use crate::ir::Interner;
use crate::mesh::Mesh;
use rustc_hash::FxHashMap;

/// What axes propagate through.
#[derive(Clone, Copy)]
pub(crate) enum Subject {
    /// An op, or the data-flow edge of an edge op.
    Op(OpId),
    /// The return of a function.
    FuncResult(FuncId),
}

/// A visit that changed something.
pub(crate) struct Visited<'a> {
    /// The op or function that was visited.
    pub subject: Subject,
    /// How many of its tensors are operands.
    pub num_operands: usize,
    /// The mesh of all shardings.
    pub mesh: &'a Mesh,
    /// The axes that tensors get, in the order of the tensors.
    pub arrivals: &'a [Arrival],
}

/// A record in progress.
pub(crate) struct Recorder {
    pub(super) settings: Settings,
    pub(super) origins: Origins,
    /// The number of each constraint.
    pub(super) constraints: FxHashMap<OpId, u32>,
    /// The manual computations in the order of their numbers.
    pub(super) manual_computations: Vec<OpId>,
    pub(super) step: i64,
    /// Whether axes of unknown origin have no entry, instead of [`Origin::Unnamed`].
    pub(super) only_known: bool,
}

impl Recorder {
    /// Records a visit that changed something; `value` maps a tensor to the value that holds its
    /// sharding.
    pub fn record(
        &mut self,
        strings: &mut Interner,
        visited: &Visited<'_>,
        value: impl Fn(usize) -> Option<ValueId>,
    ) {
        let num_operands = visited.num_operands as u32;
        let node = |tensor: u32| match tensor.checked_sub(num_operands) {
            None => EdgeValueRef::Operand(tensor),
            Some(index) => EdgeValueRef::Result(index),
        };
        for &Arrival { target, axis, source, .. } in visited.arrivals {
            let name = strings.intern(visited.mesh.axis_name(axis.axis));
            let axis = NamedAxis { name, sub: axis.sub };
            if self.settings.propagation_edges {
                let flow =
                    Flow { step: self.step, axis, source: node(source), target: node(target) };
                let flows = match visited.subject {
                    Subject::Op(op) => self.origins.ops.entry(op).or_default(),
                    Subject::FuncResult(func) => self.origins.func_results.entry(func).or_default(),
                };
                flows.push(flow);
            }
            if self.settings.sharding_origins {
                let (target, source) = (value(target as usize), value(source as usize));
                if let (Some(target), Some(source)) = (target, source) {
                    let unknown = (!self.only_known).then_some(Origin::Unnamed);
                    if let Some(origin) = self.origins.of_axis(source, axis).or(unknown) {
                        self.add_origin(target, axis, origin);
                    }
                }
            }
        }
        self.step += 1;
    }

    /// Sets the origin of `axis` of `value`, unless it has one.
    pub(super) fn add_origin(&mut self, value: ValueId, axis: NamedAxis, origin: Origin) {
        let known = self.origins.values.entry(value).or_default();
        if known.iter().all(|(other, _)| *other != axis) {
            known.push((axis, origin));
        }
    }
}
