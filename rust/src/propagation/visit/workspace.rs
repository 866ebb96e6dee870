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

/// Buffers that are reused from visit to visit.
#[derive(Clone, Default)]
pub struct Workspace {
    /// The factor table.
    pub table: Projection,
    state: State,
    contested: Vec<FactorId>,
    expanded: Vec<bool>,
    claims: Vec<FactorClaim>,
}

/// The visit for which a [`Workspace`] has the factor table.
#[derive(Clone, Copy, Default)]
enum State {
    /// Another visit.
    #[default]
    Other,
    /// This visit; all shardings are over this mesh.
    Projected(MeshId),
    /// This visit, in which nothing can propagate, whatever the directions and the strategy.
    Settled,
}

impl Workspace {
    /// Invalidates the factor table: the next visit has another input.
    pub fn forget(&mut self) {
        self.state = State::Other;
    }

    /// Appends to `updates` the changes of a visit in `strategy` with these directions.
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

    /// Computes the factor table, and returns the mesh of all shardings; `None` if nothing can
    /// propagate.
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

    /// Appends to `updates` the new shardings of the tensors that were expanded.
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

/// Makes one visit and returns its changes, see [`Workspace::visit`].
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
