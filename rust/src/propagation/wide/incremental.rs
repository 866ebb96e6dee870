//! Incremental visits, for ops with many tensors in many groups.
//!
//! The claim of each factor is kept from visit to visit, for each kind of greedy run. A visit
//! recomputes the claims of the factors along which a tensor has changed, and then the tensors that
//! have changed themselves or have a factor whose claim has changed. All other tensors would get
//! what they got in the previous visit: what a tensor takes depends on its own row and on the
//! claims of its factors
//! ([`Continuation::FactorClaims`](crate::propagation::visit::Continuation::FactorClaims)).
//!
//! This holds for any axes, for ops that are not elementwise. The factors after a factor that
//! overflows are not in the table; when this changes, visits cannot be incremental.

use crate::index::{FactorId, Id, MeshId, ShardingId};
use crate::ir::{Program, Tables};
use crate::projection::Projection;
use crate::propagation::visit::aggressive::{expanded, FactorClaim};
use crate::propagation::visit::direction::Directions;
use crate::propagation::visit::{is_update, FactorVisit, Subset, Update, VisitSpec};

/// The state that incremental visits of an op, or of a component of it, keep.
pub struct IncrementalVisit {
    /// The spec of the visits.
    pub spec: VisitSpec,
    mesh: MeshId,
    directions: Directions,
    shardings: Vec<ShardingId>,
    /// The current factor table.
    table: Projection,
    runs: Vec<RunState>,
}

/// The state of one kind of greedy run.
#[derive(Clone)]
struct RunState {
    /// The claim of each factor in the last visit.
    claims: Vec<Option<FactorClaim>>,
    /// The factors and tensors that have changed since the last visit.
    factors: DirtySet,
    tensors: DirtySet,
}

/// A set of numbers.
#[derive(Clone)]
struct DirtySet {
    list: Vec<u32>,
    is_in: Vec<bool>,
}

impl DirtySet {
    /// All numbers below `bound`.
    fn all(bound: usize) -> Self {
        Self { list: (0..bound as u32).collect(), is_in: vec![true; bound] }
    }
    fn add(&mut self, number: u32) {
        if !std::mem::replace(&mut self.is_in[number as usize], true) {
            self.list.push(number);
        }
    }
    fn take(&mut self) -> Vec<u32> {
        for &number in &self.list {
            self.is_in[number as usize] = false;
        }
        std::mem::take(&mut self.list)
    }
}

impl IncrementalVisit {
    /// The state for tensors with these shardings, all over `mesh`.
    pub fn new(
        tables: &Tables<'_>,
        spec: VisitSpec,
        mesh: MeshId,
        shardings: Vec<ShardingId>,
        num_runs: usize,
    ) -> Self {
        let rule = &tables.rules[spec.rule];
        let given = shardings.iter().map(|&id| tables.shardings.get(id));
        let table = Projection::build(rule, given, &tables.meshes[mesh].mesh, false);
        let run = RunState {
            claims: vec![None; rule.num_factors()],
            factors: DirtySet::all(rule.num_factors()),
            tensors: DirtySet::all(shardings.len()),
        };
        let directions = spec.directions(tables.rules);
        Self { spec, mesh, directions, shardings, table, runs: vec![run; num_runs] }
    }

    /// Records that `tensor` has `sharding` now; false if visits cannot be incremental any more.
    pub fn change(&mut self, program: &Program, tensor: u32, sharding: ShardingId) -> bool {
        let rule = &program.rules()[self.spec.rule];
        let Some(mapping) = Subset::ALL.mapping(rule, tensor as usize) else { return false };
        self.shardings[tensor as usize] = sharding;
        let (sharding, mesh) = (program.shardings().get(sharding), program.mesh(self.mesh));
        let old = self.table.replace_row(tensor as usize, rule, mapping, sharding, mesh);
        let new = &self.table.tensors[tensor as usize];
        let factors = || new.factors.iter().map(|(factor, _)| factor);
        if !factors().eq(old.factors.iter().map(|(factor, _)| factor)) {
            return false;
        }
        for run in &mut self.runs {
            run.tensors.add(tensor);
            for ((factor, new), old) in new.factors.iter().zip(old.factors.shardings()) {
                if new.axes != old.axes {
                    run.factors.add(factor.index() as u32);
                }
            }
        }
        true
    }

    /// The changes of a visit in the kind of run `run`, which is in the op-priority step `step`.
    pub fn visit(&mut self, tables: &mut Tables<'_>, run: usize, step: usize) -> Vec<Update> {
        let Self { spec, mesh, directions, shardings, table, runs } = self;
        let rule = &tables.rules[spec.rule];
        let visit = FactorVisit {
            rule,
            mesh: &tables.meshes[*mesh].mesh,
            factors: &[],
            directions: directions.of(step),
            conservative: spec.is_conservative,
            is_elementwise: spec.is_elementwise,
        };
        let RunState { claims, factors, tensors } = &mut runs[run];
        for number in factors.take() {
            let factor = FactorId::from_index(number as usize);
            let now = FactorClaim::with_source(&visit, table, factor);
            if now != claims[factor.index()] {
                claims[factor.index()] = now;
                table.tensors_with(factor).iter().for_each(|&tensor| tensors.add(tensor));
            }
        }
        let mut updates = Vec::new();
        for tensor in tensors.take() {
            let (index, row) = (tensor as usize, &table.tensors[tensor as usize]);
            let of_factor = |(factor, _): (FactorId, _)| claims[factor.index()].as_ref();
            let mut own: Vec<&FactorClaim> = row.factors.iter().filter_map(of_factor).collect();
            own.sort_by_key(|claim| claim.key(&visit));
            let Some(new) = expanded(&visit, row, &own) else { continue };
            let Some(mapping) = Subset::ALL.mapping(rule, index) else { continue };
            let new = new.to_sharding(mapping, &rule.factor_sizes, *mesh, visit.mesh);
            if is_update(tables.shardings.get(shardings[index]), &new) {
                updates.push((tensor, tables.shardings.intern(new)));
                // Until its change is reported.
                tensors.add(tensor);
            }
        }
        updates
    }
}
