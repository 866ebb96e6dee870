//! The common axes of a reshape whose operand or result is sharded by axes that do not divide its
//! factors.
//!
//! The axes of the side with more shards are assigned to the factors of both sides again, each axis
//! to the first factors that it, or a part of it, divides. The axes that both sides then have in
//! common are kept.

use crate::axis::{push_or_merge, AxisRef};
use crate::index::{FactorId, Id, MeshId, OpId, ShardingId};
use crate::ir::Program;
use crate::mesh::Mesh;
use crate::op_sharding_rule::{OpShardingRule, TensorMapping};
use crate::partition::common_axes::AxesPerFactor;
use crate::projection::{Projection, TensorFactorShardings};

/// The axes that operand and result of reshape `op` will have in common. Updates the table to
/// these, and adds the tensors that change to `updates`.
pub fn common_axes(
    program: &mut Program,
    op: OpId,
    projection: &mut Projection,
    (shardings, mesh_id): (&[ShardingId], MeshId),
    rule: &OpShardingRule,
    updates: &mut [bool],
) -> AxesPerFactor {
    let mesh = program.meshes()[mesh_id].mesh.clone();
    let sizes = |tensor: usize| projection.tensors[tensor].sharding_size(&mesh);
    let preferred = &projection.tensors[usize::from(sizes(0) < sizes(1))];
    let entries = preferred.factors.shardings();
    let axes: Vec<AxisRef> =
        entries.flat_map(|entry| entry.axes.iter().chain(&entry.overflow)).copied().collect();
    let mappings = [&rule.operands[0], &rule.results[0]];
    let mut dealt = Vec::new();
    for (tensor, mapping) in projection.tensors.iter_mut().zip(mappings) {
        deal(tensor, mapping, &rule.factor_sizes, &axes, &mesh);
        dealt.push(tensor.to_sharding(mapping, &rule.factor_sizes, mesh_id, &mesh));
    }
    let legal = Projection::build(rule, dealt.iter().map(Some), &mesh, false);
    let common = legal.greatest_common_prefix_axes(rule.num_factors());
    for (factor, axes) in common.iter().enumerate() {
        projection.update(Id::from_index(factor), axes, |_| {});
    }
    let old = [program.sharding_of(program.operand(op, 0)), shardings[1]];
    for (index, mapping) in mappings.into_iter().enumerate() {
        let new = &projection.tensors[index];
        let new = new.to_sharding(mapping, &rule.factor_sizes, mesh_id, &mesh);
        let new = program.intern_sharding(new);
        updates[index] = !program.are_equivalent(old[index], new);
    }
    common
}

/// An axis that is not assigned yet, or its remaining part.
struct Left {
    axis: AxisRef,
    /// The size of the remaining part; the whole axis or sub-axis if nothing is taken.
    size: i64,
    taken: bool,
}

impl Left {
    fn as_ref(&self) -> AxisRef {
        if self.taken {
            AxisRef::sub(self.axis.axis, self.axis.pre_size(), self.size)
        } else {
            self.axis
        }
    }
    /// Takes the major-most part, of size `size`.
    fn take(&mut self, size: i64) -> AxisRef {
        let part = AxisRef::sub(self.axis.axis, self.axis.pre_size(), size);
        self.size /= size;
        self.axis = AxisRef::sub(part.axis, part.pre_size() * size, self.size);
        self.taken = true;
        part
    }
}

/// Assigns `axes` to the factors of one tensor.
fn deal(
    tensor: &mut TensorFactorShardings,
    mapping: &TensorMapping,
    factor_sizes: &[i64],
    axes: &[AxisRef],
    mesh: &Mesh,
) {
    let mut factors = Vec::new();
    for &factor in mapping.dims.iter().flatten() {
        if let Some(entry) = tensor.factors.get_mut(factor) {
            entry.axes.clear();
            entry.overflow.clear();
            factors.push((factor, factor_sizes[factor.index()]));
        }
    }
    let mut remaining = axes.iter().copied();
    while let Some(axis) = remaining.next() {
        let mut left = Left { axis, size: axis.size(mesh), taken: false };
        if !deal_one(tensor, &mut factors, &mut left, mesh) {
            let last = factors.last().and_then(|&(factor, _)| tensor.factors.get_mut(factor));
            if let Some(entry) = last {
                push_or_merge(&mut entry.overflow, left.as_ref(), mesh);
                for axis in remaining.by_ref() {
                    push_or_merge(&mut entry.overflow, axis, mesh);
                }
            }
            return;
        }
    }
}

/// Assigns one axis to `factors`, given with their unsharded sizes; returns false if a part of it
/// remains.
fn deal_one(
    tensor: &mut TensorFactorShardings,
    factors: &mut [(FactorId, i64)],
    left: &mut Left,
    mesh: &Mesh,
) -> bool {
    loop {
        let mut is_used = false;
        for (factor, room) in factors.iter_mut().filter(|(_, room)| *room > 1) {
            let common = crate::projection::gcd(*room, left.size);
            if common == 1 && left.size != 1 {
                continue;
            }
            is_used = true;
            let Some(entry) = tensor.factors.get_mut(*factor) else { continue };
            if left.size > common {
                push_or_merge(&mut entry.axes, left.take(common), mesh);
                *room /= common;
            } else {
                push_or_merge(&mut entry.axes, left.as_ref(), mesh);
                *room /= left.size;
                return true;
            }
        }
        if !is_used {
            return false;
        }
    }
}
