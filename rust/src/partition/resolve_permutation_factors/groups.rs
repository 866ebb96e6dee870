//! The groups of dims that a reshape splits or combines, and whether the shardings before and after
//! it place the same elements on each device.

use crate::axis::AxisRef;
use crate::mesh::Mesh;
use crate::sharding::TensorSharding;
use std::ops::Range;

/// Dims of the operand and dims of the result with the same number of elements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// The dims of the operand.
    pub from: Range<usize>,
    /// The dims of the result.
    pub to: Range<usize>,
    /// The numbers of operand and result dims in it with a size other than 1.
    pub num_long: [usize; 2],
}

impl Group {
    /// The groups of a reshape, in order.
    pub fn all(from: &[i64], to: &[i64]) -> Vec<Self> {
        let mut groups = Vec::new();
        let (mut old, mut new) = (0, 0);
        while old < from.len() || new < to.len() {
            let start = (old, new);
            let take = |at: &mut usize, shape: &[i64]| {
                *at += 1;
                shape.get(*at - 1).map(|&size| i128::from(size))
            };
            // Before a dim of size 0, the product of sizes may exceed 64 bits.
            let mut sizes = (1_i128, 1_i128);
            if old < from.len() {
                sizes.0 = take(&mut old, from).unwrap_or(1);
            }
            if new < to.len() {
                sizes.1 = take(&mut new, to).unwrap_or(1);
            }
            while sizes.0 != sizes.1 {
                if sizes.0 < sizes.1 && old < from.len() {
                    sizes.0 = sizes.0.saturating_mul(take(&mut old, from).unwrap_or(1));
                } else if sizes.1 < sizes.0 && new < to.len() {
                    sizes.1 = sizes.1.saturating_mul(take(&mut new, to).unwrap_or(1));
                } else {
                    break;
                }
            }
            let (from_dims, to_dims) = (start.0..old, start.1..new);
            let long = |shape: &[i64], dims: &Range<usize>| {
                shape[dims.clone()].iter().filter(|size| **size != 1).count()
            };
            let num_long = [long(from, &from_dims), long(to, &to_dims)];
            groups.push(Self { from: from_dims, to: to_dims, num_long });
        }
        groups
    }
    /// Whether it is one dim that does not change.
    pub fn is_kept(&self) -> bool {
        self.num_long[0] <= 1 && self.num_long[1] <= 1
    }
    /// Whether it splits a dim.
    pub fn is_split(&self) -> bool {
        self.num_long[0] <= 1 && self.num_long[1] > 1
    }
    /// Whether all its dims have a size other than 1.
    pub fn is_long(&self) -> bool {
        self.num_long == [self.from.len(), self.to.len()]
    }
    /// The axes of all its dims.
    pub fn axes(&self, [from, to]: [&TensorSharding; 2]) -> Vec<AxisRef> {
        let dims = from.dims[self.from.clone()].iter().chain(&to.dims[self.to.clone()]);
        dims.flat_map(|dim| dim.axes.iter().copied()).collect()
    }
}

/// How an axis divides the elements of a tensor.
struct Cut {
    axis: AxisRef,
    /// The distance of two elements that it separates, if shards had equal sizes.
    stride: f64,
    /// The number of parts up to this axis, without those of the axis itself.
    parts: i64,
    /// The size of the dim.
    size: i64,
}

/// Whether each axis divides the elements of both tensors into the same parts, if shards had equal
/// sizes.
pub fn cut_alike(
    [first, second]: [&TensorSharding; 2],
    [first_shape, second_shape]: [&[i64]; 2],
    mesh: &Mesh,
) -> bool {
    if first == second && first_shape == second_shape {
        return true;
    }
    if first.mesh != second.mesh || first.replicated != second.replicated {
        return false;
    }
    let (first, second) = (cuts(first, first_shape, mesh), cuts(second, second_shape, mesh));
    first.len() == second.len()
        && first.iter().zip(&second).all(|(a, b)| a.axis == b.axis && a.parts == b.parts)
}

fn cuts(sharding: &TensorSharding, shape: &[i64], mesh: &Mesh) -> Vec<Cut> {
    let mut cuts = Vec::new();
    let mut inner = 1.0;
    for (dim, axes) in sharding.dims.iter().map(|dim| &dim.axes).enumerate().rev() {
        let size = shape[dim];
        let outer: i64 = shape[..dim].iter().fold(1, |all, size| all.saturating_mul(*size));
        let mut shards = crate::axis::total_size(axes, mesh);
        let mut stride = inner * (size as f64 / shards as f64);
        for &axis in axes.iter().rev() {
            shards /= axis.size(mesh);
            cuts.push(Cut { axis, stride, parts: outer.saturating_mul(shards), size });
            stride *= axis.size(mesh) as f64;
        }
        inner *= size as f64;
    }
    cuts.sort_by(|a: &Cut, b: &Cut| a.stride.total_cmp(&b.stride));
    merged(cuts, mesh)
}

/// Merges parts of an axis that divide the elements consecutively.
fn merged(cuts: Vec<Cut>, mesh: &Mesh) -> Vec<Cut> {
    let mut merged: Vec<Cut> = Vec::with_capacity(cuts.len());
    for cut in cuts {
        if let Some(last) = merged.last_mut() {
            let is_next = last.parts == cut.parts
                || (last.parts == cut.parts.saturating_mul(cut.size)
                    && cut.axis.size(mesh) == cut.size);
            if is_next && cut.axis.can_merge(last.axis) {
                last.axis = cut.axis.merge(last.axis, mesh);
                last.parts = last.parts.min(cut.parts);
                continue;
            }
        }
        merged.push(cut);
    }
    merged
}
