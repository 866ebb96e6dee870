//! The layout of a sharded tensor: which device holds which slice of it.
//!
//! A mesh gives every device a position `0..n`, row-major in the axes. An axis ref picks a *digit* of
//! that position: `(position / stride) % size`. The digits of the axes that shard a dim, major to
//! minor, are the number of the shard that the device holds; a dim of size s over k shards is cut
//! into pieces of `ceil(s / k)`, so that the last shards may be shorter, or empty. What a shard lacks
//! of the local shape is padding. Devices that differ only in digits that no dim uses hold the same.
//!
//! Example: over `<["x"=2, "y"=4]>`, `[{"y"}, {"x"}]` gives position 6 (x=1, y=2) shard 2 of dim 0 and
//! shard 1 of dim 1; a tensor of shape 10x8 has the local shape 3x4 there, and is the slice 6:9, 4:8.
//!
//! [`Layout::is_equivalent`] compares the slices of all devices without visiting each device if devices are in
//! their default order, so that its time does not depend on the number of devices.
//!
//! Source: Shardy's sharding representation, "Tensor shardings".

use crate::axis::{total_size, AxisRef};
use crate::error::{Code, Diagnostic};
use crate::mesh::Mesh;
use crate::sharding::{ReductionOp, TensorSharding};
use std::ops::Range;

/// A digit of a device's position, and its weight in the shard number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Digit {
    stride: i64,
    size: i64,
    weight: i64,
}

impl Digit {
    /// The contribution of the digit to the shard number of the device at `position`.
    fn value(self, position: i64) -> i64 {
        (position / self.stride) % self.size * self.weight
    }
}

/// A shard number made of digits of a device's position, in canonical form: sorted by stride, with
/// consecutive digits merged.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Number {
    digits: Vec<Digit>,
}

impl Number {
    /// The number whose digits are `axes`, major to minor.
    fn new(axes: &[AxisRef], mesh: &Mesh) -> Self {
        let mut digits = Vec::new();
        let mut weight = 1;
        for &axis in axes.iter().rev() {
            let size = axis.size(mesh);
            digits.push(Digit { stride: stride(axis, mesh), size, weight });
            weight *= size;
        }
        digits.retain(|digit| digit.size > 1);
        digits.sort_by_key(|digit| digit.stride);
        let mut merged: Vec<Digit> = Vec::new();
        for digit in digits {
            match merged.last_mut() {
                Some(last)
                    if last.stride * last.size == digit.stride
                        && last.weight * last.size == digit.weight =>
                {
                    last.size *= digit.size;
                }
                _ => merged.push(digit),
            }
        }
        Self { digits: merged }
    }
    fn at(&self, position: i64) -> i64 {
        self.digits.iter().map(|digit| digit.value(position)).sum()
    }
}

/// The distance, in positions of the mesh, between devices that are neighbours along `axis`.
pub fn stride(axis: AxisRef, mesh: &Mesh) -> i64 {
    let minor: i64 =
        mesh.axes[crate::index::Id::index(axis.axis) + 1..].iter().map(|axis| axis.size).product();
    minor * (mesh.axis_size(axis.axis) / axis.next_pre_size(mesh))
}

/// The most devices that [`Layout::is_equivalent`] visits one by one if both meshes have the default order.
const MAX_ENUMERATED: i64 = 1 << 24;

/// The layout of a verified sharding on its mesh.
#[derive(Clone, Debug)]
pub struct Layout<'a> {
    mesh: &'a Mesh,
    num_shards: Vec<i64>,
    shards: Vec<Number>,
    /// The digits of the unreduced axes.
    unreduced: Vec<Digit>,
    unreduced_size: i64,
    reduction_op: ReductionOp,
}

/// `ceil(size / parts)`.
pub fn ceil_div(size: i64, parts: i64) -> i64 {
    size / parts + i64::from(size % parts != 0)
}

