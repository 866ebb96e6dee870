//! What the engine tells the record.

use super::record::{Subject, Visited};
use super::{arrivals, Arrival};
use crate::index::{MeshId, ShardingId, ValueId};
use crate::propagation::engine::Engine;
use crate::propagation::memo::Run;
use crate::propagation::plan::edges::Holder;
use crate::propagation::visit::{Subset, Tables, VisitInput, VisitSpec, Workspace};

/// What a visit brings to the tensors of an op, or to some of them.
#[derive(Default)]
pub(in crate::propagation) struct Arrivals {
    /// The mesh of all shardings.
    pub mesh: MeshId,
    pub list: Vec<Arrival>,
}

impl Arrivals {
    /// Those of the visit of `site` in `run`, which is made once more for that. Tensors count within the
    /// subset.
    #[cold]
    pub fn of(tables: &Tables<'_>, site: VisitInput<'_>, run: Run) -> Self {
        let VisitInput { spec, subset, shardings } = site;
        let rule = &tables.rules[spec.rule];
        let mut workspace = Workspace::default();
        let Some(mesh) = workspace.project(tables, site) else { return Self::default() };
        let old = workspace.table.clone();
        let directions = spec.directions(tables.rules);
        workspace.propagate(tables, spec, mesh, directions.of(run.step), run.strategy);
        let mappings = (0..shardings.len()).map_while(|index| subset.mapping(rule, index));
        let list = arrivals(mappings, &tables.meshes[mesh].mesh, &old, &workspace.table);
        Self { mesh, list }
    }

    /// Adds `new`, in which a number stands for all tensors that are `same`. Axes come from the `first` one.
    pub fn add<I: Iterator<Item = u32>>(
        &mut self,
        new: Self,
        first: impl Fn(u32) -> u32,
        same: impl Fn(u32) -> I,
    ) {
        self.mesh = new.mesh;
        for Arrival { target, axis, source } in new.list {
            let source = first(source);
            self.list.extend(same(target).map(|target| Arrival { target, axis, source }));
        }
    }

    /// All of them in the order of their tensors, each once.
    pub fn in_order(mut self) -> Self {
        self.list.sort_by_key(|arrival| arrival.target);
        self.list.dedup();
        self
    }
}

impl Engine<'_> {
    /// Makes the visit once more, for the record only. `shardings` are those of `tensors` before it.
    #[cold]
    pub(in crate::propagation) fn record_visit(
        &mut self,
        subject: Subject,
        spec: VisitSpec,
        run: usize,
        tensors: &[ValueId],
        shardings: &[ShardingId],
    ) {
        let tables = Tables {
            rules: &self.program.rules,
            meshes: &self.program.meshes,
            shardings: &mut self.program.shardings,
        };
        let site = VisitInput { spec, subset: Subset::ALL, shardings };
        let arrivals = Arrivals::of(&tables, site, self.memo.runs()[run]);
        let num_operands = self.program.rules[spec.rule].operands.len();
        self.record_arrivals(subject, num_operands, &arrivals, |tensor| tensors[tensor]);
    }

    /// Records what came to the tensors of an op, which stand for these values.
    pub(in crate::propagation) fn record_arrivals(
        &mut self,
        subject: Subject,
        num_operands: usize,
        arrivals: &Arrivals,
        value: impl Fn(usize) -> ValueId,
    ) {
        let (Some(recorder), Some(mesh)) = (&mut self.recorder, arrivals.mesh.get()) else {
            return;
        };
        let mesh = &self.program.meshes[mesh].mesh;
        let visited = Visited { subject, num_operands, mesh, arrivals: &arrivals.list };
        let plan = &self.plan;
        recorder.record(&mut self.program.strings, &visited, |tensor| {
            match plan.edges.holder(value(tensor)) {
                Holder::Value(kept) | Holder::ManualArg(_, kept) => Some(kept),
                Holder::None => None,
            }
        });
    }
}
