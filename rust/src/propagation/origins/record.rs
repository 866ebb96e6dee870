//! Keeps the record while propagation runs.

use super::compare::{arrivals, Arrival};
use super::initial::last_recorded_step;
use super::{Flow, NamedAxis, Origin, Origins, Settings};
use crate::attribute::EdgeValueRef;
use crate::index::{FuncId, OpId, ValueId};
use crate::ir::{Interner, Program};
use crate::mesh::Mesh;
use crate::projection::Projection;
use crate::rule::OpShardingRule;
use rustc_hash::FxHashMap;

/// What shardings went through.
#[derive(Clone, Copy)]
pub(crate) enum Subject {
    /// An op, or the edge that it stands for.
    Op(OpId),
    /// Between what a function returns and its results.
    FuncResult(FuncId),
}

/// A visit that changed something.
pub(crate) struct Visited<'a> {
    /// What was visited.
    pub subject: Subject,
    /// By which rule.
    pub rule: &'a OpShardingRule,
    /// The mesh of all shardings.
    pub mesh: &'a Mesh,
    /// For each tensor the value that its sharding is kept on.
    pub values: &'a [Option<ValueId>],
    /// Before the visit.
    pub old: &'a Projection,
    /// After it.
    pub new: &'a Projection,
}

/// The record, growing.
pub(crate) struct Recorder {
    pub(super) settings: Settings,
    pub(super) origins: Origins,
    /// The numbers of constraints.
    pub(super) constraints: FxHashMap<OpId, u32>,
    /// Manual computations, by their numbers.
    pub(super) manual_computations: Vec<OpId>,
    step: i64,
}

impl Recorder {
    /// Starts a record of `program` as it is; none if nothing is wanted.
    pub fn start(program: &mut Program, settings: Settings) -> Option<Self> {
        if !settings.is_any() {
            return None;
        }
        let mut recorder = Self {
            settings,
            origins: Origins::default(),
            constraints: FxHashMap::default(),
            manual_computations: Vec::new(),
            step: last_recorded_step(program) + 1,
        };
        if settings.sharding_origins {
            recorder.find_initial(program);
        }
        Some(recorder)
    }

    /// Records a visit that changed something.
    pub fn record(&mut self, strings: &mut Interner, visited: &Visited<'_>) {
        let num_operands = visited.rule.operands.len();
        let node = |tensor: usize| match tensor.checked_sub(num_operands) {
            None => EdgeValueRef::Operand(tensor as u32),
            Some(index) => EdgeValueRef::Result(index as u32),
        };
        for Arrival { target, axis, source } in
            arrivals(visited.rule, visited.mesh, visited.old, visited.new)
        {
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
                let value = |tensor: usize| visited.values.get(tensor).copied().flatten();
                if let (Some(target), Some(source)) = (value(target), value(source)) {
                    let origin = self.origins.of_axis(source, axis).unwrap_or(Origin::Unnamed);
                    self.add_origin(target, axis, origin);
                }
            }
        }
        self.step += 1;
    }

    /// `axis` of `value` came from `origin`, unless it was there before.
    pub(super) fn add_origin(&mut self, value: ValueId, axis: NamedAxis, origin: Origin) {
        let known = self.origins.values.entry(value).or_default();
        if known.iter().all(|(other, _)| *other != axis) {
            known.push((axis, origin));
        }
    }
}