impl<'a> Layout<'a> {
    /// The layout of `sharding`, which is over `mesh` and was verified.
    pub fn new(sharding: &TensorSharding, mesh: &'a Mesh) -> Self {
        // Reductions do not depend on order: in mesh order, equal sets of digits are equal numbers.
        let mut unreduced = sharding.unreduced.clone();
        unreduced.sort_by_key(|axis| axis.mesh_order(mesh));
        Self {
            mesh,
            num_shards: sharding.dims.iter().map(|dim| total_size(&dim.axes, mesh)).collect(),
            shards: sharding.dims.iter().map(|dim| Number::new(&dim.axes, mesh)).collect(),
            unreduced: Number::new(&unreduced, mesh).digits,
            unreduced_size: total_size(&unreduced, mesh),
            reduction_op: sharding.reduction_op,
        }
    }
    /// Number of dims; 0 for a maximal mesh, whose device holds tensors of any rank.
    pub fn rank(&self) -> usize {
        self.shards.len()
    }
    /// How many shards `dim` has.
    pub fn num_shards(&self, dim: usize) -> i64 {
        self.num_shards.get(dim).copied().unwrap_or(1)
    }
    /// The number of devices that hold the same shard (unreduced axes aside).
    pub fn replication_factor(&self) -> i64 {
        let parts = self.num_shards.iter().product::<i64>().saturating_mul(self.unreduced_size);
        (self.mesh.device_count() / parts.max(1)).max(1)
    }
    /// The error if a tensor of shape `shape` cannot have this sharding.
    pub fn check_shape(&self, shape: &[i64]) -> Option<Diagnostic> {
        if let Some(size) = shape.iter().find(|&&size| size < 0) {
            let message = format!("a tensor has no dim of size {size}");
            return Some(Diagnostic::new(Code::InvalidSharding, message));
        }
        if self.mesh.is_maximal() || shape.len() == self.rank() {
            return None;
        }
        let (dims, rank) = (self.rank(), shape.len());
        let message = format!("the sharding has {dims} dims, and the tensor has {rank}");
        Some(Diagnostic::new(Code::InvalidSharding, message))
    }
    /// The shape that each device holds of a tensor of shape `shape`, padding included.
    pub fn local_shape(&self, shape: &[i64]) -> Vec<i64> {
        let dims = shape.iter().enumerate();
        dims.map(|(dim, &size)| ceil_div(size, self.num_shards(dim))).collect()
    }
    /// The slice of a tensor of shape `shape` that the device at `position` holds.
    pub fn slice(&self, shape: &[i64], position: i64) -> Vec<Range<i64>> {
        let dims = shape.iter().enumerate();
        dims.map(|(dim, &size)| {
            let local = ceil_div(size, self.num_shards(dim));
            let shard = self.shards.get(dim).map_or(0, |number| number.at(position));
            let start = size.min(shard.saturating_mul(local));
            start..size.min(start.saturating_add(local))
        })
        .collect()
    }
    /// The padding at the end of each dim of the shard of the device at `position`, in elements.
    pub fn padding(&self, shape: &[i64], position: i64) -> Vec<i64> {
        let slices = self.slice(shape, position);
        let local = self.local_shape(shape);
        slices.iter().zip(local).map(|(slice, local)| local - (slice.end - slice.start)).collect()
    }
    /// Bytes that a device holds of a tensor of shape `shape` with elements of `element_bits`,
    /// padding included, saturating.
    pub fn bytes_per_device(&self, shape: &[i64], element_bits: u32) -> u128 {
        bytes_of(&self.local_shape(shape), element_bits)
    }
    /// Whether every device holds the same slice in both layouts, of tensors of `shape` or of every
    /// shape, reduced with the same devices. Takes constant time in the number of devices if both
    /// meshes have the default device order, else linear. With `shape`, linear too if some shards
    /// are empty, up to 2^24 devices; above, layouts that differ only in empty shards count as
    /// different.
    pub fn is_equivalent(&self, other: &Self, shape: Option<&[i64]>) -> bool {
        let num_devices = self.mesh.device_count();
        if num_devices != other.mesh.device_count() {
            return false;
        }
        let is_on_one = self.mesh.is_maximal() || other.mesh.is_maximal();
        let reduces = self.unreduced_size.max(other.unreduced_size) > 1;
        let other_reduction = reduces && self.reduction_op != other.reduction_op;
        if other_reduction || (!is_on_one && self.rank() != other.rank()) {
            return false;
        }
        let same_order = self.mesh.device_ids == other.mesh.device_ids;
        if same_order && self.same_numbers(other) {
            return true;
        }
        let rank = self.rank().max(other.rank());
        let has_empty_shards = shape.is_some_and(|shape| {
            shape.iter().enumerate().any(|(dim, &size)| self.num_full_shards(dim, size).is_some())
        });
        let same_sizes = (0..rank).all(|dim| self.num_shards(dim) == other.num_shards(dim));
        let enumerate = !same_order || (has_empty_shards && num_devices <= MAX_ENUMERATED);
        let is_empty_tensor = shape.is_some_and(|shape| shape.contains(&0));
        enumerate && (same_sizes || is_empty_tensor) && self.same_devices(other, shape)
    }

