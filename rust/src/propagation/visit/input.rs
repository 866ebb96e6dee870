//! The input of a visit, and its output.

use super::spec::VisitSpec;
use crate::index::{MeshId, ShardingId};
use crate::ir::Tables;
use crate::mesh::Mesh;
use crate::op_sharding_rule::{OpShardingRule, TensorMapping};
use crate::sharding::TensorSharding;

/// The tensors of the op that a visit reads.
///
/// A visit of a wide op reads only one of the tensors with the same mapping and sharding, see
/// [`crate::propagation::wide`]. A tensor is given by the index of the first tensor with its
/// mapping.
#[derive(Clone, Copy)]
pub struct Subset<'a>(pub Option<&'a [u32]>);

impl<'a> Subset<'a> {
    /// All tensors.
    pub const ALL: Self = Self(None);

    /// A key that is different for different subsets of the same length.
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
    pub fn num_operands(self, rule: &OpShardingRule) -> usize {
        let is_operand = |&&tensor: &&u32| (tensor as usize) < rule.operands.len();
        self.0.map_or(rule.operands.len(), |tensors| tensors.iter().filter(is_operand).count())
    }
}

/// The new sharding of the tensor at an index of operands followed by results.
pub type Update = (u32, ShardingId);

/// The mesh of all shardings; `None` if there is none, or if meshes differ.
///
/// A mesh without axes and devices equals any other. Of equal meshes the first is returned.
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

/// The input of a visit, beside the kind of run.
#[derive(Clone, Copy)]
pub struct VisitInput<'a> {
    pub spec: VisitSpec,
    pub subset: Subset<'a>,
    /// The shardings of the operands and results in the subset, in order.
    pub shardings: &'a [ShardingId],
}

/// Whether `new` differs from `old`.
pub fn is_update(old: Option<&TensorSharding>, new: &TensorSharding) -> bool {
    old.map_or(!new.has_no_axes(), |old| old != new)
}
