//! One row of the factor table: a tensor.

use super::factors::{FactorSharding, Factors};
use crate::axis::{prefix_status, AxisRef, PrefixStatus};
use crate::index::FactorId;
use crate::mesh::Mesh;
use crate::sharding::ReductionOp;

/// One row of the factor table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TensorFactorShardings {
    /// The shardings of the factors that the tensor has, except those minor to a factor that
    /// overflows.
    pub factors: Factors,
    /// Axes that may not shard any factor.
    pub replicated: Vec<AxisRef>,
    /// Axes over which the value still has to be reduced.
    pub unreduced: Vec<AxisRef>,
    /// The reduction over the unreduced axes.
    pub reduction_op: ReductionOp,
}

impl TensorFactorShardings {
    /// The sharding of `factor`.
    #[inline]
    pub fn factor(&self, factor: FactorId) -> Option<&FactorSharding> {
        self.factors.get(factor)
    }
    /// Sets the axes of `factor` to `axes` if the tensor has it and its axes are a strict prefix of
    /// `axes`; returns whether it did.
    pub fn expand(&mut self, factor: FactorId, axes: &[AxisRef]) -> bool {
        let Some(sharding) = self.factors.get_mut(factor) else { return false };
        if prefix_status(&sharding.axes, axes) != PrefixStatus::StrictPrefix {
            return false;
        }
        sharding.axes = axes.into();
        true
    }
    /// Sets the axes of `factor` to `axes`, without overflow axes, if the tensor has it; returns
    /// whether that is a change.
    pub(super) fn update(&mut self, factor: FactorId, axes: &[AxisRef]) -> bool {
        let Some(sharding) = self.factors.get_mut(factor) else { return false };
        if *sharding.axes == *axes && sharding.overflow.is_empty() {
            return false;
        }
        sharding.axes = axes.into();
        sharding.overflow.clear();
        true
    }
    /// Number of shards of the tensor.
    pub fn sharding_size(&self, mesh: &Mesh) -> i64 {
        let factors = self.factors.shardings();
        factors
            .flat_map(|factor| factor.axes.iter().chain(&factor.overflow))
            .map(|axis| axis.size(mesh))
            .product()
    }
    /// Whether some factor overflows.
    pub fn has_overflow(&self) -> bool {
        self.factors.shardings().any(|factor| !factor.overflow.is_empty())
    }
}