    fn same_numbers(&self, other: &Self) -> bool {
        let rank = self.rank().max(other.rank());
        let none = Number::default();
        let number = |layout: &'_ Self, dim: usize| layout.shards.get(dim).unwrap_or(&none).clone();
        self.unreduced == other.unreduced
            && (0..rank).all(|dim| number(self, dim) == number(other, dim))
    }
    /// The number of shards of `dim` that have elements; `None` if all have.
    fn num_full_shards(&self, dim: usize, size: i64) -> Option<i64> {
        let local = ceil_div(size, self.num_shards(dim));
        let full = if local == 0 { 0 } else { ceil_div(size, local) };
        (full < self.num_shards(dim)).then_some(full)
    }
    /// Compares device by device.
    fn same_devices(&self, other: &Self, shape: Option<&[i64]>) -> bool {
        let theirs = other.positions_by_device();
        let rank = self.rank().max(other.rank());
        let limits: Vec<i64> = (0..rank)
            .map(|dim| {
                let size = shape.and_then(|shape| shape.get(dim));
                size.and_then(|&size| self.num_full_shards(dim, size)).unwrap_or(i64::MAX)
            })
            .collect();
        // If a tensor has no elements, all devices hold the same.
        let limits = if limits.contains(&0) { vec![0; rank] } else { limits };
        let shard = |layout: &Self, dim: usize, position: i64| {
            let number = layout.shards.get(dim).map_or(0, |number| number.at(position));
            number.min(limits[dim])
        };
        let mut groups = Groups::default();
        (0..self.mesh.device_count()).all(|position| {
            let device = self.mesh.device_at_position(position);
            let Some(their_position) = theirs.of(device) else { return false };
            groups.agree(self.group(position), other.group(their_position))
                && (0..rank)
                    .all(|dim| shard(self, dim, position) == shard(other, dim, their_position))
        })
    }
    /// The position of the first device among those with which the device at `position` is reduced.
    fn group(&self, position: i64) -> i64 {
        let within = |digit: &Digit| (position / digit.stride) % digit.size * digit.stride;
        position - self.unreduced.iter().map(within).sum::<i64>()
    }
    fn positions_by_device(&self) -> Positions {
        let mesh = self.mesh;
        if mesh.device_ids.is_empty() {
            return Positions::Default(mesh.device_count());
        }
        if mesh.is_maximal() {
            return Positions::Only(mesh.device_ids[0]);
        }
        let mut positions = vec![-1; mesh.device_ids.len()];
        for (&device, position) in mesh.device_ids.iter().zip(0..) {
            if let Some(slot) = usize::try_from(device).ok().and_then(|id| positions.get_mut(id)) {
                *slot = position;
            }
        }
        Positions::Listed(positions)
    }
}

/// The positions of devices in a mesh.
enum Positions {
    /// Device `i` is at position `i`; the number of devices.
    Default(i64),
    /// This device alone.
    Only(i64),
    /// The position of each device id.
    Listed(Vec<i64>),
}

impl Positions {
    fn of(&self, device: i64) -> Option<i64> {
        match self {
            Self::Default(count) => (0..*count).contains(&device).then_some(device),
            Self::Only(only) => (device == *only).then_some(0),
            Self::Listed(positions) => {
                positions.get(usize::try_from(device).ok()?).copied().filter(|&at| at >= 0)
            }
        }
    }
}

/// Checks that two assignments of devices to groups are the same partition: a one-to-one map
/// between the names of the groups.
#[derive(Default)]
struct Groups {
    forth: rustc_hash::FxHashMap<i64, i64>,
    back: rustc_hash::FxHashMap<i64, i64>,
}

impl Groups {
    fn agree(&mut self, mine: i64, theirs: i64) -> bool {
        *self.forth.entry(mine).or_insert(theirs) == theirs
            && *self.back.entry(theirs).or_insert(mine) == mine
    }
}

/// The number of elements of a tensor of shape `shape`, saturating.
pub fn elements_of(shape: &[i64]) -> u128 {
    let sizes = shape.iter().map(|&size| u128::try_from(size).unwrap_or(0));
    sizes.fold(1, u128::saturating_mul)
}

