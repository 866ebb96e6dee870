//! One visit of an op as a pure function: from the shardings of its tensors to their new shardings.
//!
//! All updates are computed from the state at the start of the visit; the caller applies them in
//! order, so that where a tensor stands in two places the later one wins.

use super::direction::{along_factor, OpClass};
use super::{aggressive, basic, Strategy};
use crate::index::{FactorId, Id, MeshId, RuleId, ShardingId};
use crate::ir::{Direction, MeshTable};
use crate::mesh::Mesh;
use crate::projection::Projection;
use crate::rule::{OpShardingRule, RuleTable, TensorMapping};
use crate::sharding::{ShardingTable, TensorSharding};

/// What a visit depends on, beside the shardings of the op's tensors and the step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct VisitKind {
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

/// A visit once its factor table is there.
pub(super) struct FactorVisit<'a> {
    pub rule: &'a OpShardingRule,
    pub mesh: &'a Mesh,
    /// For each factor.
    pub directions: &'a [Direction],
    pub conservative: bool,
    pub is_elementwise: bool,
}

/// Which tensors of the op a visit is told about.
///
/// Of a wide op, only one of those with the same mapping and the same sharding: see
/// [`super::wide`]. A tensor is given by the first one that has its mapping.
#[derive(Clone, Copy)]
pub(super) struct Subset<'a>(pub Option<&'a [u32]>);

impl<'a> Subset<'a> {
    /// All of them.
    pub const ALL: Self = Self(None);

    /// What distinguishes it from other subsets of the same length.
    #[inline]
    pub fn key(self) -> impl ExactSizeIterator<Item = u32> + 'a {
        self.0.unwrap_or_default().iter().copied()
    }
    /// The mapping of the tensor at `index` of the subset.
    fn mapping(self, rule: &OpShardingRule, index: usize) -> Option<&TensorMapping> {
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
pub(super) struct Tables<'a> {
    pub rules: &'a RuleTable,
    pub meshes: &'a MeshTable,
    pub shardings: &'a mut ShardingTable,
}

/// The new sharding of the tensor at an index of operands followed by results.
pub(super) type Update = (u32, ShardingId);

/// The directions along all factors in `step`.
pub(super) fn directions(kind: VisitKind, rule: &OpShardingRule, step: usize) -> Vec<Direction> {
    let factors = (0..rule.num_factors()).map(FactorId::from_index);
    let single = kind.has_single_uses;
    factors.map(|factor| along_factor(kind.class, step, single, rule, factor)).collect()
}

/// The mesh that all shardings are over; `None` if there is none, or if meshes differ.
///
/// A mesh without axes and devices fits any other. Of meshes that are equal the first counts.
pub(super) fn common_mesh(tables: &Tables<'_>, shardings: &[ShardingId]) -> Option<MeshId> {
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

/// The factor table of a visit, and the mesh it is over; `None` if there is nothing to propagate.
pub(super) fn project(
    tables: &Tables<'_>,
    rule: RuleId,
    subset: Subset<'_>,
    shardings: &[ShardingId],
) -> Option<(MeshId, Projection)> {
    let mesh_id = common_mesh(tables, shardings)?;
    let mesh = &tables.meshes[mesh_id].mesh;
    if mesh.is_maximal() {
        return None;
    }
    let rule = &tables.rules[rule];
    let table: &ShardingTable = tables.shardings;
    let rows = shardings.iter().enumerate();
    let rows = rows.filter_map(|(index, &id)| Some((subset.mapping(rule, index)?, table.get(id))));
    let num_operands = subset.num_operands(rule);
    Some((mesh_id, Projection::of_rows(rule, num_operands, rows, mesh, false)))
}

/// Whether no visit by `rule` changes anything, in whichever directions and strategy, because the
/// tensors agree along each factor: what propagates are prefixes of what they have.
pub(super) fn is_settled(
    tables: &Tables<'_>,
    rule: RuleId,
    subset: Subset<'_>,
    shardings: &[ShardingId],
) -> bool {
    let Some((_, projection)) = project(tables, rule, subset, shardings) else { return true };
    (0..tables.rules[rule].num_factors()).all(|factor| {
        let mut all =
            projection.tensors.iter().filter_map(|tensor| tensor.factors[factor].as_ref());
        let Some(first) = all.next() else { return true };
        first.overflow.is_empty()
            && all.all(|other| other.axes == first.axes && other.overflow.is_empty())
    })
}

/// Propagates in `projection`; says which tensors it expands.
pub(super) fn propagate(
    tables: &Tables<'_>,
    kind: VisitKind,
    mesh: MeshId,
    directions: &[Direction],
    strategy: Strategy,
    projection: &mut Projection,
) -> Vec<bool> {
    let mut updated = vec![false; projection.tensors.len()];
    let visit = FactorVisit {
        rule: &tables.rules[kind.rule],
        mesh: &tables.meshes[mesh].mesh,
        directions,
        conservative: kind.is_conservative,
        is_elementwise: kind.is_elementwise,
    };
    match strategy {
        Strategy::Basic => basic::propagate(&visit, projection, &mut updated),
        _ => aggressive::propagate(&visit, projection, &mut updated),
    }
    updated
}

/// What a visit in `strategy` with these directions changes. `shardings` are those of the operands,
/// then of the results, as far as they are in `subset`.
pub(super) fn visit(
    tables: &mut Tables<'_>,
    kind: VisitKind,
    subset: Subset<'_>,
    shardings: &[ShardingId],
    directions: &[Direction],
    strategy: Strategy,
) -> Vec<Update> {
    if directions.iter().all(|&direction| direction == Direction::None) {
        return Vec::new();
    }
    let Some((mesh_id, mut projection)) = project(tables, kind.rule, subset, shardings) else {
        return Vec::new();
    };
    let expanded = propagate(tables, kind, mesh_id, directions, strategy, &mut projection);
    let (rule, mesh) = (&tables.rules[kind.rule], &tables.meshes[mesh_id].mesh);
    let mut updates = Vec::new();
    for (index, _) in expanded.iter().enumerate().filter(|(_, &is_expanded)| is_expanded) {
        let Some(mapping) = subset.mapping(rule, index) else { continue };
        let new = projection.tensors[index].to_sharding(mapping, &rule.factor_sizes, mesh_id, mesh);
        if is_update(tables.shardings.get(shardings[index]), &new) {
            updates.push((index as u32, tables.shardings.intern(new)));
        }
    }
    updates
}

/// Whether `new` says something that `old` does not.
fn is_update(old: Option<&TensorSharding>, new: &TensorSharding) -> bool {
    old.map_or(!new.has_no_axes(), |old| old != new)
}
