//! Whether two shardings of tensors of different shapes place the same elements on each device.
//!
//! Source: Shardy's `isShardingEquivalentAcrossReshapes`.

use crate::axis::AxisRef;
use crate::index::TypeId;
use crate::ir::{Program, Type};
use crate::mesh::Mesh;
use crate::sharding::TensorSharding;
use crate::shardy::Change;

/// The distance, in elements, between the slices that an axis separates.
#[derive(Clone, Copy, PartialEq)]
enum Stride {
    /// An integer that wraps around on overflow.
    Whole(i64),
    /// A floating-point number, compared with a tolerance.
    Near(f64),
}

impl Stride {
    fn is_same(self, other: Self) -> bool {
        match (self, other) {
            (Self::Near(first), Self::Near(second)) => (first - second).abs() < 1e-6,
            _ => self == other,
        }
    }
    fn times(self, factor: i64) -> Self {
        match self {
            Self::Whole(stride) => Self::Whole(stride.wrapping_mul(factor)),
            Self::Near(stride) => Self::Near(stride * factor as f64),
        }
    }
    fn total_cmp(self, other: Self) -> std::cmp::Ordering {
        match (self, other) {
            (Self::Whole(first), Self::Whole(second)) => first.cmp(&second),
            (Self::Near(first), Self::Near(second)) => first.total_cmp(&second),
            _ => std::cmp::Ordering::Equal,
        }
    }
}

/// Whether each axis separates the row-major elements of both tensors at the same distance.
pub fn is_equivalent_across_reshapes(
    program: &Program,
    (first, first_type): (&TensorSharding, TypeId),
    (second, second_type): (&TensorSharding, TypeId),
) -> bool {
    if first == second && first_type == second_type {
        return true;
    }
    if first.mesh != second.mesh || first.replicated != second.replicated {
        return false;
    }
    let strides = (strides(program, first, first_type), strides(program, second, second_type));
    let (Some(first), Some(second)) = strides else { return false };
    let pairs = || first.iter().zip(&second);
    first.len() == second.len() && pairs().all(|(a, b)| a.0 == b.0 && a.1.is_same(b.1))
}

/// The axes with their strides, smallest stride first. `None` if elements are not in row-major
/// order.
fn strides(
    program: &Program,
    sharding: &TensorSharding,
    ty: TypeId,
) -> Option<Vec<(AxisRef, Stride)>> {
    let Type::RankedTensor { shape, encoding: None, .. } = &program.types()[ty] else {
        return None;
    };
    let mesh = program.mesh(sharding.mesh);
    let merges = program.shardy().has(Change::SubAxesAcrossReshapes);
    let mut strides = Vec::new();
    let mut inner = if merges { Stride::Near(1.0) } else { Stride::Whole(1) };
    for (size, dim) in shape.iter().zip(&sharding.dims).rev() {
        // As in MLIR, a dynamic size is treated as an integer here.
        let size = size.unwrap_or(i64::MIN);
        let shards: i64 = dim.axes.iter().map(|axis| axis.size(mesh)).product();
        let shard = (size as u64).div_ceil(shards.max(1) as u64);
        let mut stride = match inner {
            Stride::Whole(inner) => Stride::Whole(inner.wrapping_mul(shard as i64)),
            Stride::Near(inner) => Stride::Near(inner * shard as f64),
        };
        for &axis in dim.axes.iter().rev() {
            strides.push((axis, stride));
            stride = stride.times(axis.size(mesh));
        }
        inner = inner.times(size);
    }
    strides.sort_by(|(_, first), (_, second)| first.total_cmp(*second));
    Some(if merges { merge(strides, mesh) } else { strides })
}

/// Merges a sub-axis with the next, more major sub-axis of the same axis, if together they separate
/// the elements as the merged axis does.
fn merge(strides: Vec<(AxisRef, Stride)>, mesh: &Mesh) -> Vec<(AxisRef, Stride)> {
    let mut merged: Vec<(AxisRef, Stride)> = Vec::with_capacity(strides.len());
    for (major, stride) in strides {
        if let Some((minor, inner)) = merged.last_mut() {
            if major.can_merge(*minor) && stride.is_same(inner.times(minor.size(mesh))) {
                *minor = major.merge(*minor, mesh);
                continue;
            }
        }
        merged.push((major, stride));
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::ValueId;
    use crate::shardy::Version;
    use std::sync::Arc;

    fn are_equivalent(shardy: Version, first: (&str, &str), second: (&str, &str)) -> bool {
        let text = format!(
            "sdy.mesh @mesh = <[\"x\"=4, \"y\"=2]>\n\
             func.func @main(%arg0: tensor<{}xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{}]>}}, \
             %arg1: tensor<{}xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{}]>}}) {{\n  return\n}}\n",
            first.0, first.1, second.0, second.1
        );
        let program = crate::mlir::parse_shared(Arc::new(text), shardy).unwrap();
        let func = program.func_ids().next().unwrap();
        let args: Vec<ValueId> = program.block_args(program.func_body(func)).collect();
        let sharded = |arg| (&program.shardings()[program.sharding(arg)], program.type_of(arg));
        is_equivalent_across_reshapes(&program, sharded(args[0]), sharded(args[1]))
    }

    #[test]
    fn sub_axes_that_cut_as_their_axis_are_merged() {
        let split = ("2x2x8", r#"{"x":(1)2}, {"x":(2)2}, {}"#);
        let whole = ("4x8", r#"{"x"}, {}"#);
        assert!(are_equivalent(Version::V0_12, split, whole));
        assert!(!are_equivalent(Version::V0_10, split, whole));
        let apart = ("2x2x8", r#"{"x":(1)2}, {}, {"x":(2)2}"#);
        assert!(!are_equivalent(Version::V0_12, apart, whole));
        for version in Version::ALL {
            assert!(are_equivalent(version, ("8x2", r#"{"y"}, {}"#), ("16", r#"{"y"}"#)));
            assert!(!are_equivalent(version, ("8x2", r#"{}, {"y"}"#), ("16", r#"{"y"}"#)));
        }
    }
}