/// The bytes of a tensor of shape `shape` with elements of `element_bits`, saturating.
pub fn bytes_of(shape: &[i64], element_bits: u32) -> u128 {
    let elements = elements_of(shape);
    let whole = (elements / 8).saturating_mul(u128::from(element_bits));
    whole.saturating_add((elements % 8 * u128::from(element_bits)).div_ceil(8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::{parse_sharding, MeshScope};
    use crate::ir::Program;

    fn sharding(text: &str) -> (TensorSharding, Mesh) {
        let mut program = Program::default();
        let sharding = parse_sharding(text, 0, &mut program).unwrap();
        let mesh = MeshScope::mesh(&program, sharding.mesh).clone();
        (sharding, mesh)
    }

    fn equivalent(a: &str, b: &str, shape: Option<&[i64]>) -> bool {
        let ((a, mesh_a), (b, mesh_b)) = (sharding(a), sharding(b));
        let (a, b) = (Layout::new(&a, &mesh_a), Layout::new(&b, &mesh_b));
        let same = a.is_equivalent(&b, shape);
        assert_eq!(same, b.is_equivalent(&a, shape));
        assert!(a.is_equivalent(&a, shape) && b.is_equivalent(&b, shape));
        same
    }

    #[test]
    fn devices_hold_what_the_module_docs_say() {
        let (sharding, mesh) = sharding(r#"<mesh<["x"=2, "y"=4]>, [{"y"}, {"x"}]>"#);
        let layout = Layout::new(&sharding, &mesh);
        assert_eq!(layout.local_shape(&[10, 8]), [3, 4]);
        assert_eq!(layout.slice(&[10, 8], 6), [6..9, 4..8]);
        assert_eq!(layout.slice(&[10, 8], 7), [9..10, 4..8]);
        assert_eq!(layout.padding(&[10, 8], 7), [2, 0]);
        assert_eq!(layout.padding(&[2, 8], 3), [1, 0]);
        assert_eq!(layout.slice(&[2, 8], 3), [2..2, 0..4]);
        assert_eq!(layout.replication_factor(), 1);
        assert_eq!(layout.bytes_per_device(&[10, 8], 16), 24);
        assert!(layout.check_shape(&[1]).is_some() && layout.check_shape(&[1, -1]).is_some());
    }

    #[test]
    fn meshes_axis_splits_and_orders_do_not_matter() {
        let split = r#"<mesh<["devices"=8]>, [{"devices":(1)4}, {"devices":(4)2}]>"#;
        let named = r#"<mesh<["x"=4, "y"=2]>, [{"x"}, {"y"}]>"#;
        assert!(equivalent(split, named, None));
        let swapped =
            r#"<mesh<["y"=2, "x"=4], device_ids=[0, 2, 4, 6, 1, 3, 5, 7]>, [{"x"}, {"y"}]>"#;
        assert!(equivalent(named, swapped, None));
        let default = r#"<mesh<["y"=2, "x"=4]>, [{"x"}, {"y"}]>"#;
        assert!(!equivalent(named, default, None));
        assert!(!equivalent(named, r#"<mesh<["x"=4, "y"=2]>, [{"y"}, {"x"}]>"#, None));
        assert!(!equivalent(named, r#"<mesh<["x"=4]>, [{"x"}, {}]>"#, None));
        let major = r#"<mesh<["x"=4, "y"=3]>, [{"x", "y"}]>"#;
        assert!(equivalent(major, r#"<mesh<["a"=3, "b"=4]>, [{"a", "b"}]>"#, None));
        assert!(equivalent("<mesh<[], device_ids=[0]>, []>", r#"<mesh<["a"=1]>, [{"a"}]>"#, None));
        assert!(!equivalent("<mesh<[], device_ids=[1]>, []>", r#"<mesh<["a"=1]>, [{"a"}]>"#, None));
    }

    #[test]
    fn huge_meshes_are_compared_at_once() {
        let big = r#"<mesh<["a"=1073741824, "b"=1073741824]>, [{"b"}, {"a"}]>"#;
        let split = r#"<mesh<["c"=1152921504606846976]>, [{"c":(1073741824)1073741824}, {"c":(1)1073741824}]>"#;
        assert!(equivalent(big, split, None));
        assert!(equivalent(big, split, Some(&[7, 7])));
    }

    #[test]
    fn empty_shards_are_all_alike() {
        // Of four shards of a dim of 2 elements the last two are empty.
        let one = r#"<mesh<["a"=2, "b"=2]>, [{"a", "b"}]>"#;
        let swapped = r#"<mesh<["a"=4], device_ids=[0, 1, 3, 2]>, [{"a"}]>"#;
        assert!(!equivalent(one, swapped, None));
        assert!(!equivalent(one, swapped, Some(&[4])));
        assert!(equivalent(one, swapped, Some(&[2])));
        let crossed = r#"<mesh<["a"=2, "b"=2]>, [{"b", "a"}]>"#;
        assert!(!equivalent(one, crossed, Some(&[2])));
        assert!(equivalent(one, crossed, Some(&[1])));
    }

    #[test]
    fn unreduced_axes_count() {
        let sum = r#"<mesh<["a"=2, "b"=2]>, [{"a"}], unreduced={"b"}>"#;
        assert!(!equivalent(sum, r#"<mesh<["a"=2, "b"=2]>, [{"a"}]>"#, None));
        let other = r#"<mesh<["q"=4]>, [{"q":(1)2}], unreduced={"q":(2)2}>"#;
        assert!(equivalent(sum, other, None));
        let listed =
            r#"<mesh<["q"=4], device_ids=[1, 0, 3, 2]>, [{"q":(1)2}], unreduced={"q":(2)2}>"#;
        assert!(equivalent(sum, listed, None));
        let (sharding, mesh) = sharding(sum);
        assert_eq!(Layout::new(&sharding, &mesh).replication_factor(), 1);
    }
}
