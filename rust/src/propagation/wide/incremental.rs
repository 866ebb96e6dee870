//! Ops of many tensors of which few are alike.
//!
//! What is wanted along each factor is kept from visit to visit, for each kind of greedy run. A visit
//! looks again at the factors along which a tensor has changed, and then at the tensors that have changed
//! themselves or have a factor along which something else is wanted now. All others would do what they
//! did at the visit before: what a tensor takes depends on its own row and on what is wanted along
//! its factors.
//!
//! That holds in the aggressive strategy and for ops that are not elementwise, whichever axes there are.
//! Where a factor overflows, those behind it are not in the table; a ledger ends when that changes.

use crate::index::{FactorId, Id, MeshId, ShardingId};
use crate::ir::Program;
use crate::projection::Projection;
use crate::propagation::visit::aggressive::{expanded, FactorClaim};
use crate::propagation::visit::direction::Directions;
use crate::propagation::visit::{is_update, FactorVisit, Subset, Tables, Update, VisitSpec};

/// What is known of the tensors of an op, or of a part of it.
pub struct IncrementalVisit {
    /// How it is visited.
    pub spec: VisitSpec,
    mesh: MeshId,
    directions: Directions,
    shardings: Vec<ShardingId>,
    /// How they are now.
    table: Projection,
    runs: Vec<RunState>,
}

/// What is known for one kind of greedy runs.
#[derive(Clone)]
struct RunState {
    /// By factor, as of the last visit.
    wanted: Vec<Option<FactorClaim>>,
    /// What has changed since.
    factors: DirtySet,
    tensors: DirtySet,
}

/// Some numbers, each once.
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
    /// That of tensors with these shardings, all over `mesh`.
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
            wanted: vec![None; rule.num_factors()],
            factors: DirtySet::all(rule.num_factors()),
            tensors: DirtySet::all(shardings.len()),
        };
        let directions = spec.directions(tables.rules);
        Self { spec, mesh, directions, shardings, table, runs: vec![run; num_runs] }
    }

    /// Notes that `tensor` has `sharding` now; false if the ledger is of no use any more.
    pub fn change(&mut self, program: &Program, tensor: u32, sharding: ShardingId) -> bool {
        let rule = &program.rules[self.spec.rule];
        let Some(mapping) = Subset::ALL.mapping(rule, tensor as usize) else { return false };
        self.shardings[tensor as usize] = sharding;
        let (sharding, mesh) = (program.shardings.get(sharding), program.mesh(self.mesh));
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

    /// What a visit in `run`, which is in `step`, changes.
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
        let RunState { wanted, factors, tensors } = &mut runs[run];
        for number in factors.take() {
            let factor = FactorId::from_index(number as usize);
            let now = FactorClaim::with_source(&visit, table, factor);
            if now != wanted[factor.index()] {
                wanted[factor.index()] = now;
                table.tensors_with(factor).iter().for_each(|&tensor| tensors.add(tensor));
            }
        }
        let mut updates = Vec::new();
        for tensor in tensors.take() {
            let (index, row) = (tensor as usize, &table.tensors[tensor as usize]);
            let of_factor = |(factor, _): (FactorId, _)| wanted[factor.index()].as_ref();
            let mut claims: Vec<&FactorClaim> = row.factors.iter().filter_map(of_factor).collect();
            claims.sort_by_key(|wanted| wanted.key(&visit));
            let Some(new) = expanded(&visit, row, &claims) else { continue };
            let Some(mapping) = Subset::ALL.mapping(rule, index) else { continue };
            let new = new.to_sharding(mapping, &rule.factor_sizes, *mesh, visit.mesh);
            if is_update(tables.shardings.get(shardings[index]), &new) {
                updates.push((tensor, tables.shardings.intern(new)));
                // Until it is seen to have changed.
                tensors.add(tensor);
            }
        }
        updates
    }
}
