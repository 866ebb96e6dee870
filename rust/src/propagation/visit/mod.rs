//! One visit of an op as a pure function: from the shardings of its tensors to their new shardings.
//!
//! All updates are computed from the state at the start of the visit; the caller applies them in
//! order, so that where a tensor stands in two places the later one wins.

pub mod aggressive;
pub mod basic;
pub mod compatible;
pub mod direction;
pub mod factor_table;

use crate::index::{FactorId, MeshId, RuleId, ShardingId};
use crate::ir::{Direction, MeshTable};
use crate::mesh::Mesh;
use crate::projection::Projection;
use crate::propagation::Strategy;
use crate::rule::{OpShardingRule, RuleTable, TensorMapping};
use crate::sharding::{ShardingTable, TensorSharding};
use aggressive::FactorClaim;
use direction::{Directions, OpClass};

/// What a visit depends on, beside the shardings of the op's tensors and the step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VisitSpec {
    /// The rule.
    pub rule: RuleId,
    /// How its direction depends on the step.
    pub class: OpClass,
    /// Whether each operand that is not a scalar has no other use.
    pub has_single_uses: bool,
    /// Whether the op is elementwise.
    pub is_elementwise: bool,
    /// Whether sub-axes may not propagate.
    pub is_conservative: bool,
}

impl VisitSpec {
    /// In which directions it propagates.
    pub fn directions(self, rules: &RuleTable) -> Directions {
        Directions::new(self.class, self.has_single_uses, &rules[self.rule])
    }
}

/// A visit once its factor table is there.
pub struct FactorVisit<'a> {
    pub rule: &'a OpShardingRule,
    pub mesh: &'a Mesh,
    /// The factors that tensors differ in. What propagates along others is a prefix of what all have.
    pub factors: &'a [FactorId],
    /// For each factor of the rule.
    pub directions: &'a [Direction],
    pub conservative: bool,
    pub is_elementwise: bool,
}

/// Which tensors of the op a visit is told about.
///
/// Of a wide op, only one of those with the same mapping and the same sharding: see
/// [`crate::propagation::wide`]. A tensor is given by the first one that has its mapping.
#[derive(Clone, Copy)]
pub struct Subset<'a>(pub Option<&'a [u32]>);

impl<'a> Subset<'a> {
    /// All of them.
    pub const ALL: Self = Self(None);

    /// What distinguishes it from other subsets of the same length.
    #[inline]
    pub fn key(self) -> impl ExactSizeIterator<Item = u32> + 'a {
        self.0.unwrap_or_default().iter().copied()
    }
    /// The mapping of the tensor at `index` of the subset.
    pub fn mapping(self, rule: &OpShardingRule, index: usize) -> Option<&TensorMapping> {
        let index = self.0.map_or(index, |tensors| tensors[index] as usize);
        match index.checked_sub(rule.operands.len()) {
            None => rule.operands.get(index),
            Some(index) => rule.results.get(index),
        }
    }
    /// How many tensors of the subset are operands.
    fn num_operands(self, rule: &OpShardingRule) -> usize {
        let is_operand = |&&tensor: &&u32| (tensor as usize) < rule.operands.len();
        self.0.map_or(rule.operands.len(), |tensors| tensors.iter().filter(is_operand).count())
    }
}

/// The tables that a visit reads and adds shardings to.
pub struct Tables<'a> {
    pub rules: &'a RuleTable,
    pub meshes: &'a MeshTable,
    pub shardings: &'a mut ShardingTable,
}

/// The new sharding of the tensor at an index of operands followed by results.
pub type Update = (u32, ShardingId);

/// The mesh that all shardings are over; `None` if there is none, or if meshes differ.
///
/// A mesh without axes and devices fits any other. Of meshes that are equal the first counts.
pub fn common_mesh(tables: &Tables<'_>, shardings: &[ShardingId]) -> Option<MeshId> {
    let mut common = MeshId::NONE;
    for &id in shardings {
        let Some(sharding) = tables.shardings.get(id) else { continue };
        if sharding.mesh == common {
            continue;
        }
        let mesh = &tables.meshes[sharding.mesh].mesh;
        let is_empty = |mesh: &Mesh| mesh.axes.is_empty() && mesh.device_ids.is_empty();
        match common.get() {
            None => common = sharding.mesh,
            Some(old) if is_empty(&tables.meshes[old].mesh) => common = sharding.mesh,
            Some(_) if is_empty(mesh) => {}
            Some(old) if tables.meshes[old].mesh == *mesh => {}
            Some(_) => return None,
        }
    }
    common.get()
}

