//! From dims to factors.

use super::{FactorSharding, TensorFactorShardings};
use crate::axis::{push_or_merge, AxisRef};
use crate::index::{FactorId, Id};
use crate::mesh::Mesh;
use crate::rule::TensorMapping;
use crate::sharding::TensorSharding;

/// The axes of one dim that no factor has taken yet.
struct Remaining<'a> {
    /// The current axis or what is left of it, then the untouched ones.
    current: Option<AxisRef>,
    rest: &'a [AxisRef],
}

impl<'a> Remaining<'a> {
    fn new(axes: &'a [AxisRef]) -> Self {
        let mut remaining = Self { current: None, rest: axes };
        remaining.advance();
        remaining
    }
    fn advance(&mut self) {
        self.current = None;
        if let Some((&first, rest)) = self.rest.split_first() {
            (self.current, self.rest) = (Some(first), rest);
        }
    }
    /// Adds everything that is left to `axes`.
    fn drain_into(&mut self, axes: &mut Vec<AxisRef>, mesh: &Mesh) {
        while let Some(axis) = self.current {
            push_or_merge(axes, axis, mesh);
            self.advance();
        }
    }
    /// Takes axes, or parts of them, as long as they divide `size`; returns what is left of `size`.
    fn take_dividing(&mut self, axes: &mut Vec<AxisRef>, mut size: i64, mesh: &Mesh) -> i64 {
        while let Some(axis) = self.current {
            let axis_size = axis.size(mesh);
            let common = gcd(size, axis_size);
            if axis_size != 1 && common <= 1 {
                break;
            }
            if axis_size > common {
                let part = AxisRef::sub(axis.axis, axis.pre_size(), common);
                let left = axis_size / common;
                self.current = Some(AxisRef::sub(axis.axis, part.next_pre_size(mesh), left));
                size /= common;
                axes.push(part);
            } else {
                size /= axis_size;
                axes.push(axis);
                self.advance();
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

/// Projects the sharding of one tensor to the factors of its dims.
pub(super) fn project(
    mapping: &TensorMapping,
    sharding: Option<&TensorSharding>,
    factor_sizes: &[i64],
    mesh: &Mesh,
    closed_if_missing: bool,
) -> TensorFactorShardings {
    let mut row = TensorFactorShardings::default();
    row.factors.resize(factor_sizes.len(), None);
    for (dim, factors) in mapping.dims.iter().enumerate() {
        let dim = sharding.and_then(|sharding| sharding.dims.get(dim));
        let axes = dim.map_or(&[] as &[AxisRef], |dim| &dim.axes);
        let is_closed = dim.map_or(closed_if_missing, |dim| dim.is_closed);
        project_dim(&mut row, factors, axes, is_closed, factor_sizes, mesh);
    }
    if let Some(sharding) = sharding {
        row.replicated.clone_from(&sharding.replicated);
        row.unreduced.clone_from(&sharding.unreduced);
    }
    row
}

fn project_dim(
    row: &mut TensorFactorShardings,
    factors: &[FactorId],
    axes: &[AxisRef],
    is_closed: bool,
    factor_sizes: &[i64],
    mesh: &Mesh,
) {
    let mut remaining = Remaining::new(axes);
    let mut has_overflow = false;
    for &factor in factors {
        let mut entry = FactorSharding {
            is_closed: is_closed || has_overflow,
            is_minor_most: factors.last() == Some(&factor),
            ..FactorSharding::default()
        };
        if has_overflow {
            // Only the factor right behind is entered, as closed; those after it stay out.
            row.factors[factor.index()] = Some(entry);
            return;
        }
        if entry.is_minor_most {
            remaining.drain_into(&mut entry.axes, mesh);
        } else {
            let size = factor_sizes[factor.index()];
            let left = remaining.take_dividing(&mut entry.axes, size, mesh);
            if left > 1 && remaining.current.is_some() {
                has_overflow = true;
                remaining.drain_into(&mut entry.overflow, mesh);
            }
        }
        row.factors[factor.index()] = Some(entry);
    }
}
