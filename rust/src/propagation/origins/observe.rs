//! What the engine tells the record.

use super::record::{Subject, Visited};
use crate::index::{ShardingId, ValueId};
use crate::propagation::edges::Place;
use crate::propagation::engine::Engine;
use crate::propagation::visit::{Site, Subset, Tables, VisitKind, Workspace};

impl Engine<'_> {
    /// Makes the visit once more, for the record only. `shardings` are those of `tensors` before it.
    #[cold]
    pub(in crate::propagation) fn record_visit(
        &mut self,
        subject: Subject,
        kind: VisitKind,
        run: usize,
        tensors: &[ValueId],
        shardings: &[ShardingId],
    ) {
        let Some(recorder) = &mut self.recorder else { return };
        let run = self.memo.runs()[run];
        let tables = Tables {
            rules: &self.program.rules,
            meshes: &self.program.meshes,
            shardings: &mut self.program.shardings,
        };
        let rule = &tables.rules[kind.rule];
        let directions = kind.directions(tables.rules);
        let mut workspace = Workspace::default();
        let mesh = workspace.project(&tables, Site { kind, subset: Subset::ALL, shardings });
        let Some(mesh) = mesh else { return };
        let old = workspace.table.clone();
        workspace.propagate(&tables, kind, mesh, directions.of(run.step), run.strategy);
        let new = &workspace.table;
        let kept = |&value: &ValueId| match self.plan.edges.place(value) {
            Place::Value(kept) | Place::ManualArg(_, kept) => Some(kept),
            Place::Nowhere => None,
        };
        let values: Vec<Option<ValueId>> = tensors.iter().map(kept).collect();
        let mesh = &tables.meshes[mesh].mesh;
        let visited = Visited { subject, rule, mesh, values: &values, old: &old, new };
        recorder.record(&mut self.program.strings, &visited);
    }
}