/// What is visited.
#[derive(Clone, Copy)]
pub struct VisitInput<'a> {
    pub spec: VisitSpec,
    pub subset: Subset<'a>,
    /// Those of the operands, then of the results, as far as they are in the subset.
    pub shardings: &'a [ShardingId],
}

/// What visits work on: their memory is used again from visit to visit.
#[derive(Default)]
pub struct Workspace {
    /// The factor table.
    pub table: Projection,
    state: State,
    contested: Vec<FactorId>,
    expanded: Vec<bool>,
    wanted: Vec<FactorClaim>,
}

/// What the factor table of a [`Workspace`] is.
#[derive(Clone, Copy, Default)]
enum State {
    /// That of another visit.
    #[default]
    Other,
    /// That of the visit, over this mesh.
    Projected(MeshId),
    /// There is nothing to propagate, in whichever directions and strategy.
    Settled,
}

impl Workspace {
    /// Says that the next visit is of another site than the one before.
    pub fn forget(&mut self) {
        self.state = State::Other;
    }

    /// Adds to `updates` what a visit in `strategy` with these directions changes.
    pub fn visit(
        &mut self,
        tables: &mut Tables<'_>,
        site: VisitInput<'_>,
        directions: &[Direction],
        strategy: Strategy,
        updates: &mut Vec<Update>,
    ) {
        if matches!(self.state, State::Other) {
            let mesh = self.project(tables, site);
            let mesh = mesh.filter(|_| !self.contested.is_empty());
            self.state = mesh.map_or(State::Settled, State::Projected);
        }
        let State::Projected(mesh) = self.state else { return };
        if self.propagate(tables, site.spec, mesh, directions, strategy) {
            self.project_back(tables, site, mesh, updates);
            self.forget();
        }
    }

    /// Makes the factor table, and returns the mesh it is over; `None` if there is nothing to propagate.
    pub fn project(&mut self, tables: &Tables<'_>, site: VisitInput<'_>) -> Option<MeshId> {
        let VisitInput { spec, subset, shardings } = site;
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
        strategy: Strategy,
    ) -> bool {
        let Self { table, contested, expanded, wanted, .. } = self;
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
            Strategy::Basic => basic::propagate(&visit, table, expanded),
            _ => aggressive::propagate(&visit, table, expanded, wanted),
        }
        expanded.contains(&true)
    }

    /// Adds to `updates` what the tensors that were expanded have now.
    fn project_back(
        &self,
        tables: &mut Tables<'_>,
        site: VisitInput<'_>,
        mesh_id: MeshId,
        updates: &mut Vec<Update>,
    ) {
        let rule = &tables.rules[site.spec.rule];
        let mesh = &tables.meshes[mesh_id].mesh;
        let tensors = self.table.tensors.iter().zip(&self.expanded).enumerate();
        for (index, (tensor, _)) in tensors.filter(|(_, (_, &is_expanded))| is_expanded) {
            let Some(mapping) = site.subset.mapping(rule, index) else { continue };
            let new = tensor.to_sharding(mapping, &rule.factor_sizes, mesh_id, mesh);
            if is_update(tables.shardings.get(site.shardings[index]), &new) {
                updates.push((index as u32, tables.shardings.intern(new)));
            }
        }
    }
}

/// What one visit changes, see [`Workspace::visit`].
pub fn visit(
    tables: &mut Tables<'_>,
    site: VisitInput<'_>,
    directions: &[Direction],
    strategy: Strategy,
) -> Vec<Update> {
    let mut updates = Vec::new();
    Workspace::default().visit(tables, site, directions, strategy, &mut updates);
    updates
}

/// Whether `new` says something that `old` does not.
pub fn is_update(old: Option<&TensorSharding>, new: &TensorSharding) -> bool {
    old.map_or(!new.has_no_axes(), |old| old != new)
}
