//! Recording visits.

use super::compare::{arrivals, Arrival};
use super::record::{Recorder, Subject, Visited};
use crate::index::{MeshId, ShardingId, ValueId};
use crate::ir::{Program, Tables};
use crate::propagation::plan::edges::Edges;
use crate::propagation::visit::{Run, Subset, VisitInput, VisitSpec, Workspace};

/// The axes that a visit brings to tensors of an op.
#[derive(Default)]
pub struct Arrivals {
    /// The mesh of all shardings.
    pub mesh: MeshId,
    pub list: Vec<Arrival>,
}

impl Arrivals {
    /// Repeats the visit of `input` in `run` and returns the axes that it brings. Tensors are
    /// numbered within the subset.
    #[cold]
    pub fn of(tables: &Tables<'_>, input: VisitInput<'_>, run: Run) -> Self {
        let VisitInput { spec, subset, shardings } = input;
        let rule = &tables.rules[spec.rule];
        let mut workspace = Workspace::default();
        let Some(mesh) = workspace.project(tables, input) else { return Self::default() };
        let old = workspace.table.clone();
        let directions = spec.directions(tables.rules);
        workspace.propagate(tables, spec, mesh, directions.of(run.step), run.strategy);
        let mappings = (0..shardings.len()).map_while(|index| subset.mapping(rule, index));
        let list = arrivals(mappings, &tables.meshes[mesh].mesh, &old, &workspace.table);
        Self { mesh, list }
    }

    /// Adds the arrivals of `new`, a visit of one tensor of each group: `same` returns all tensors
    /// of a target's group, `first` the tensor that a source stands for.
    pub fn add<I: Iterator<Item = u32>>(
        &mut self,
        new: Self,
        first: impl Fn(u32) -> u32,
        same: impl Fn(u32) -> I,
    ) {
        self.mesh = new.mesh;
        for arrival in new.list {
            let source = first(arrival.source);
            let of = |target| Arrival { target, source, ..arrival };
            self.list.extend(same(arrival.target).map(of));
        }
    }

    /// Sorts by target, and removes duplicates.
    pub fn in_order(mut self) -> Self {
        self.list.sort_by_key(|arrival| arrival.target);
        self.list.dedup();
        self
    }
}

/// Repeats a visit for the record. `shardings` are those of `tensors` before it.
#[cold]
pub fn record_visit(
    recorder: &mut Recorder,
    program: &mut Program,
    edges: &Edges,
    visit: (Subject, VisitSpec, Run),
    (tensors, shardings): (&[ValueId], &[ShardingId]),
) {
    let (subject, spec, run) = visit;
    let tables = program.tables();
    let input = VisitInput { spec, subset: Subset::ALL, shardings };
    let arrivals = Arrivals::of(&tables, input, run);
    record_arrivals(recorder, program, edges, (subject, spec), &arrivals, |tensor| tensors[tensor]);
}

/// Records the axes that a visit brings to the tensors of an op, which stand for these values.
pub fn record_arrivals(
    recorder: &mut Recorder,
    program: &mut Program,
    edges: &Edges,
    (subject, spec): (Subject, VisitSpec),
    arrivals: &Arrivals,
    value: impl Fn(usize) -> ValueId,
) {
    let Some(mesh) = arrivals.mesh.get() else { return };
    let num_operands = program.rules()[spec.rule].operands.len();
    let mesh = &*program.meshes()[mesh].mesh.clone();
    let visited = Visited { subject, num_operands, mesh, arrivals: &arrivals.list };
    recorder.record(program.strings_mut(), &visited, |tensor| edges.holder_of(value(tensor)));
}
