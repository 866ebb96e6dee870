//! Projects the sharding of a tensor to the factors of the op's rule: the axes of each dim are split among its factors.

use super::axis_list::AxisList;
use super::factors::FactorSharding;
use super::row::TensorFactorShardings;
use crate::axis::{push_or_merge, AxisRef};
use crate::index::{FactorId, Id};
use crate::mesh::Mesh;
use crate::op_sharding_rule::TensorMapping;
use crate::sharding::{ReductionOp, TensorSharding};

/// The axes of one dim that are not assigned to factors yet.
struct Remaining<'a> {
    /// The remaining part of the first axis, if a factor has taken a part of it.
    part: Option<AxisRef>,
    /// The following axes.
    rest: &'a [AxisRef],
}

impl Remaining<'_> {
    fn first(&self) -> Option<AxisRef> {
        self.part.or_else(|| self.rest.first().copied())
    }
    /// Replaces the first axis by `part`, the remaining part of it, if any.
    fn take_first(&mut self, part: Option<AxisRef>) {
        if self.part.is_none() {
            self.rest = self.rest.get(1..).unwrap_or_default();
        }
        self.part = part;
    }
    /// Takes all remaining axes.
    fn drain(&mut self, mesh: &Mesh) -> AxisList {
        let mut axes = AxisList::new();
        if let Some(part) = self.part.take() {
            axes.push(part);
        }
        for &axis in std::mem::take(&mut self.rest) {
            push_or_merge(&mut axes, axis, mesh);
        }
        axes
    }
    /// Takes axes, or parts of them, while they divide `size`; returns the unsharded part of
    /// `size`.
    fn take_dividing(&mut self, axes: &mut AxisList, mut size: i64, mesh: &Mesh) -> i64 {
        while let Some(axis) = self.first() {
            let axis_size = axis.size(mesh);
            let common = gcd(size, axis_size);
            if axis_size != 1 && common <= 1 {
                break;
            }
            if axis_size > common {
                let part = AxisRef::sub(axis.axis, axis.pre_size(), common);
                let (next, left) = (part.next_pre_size(mesh), axis_size / common);
                self.take_first(Some(AxisRef::sub(axis.axis, next, left)));
                size /= common;
                axes.push(part);
            } else {
                self.take_first(None);
                size /= axis_size;
                axes.push(axis);
            }
        }
        size
    }
}

/// Greatest common divisor.
pub(crate) fn gcd(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Projects the sharding of one tensor to the factors of its dims, into `row`.
pub(super) fn project(
    row: &mut TensorFactorShardings,
    mapping: &TensorMapping,
    sharding: Option<&TensorSharding>,
    factor_sizes: &[i64],
    mesh: &Mesh,
    closed_if_missing: bool,
) {
    row.factors.clear();
    row.replicated.clear();
    row.unreduced.clear();
    row.reduction_op = ReductionOp::Sum;
    if let Some(sharding) = sharding {
        row.replicated.extend_from_slice(&sharding.replicated);
        row.unreduced.extend_from_slice(&sharding.unreduced);
        row.reduction_op = sharding.reduction_op;
    }
    for (dim, factors) in mapping.dims.iter().enumerate() {
        let dim = sharding.and_then(|sharding| sharding.dims.get(dim));
        let axes = dim.map_or(&[] as &[AxisRef], |dim| &dim.axes);
        let is_closed = dim.map_or(closed_if_missing, |dim| dim.is_closed);
        project_dim(row, factors, axes, is_closed, factor_sizes, mesh);
    }
    row.factors.sort();
}

fn project_dim(
    row: &mut TensorFactorShardings,
    factors: &[FactorId],
    axes: &[AxisRef],
    is_closed: bool,
    factor_sizes: &[i64],
    mesh: &Mesh,
) {
    let mut remaining = Remaining { part: None, rest: axes };
    let mut has_overflow = false;
    for &factor in factors {
        let is_minor_most = factors.last() == Some(&factor);
        let mut entry = FactorSharding {
            axes: if is_minor_most { remaining.drain(mesh) } else { AxisList::new() },
            is_closed: is_closed || has_overflow,
            is_minor_most,
            overflow: Vec::new(),
        };
        if has_overflow {
            // Of the factors minor to it, only the next one is added, as closed.
            row.factors.push(factor, entry);
            return;
        }
        if !is_minor_most {
            let size = factor_sizes[factor.index()];
            let left = remaining.take_dividing(&mut entry.axes, size, mesh);
            if left > 1 && remaining.first().is_some() {
                has_overflow = true;
                entry.overflow = remaining.drain(mesh).to_vec();
            }
        }
        row.factors.push(factor, entry);
    }
}
