//! The state of one wide op that is kept from visit to visit.

use super::decomposition::{RuleComponent, RuleDecomposition};
use super::incremental::IncrementalVisit;
use super::tensor_groups::TensorGroups;
use crate::index::{MeshId, ShardingId};
use crate::mesh::Mesh;
use crate::propagation::state::State;
use crate::propagation::visit::{RunMask, VisitSpec};
use crate::sharding::TensorSharding;

/// A wide op.
#[derive(Default)]
pub struct WideOp {
    /// Its index among the readers of many shardings.
    reader: usize,
    /// The spec of its last visit.
    spec: Option<VisitSpec>,
    /// Its components, in the order of its decomposition.
    pub components: Vec<ComponentState>,
    /// For each kind of run the components in which a visit may change something.
    open: Vec<Vec<u32>>,
    /// The mesh of the shardings so far.
    pub mesh: MeshId,
    /// Whether a sharding is over another mesh.
    pub has_other_mesh: bool,
    /// Whether a visit reads every tensor, since there may be sub-axes that do not nest.
    pub is_whole: bool,
    /// The state of incremental visits of the whole op, if a visit reads every tensor.
    pub incremental: Option<Box<IncrementalVisit>>,
}

/// A component of a wide op.
pub struct ComponentState {
    /// The kinds of runs for which it is in [`WideOp::open`].
    is_open: RunMask,
    /// Its tensors, grouped by what a visit can distinguish.
    pub groups: TensorGroups,
    /// The state of incremental visits, if there are many mappings.
    pub incremental: Option<Box<IncrementalVisit>>,
}

impl WideOp {
    /// The initial state of the op at `position`: all of its tensors count as changed.
    ///
    /// An edge of a manual computation, whose target has another sharding than its sources, has one
    /// source, so that it is never wide.
    pub fn new(
        state: &mut State<'_>,
        position: u32,
        decomposition: &RuleDecomposition,
        num_runs: usize,
    ) -> Self {
        let edges = &state.plan.edges;
        let tensors = state.plan.row(position).tensors;
        let reader = state.readers.add(tensors.iter().map(|&value| edges.holder_of(value)));
        let component = |component: &RuleComponent| ComponentState {
            is_open: 0,
            groups: TensorGroups::new(component.tensors.len()),
            incremental: None,
        };
        let components = decomposition.components.iter().map(component).collect();
        Self { reader, components, open: vec![Vec::new(); num_runs], ..Self::default() }
    }

    /// Updates the state by the tensors whose shardings have changed since the last visit, and by
    /// the spec.
    pub fn catch_up(
        &mut self,
        state: &mut State<'_>,
        position: u32,
        spec: VisitSpec,
        decomposition: &RuleDecomposition,
    ) {
        let changed: Vec<u32> = state.readers.changed(self.reader).collect();
        for tensor in changed {
            let Some(place) = decomposition.places[tensor as usize] else { continue };
            let sharding = state.sharding(state.plan.tensor(position, tensor as usize));
            self.tensor_changed(state, tensor, place, sharding, decomposition);
        }
        if self.spec.replace(spec) != Some(spec) {
            (0..self.components.len() as u32).for_each(|component| self.open(component));
        }
    }

    fn tensor_changed(
        &mut self,
        state: &State<'_>,
        tensor: u32,
        (component, number): (u32, u32),
        id: ShardingId,
        decomposition: &RuleDecomposition,
    ) {
        let program = state.program();
        self.incremental.take_if(|visit| !visit.change(program, tensor, id));
        let first = decomposition.components[component as usize].firsts[number as usize];
        let row = &mut self.components[component as usize];
        row.groups.put(number, first, id);
        row.incremental.take_if(|visit| !visit.change(program, number, id));
        self.open(component);
        if let Some(sharding) = program.shardings().get(id) {
            if self.mesh.is_none() {
                self.mesh = sharding.mesh;
            }
            self.has_other_mesh |= sharding.mesh != self.mesh;
            let is_other_mesh = self.has_other_mesh && decomposition.components.len() > 1;
            let mesh = program.mesh(sharding.mesh);
            self.is_whole |=
                is_other_mesh || !do_parts_nest(sharding, mesh, decomposition.has_splits);
        }
    }

    /// Records that visits of all kinds of runs may change something in `component`.
    fn open(&mut self, component: u32) {
        for run in 0..self.open.len() {
            self.open_in(run, component);
        }
    }
    /// Records that visits in `run` may change something in `component`.
    pub fn open_in(&mut self, run: usize, component: u32) {
        let is_open = &mut self.components[component as usize].is_open;
        if *is_open & 1 << run == 0 {
            *is_open |= 1 << run;
            self.open[run].push(component);
        }
    }
    /// Takes the components in which a visit in `run` may change something.
    pub fn take_open(&mut self, run: usize) -> Vec<u32> {
        let open = std::mem::take(&mut self.open[run]);
        for &component in &open {
            self.components[component as usize].is_open &= !(1 << run);
        }
        open
    }
}

/// Whether all sub-axes that visits can form from `sharding` nest.
fn do_parts_nest(sharding: &TensorSharding, mesh: &Mesh, has_splits: bool) -> bool {
    sharding.axis_refs().all(|axis| {
        let size = mesh.axis_size(axis.axis);
        size & (size - 1) == 0 || !(has_splits || axis.sub.is_some())
    })
}
