//! Makes a visit: projects shardings to the factor table, propagates in it, and projects back.

use super::aggressive::{self, FactorClaim};
use super::basic;
use super::factor_visit::FactorVisit;
use super::input::{common_mesh, is_update, Update, VisitInput};
use super::spec::VisitSpec;
use super::strategy::VisitStrategy;
use crate::index::{FactorId, MeshId};
use crate::ir::{Direction, Tables};
use crate::projection::Projection;
use crate::sharding::ShardingTable;

/// Memory for visits, used again from visit to visit.
#[derive(Clone, Default)]
pub struct Workspace {
    /// The factor table.
    pub table: Projection,
    state: State,
    contested: Vec<FactorId>,
    expanded: Vec<bool>,
    claims: Vec<FactorClaim>,
}

/// Whose factor table a [`Workspace`] has.
#[derive(Clone, Copy, Default)]
enum State {
    /// The table is that of another visit.
    #[default]
    Other,
    /// The table is that of the visit, over this mesh.
    Projected(MeshId),
    /// There is nothing to propagate, in whichever directions and strategy.
    Settled,
}

impl Workspace {
    /// Forgets the factor table: the next visit has another input.
    pub fn forget(&mut self) {
        self.state = State::Other;
    }

    /// Adds to `updates` what a visit in `strategy` with these directions changes.
    pub fn visit(
        &mut self,
        tables: &mut Tables<'_>,
        input: VisitInput<'_>,
        directions: &[Direction],
        strategy: VisitStrategy,
        updates: &mut Vec<Update>,
    ) {
        if matches!(self.state, State::Other) {
            let mesh = self.project(tables, input);
            let mesh = mesh.filter(|_| !self.contested.is_empty());
            self.state = mesh.map_or(State::Settled, State::Projected);
        }
        let State::Projected(mesh) = self.state else { return };
        if self.propagate(tables, input.spec, mesh, directions, strategy) {
            self.project_back(tables, input, mesh, updates);
            self.forget();
        }
    }

    /// Makes the factor table, and returns the mesh it is over; `None` if there is nothing to propagate.
    pub fn project(&mut self, tables: &Tables<'_>, input: VisitInput<'_>) -> Option<MeshId> {
        let VisitInput { spec, subset, shardings } = input;
        let mesh_id = common_mesh(tables, shardings)?;
        let mesh = &tables.meshes[mesh_id].mesh;
        if mesh.is_maximal() {
            return None;
        }
        let rule = &tables.rules[spec.rule];
        let table: &ShardingTable = tables.shardings;
        let rows = shardings.iter().enumerate();
        let rows =
            rows.filter_map(|(index, &id)| Some((subset.mapping(rule, index)?, table.get(id))));
        self.table.fill(rule, subset.num_operands(rule), rows, mesh, false);
        self.contested.clear();
        self.contested.extend(self.table.contested_factors());
        Some(mesh_id)
    }

    /// Propagates in the factor table; true if that expands any tensor.
    pub fn propagate(
        &mut self,
        tables: &Tables<'_>,
        spec: VisitSpec,
        mesh: MeshId,
        directions: &[Direction],
        strategy: VisitStrategy,
    ) -> bool {
        let Self { table, contested, expanded, claims, .. } = self;
        let visit = FactorVisit {
            rule: &tables.rules[spec.rule],
            mesh: &tables.meshes[mesh].mesh,
            factors: contested,
            directions,
            conservative: spec.is_conservative,
            is_elementwise: spec.is_elementwise,
        };
        expanded.clear();
        expanded.resize(table.tensors.len(), false);
        match strategy {
            VisitStrategy::Basic => basic::propagate(&visit, table, expanded),
            VisitStrategy::Aggressive => aggressive::propagate(&visit, table, expanded, claims),
        }
        expanded.contains(&true)
    }

    /// Adds to `updates` what the tensors that were expanded have now.
    fn project_back(
        &self,
        tables: &mut Tables<'_>,
        input: VisitInput<'_>,
        mesh_id: MeshId,
        updates: &mut Vec<Update>,
    ) {
        let rule = &tables.rules[input.spec.rule];
        let mesh = &tables.meshes[mesh_id].mesh;
        let tensors = self.table.tensors.iter().zip(&self.expanded).enumerate();
        for (index, (tensor, _)) in tensors.filter(|(_, (_, &is_expanded))| is_expanded) {
            let Some(mapping) = input.subset.mapping(rule, index) else { continue };
            let new = tensor.to_sharding(mapping, &rule.factor_sizes, mesh_id, mesh);
            if is_update(tables.shardings.get(input.shardings[index]), &new) {
                updates.push((index as u32, tables.shardings.intern(new)));
            }
        }
    }
}

/// Makes one visit and returns what it changes, see [`Workspace::visit`].
pub fn visit(
    tables: &mut Tables<'_>,
    input: VisitInput<'_>,
    directions: &[Direction],
    strategy: VisitStrategy,
) -> Vec<Update> {
    let mut updates = Vec::new();
    Workspace::default().visit(tables, input, directions, strategy, &mut updates);
    updates
}
