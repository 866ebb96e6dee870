//! Projects the axes of factors back to the dims of a tensor, which gives its new sharding.

use super::row::TensorFactorShardings;
use crate::axis::{push_or_merge, total_size, AxisRef};
use crate::index::{FactorId, Id, MeshId};
use crate::mesh::Mesh;
use crate::op_sharding_rule::TensorMapping;
use crate::sharding::{DimSharding, TensorSharding};

impl TensorFactorShardings {
    /// The sharding of the tensor with these factor shardings.
    ///
    /// If a factor is not fully sharded, axes of the factors minor to it are left out, since they
    /// would need a strided view of the tensor.
    pub fn to_sharding(
        &self,
        mapping: &TensorMapping,
        factor_sizes: &[i64],
        mesh_id: MeshId,
        mesh: &Mesh,
    ) -> TensorSharding {
        let dims = mapping.dims.iter().map(|factors| self.dim(factors, factor_sizes, mesh));
        TensorSharding {
            mesh: mesh_id,
            dims: dims.collect(),
            replicated: self.replicated.clone(),
            unreduced: self.unreduced.clone(),
            reduction_op: self.reduction_op,
        }
    }

    fn dim(&self, factors: &[FactorId], factor_sizes: &[i64], mesh: &Mesh) -> DimSharding {
        let mut dim = DimSharding::empty(false);
        for &factor in factors {
            let Some(sharding) = self.factor(factor) else { break };
            dim.is_closed |= sharding.is_closed;
            append(&mut dim.axes, &sharding.axes, mesh);
            if !sharding.overflow.is_empty() {
                append(&mut dim.axes, &sharding.overflow, mesh);
                break;
            }
            if total_size(&sharding.axes, mesh) < factor_sizes[factor.index()] {
                break;
            }
        }
        dim
    }
}

/// Appends `axes`, and merges an axis that was split at the boundary of two factors.
fn append(dim_axes: &mut Vec<AxisRef>, axes: &[AxisRef], mesh: &Mesh) {
    if let Some((&first, rest)) = axes.split_first() {
        push_or_merge(dim_axes, first, mesh);
        dim_axes.extend_from_slice(rest);
    }
}
