//! Axis refs: a mesh axis, or a sub-axis of one.
//!
//! A sub-axis `"x":(m)k` of an axis of size n is what remains when the axis is reshaped to
//! `[m, k, n/(m*k)]` and the middle is taken: `m` is its pre-size, `k` its size, `m*k` its next
//! pre-size. Two refs of one axis *overlap* when their `[pre, next_pre)` intervals meet, and can
//! *coexist* when the axis can be split so that both are made of whole parts.
//!
//! Source: Shardy's sharding representation, "Axis splitting and sub-axes".

use crate::index::{AxisId, Id};
use crate::mesh::Mesh;
use std::ops::DerefMut;

/// The part of an axis that a sub-axis takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SubAxis {
    /// Product of the sizes of the parts that are major to this one.
    pub pre_size: i64,
    /// Size of this part, at least 2.
    pub size: i64,
}

impl SubAxis {
    /// Pre-size of the part right after this one.
    #[inline]
    pub fn next_pre_size(self) -> i64 {
        self.pre_size * self.size
    }
}

/// A full axis or a sub-axis of a mesh.
///
/// Refs are sorted in mesh order, see [`AxisRef::mesh_order`]: by axis, then by pre-size. A full
/// axis is sorted as the sub-axis of pre-size 1 and full size.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AxisRef {
    /// The axis.
    pub axis: AxisId,
    /// Which part, or `None` for all of it.
    pub sub: Option<SubAxis>,
}

/// `(min, max)` of two numbers.
fn min_max(a: i64, b: i64) -> (i64, i64) {
    (a.min(b), a.max(b))
}

/// Whether two sub-axes with these sorted bounds split the axis consistently.
fn can_sub_axes_coexist(min_pre: i64, max_pre: i64, min_next: i64, max_next: i64) -> bool {
    if min_next > max_pre {
        // They overlap: the overlap and both leftovers must be whole parts.
        min_next % max_pre == 0 && max_pre % min_pre == 0 && max_next % min_next == 0
    } else {
        // They do not: the gap must be a whole part.
        max_pre % min_next == 0
    }
}

impl AxisRef {
    /// All of `axis`.
    pub const fn full(axis: AxisId) -> Self {
        Self { axis, sub: None }
    }
    /// The sub-axis `(pre_size)size` of `axis`.
    pub const fn sub(axis: AxisId, pre_size: i64, size: i64) -> Self {
        Self { axis, sub: Some(SubAxis { pre_size, size }) }
    }
    /// Number of devices along this ref.
    #[inline]
    pub fn size(self, mesh: &Mesh) -> i64 {
        self.sub.map_or_else(|| mesh.axis_size(self.axis), |sub| sub.size)
    }
    /// Pre-size; 1 for a full axis.
    #[inline]
    pub fn pre_size(self) -> i64 {
        self.sub.map_or(1, |sub| sub.pre_size)
    }
    /// Next pre-size; the axis size for a full axis.
    #[inline]
    pub fn next_pre_size(self, mesh: &Mesh) -> i64 {
        self.sub.map_or_else(|| mesh.axis_size(self.axis), SubAxis::next_pre_size)
    }
    /// Whether it is an axis of `mesh`, or a sub-axis whose next pre-size divides the size of its
    /// axis.
    pub fn is_part_of(self, mesh: &Mesh) -> bool {
        let end = self.sub.map(|sub| sub.pre_size.checked_mul(sub.size));
        end.is_none_or(|end| end.is_some_and(|end| end > 0 && mesh.axis_size(self.axis) % end == 0))
    }
    /// The key of mesh order: the axis, then the pre-size, then the size. A full axis is sorted as
    /// the sub-axis of pre-size 1 and full size.
    pub fn mesh_order(self, mesh: &Mesh) -> (AxisId, i64, i64) {
        (self.axis, self.pre_size(), self.size(mesh))
    }
    /// Whether every part of `other` is in `self`.
    pub fn contains(self, other: Self) -> bool {
        self.axis == other.axis
            && match (self.sub, other.sub) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(a), Some(b)) => {
                    a.pre_size <= b.pre_size && a.next_pre_size() >= b.next_pre_size()
                }
            }
    }
    /// Whether `self` contains `other` and is larger.
    pub fn strictly_contains(self, other: Self) -> bool {
        self != other && self.contains(other)
    }
    /// Whether `self` is the major-most part of `other`, or equal to it.
    pub fn is_prefix_of(self, other: Self) -> bool {
        other.contains(self) && self.pre_size() == other.pre_size()
    }
    /// Whether `self` is the major-most part of `other` and smaller.
    pub fn is_strict_prefix_of(self, other: Self) -> bool {
        self != other && self.is_prefix_of(other)
    }
    /// Whether `self` is the minor-most part of `other`, or equal to it.
    pub fn is_suffix_of(self, other: Self, mesh: &Mesh) -> bool {
        other.contains(self) && self.next_pre_size(mesh) == other.next_pre_size(mesh)
    }
    /// Whether `self` is the minor-most part of `other` and smaller.
    pub fn is_strict_suffix_of(self, other: Self, mesh: &Mesh) -> bool {
        self != other && self.is_suffix_of(other, mesh)
    }
    /// Whether the two share a part of an axis.
    #[inline]
    pub fn overlaps(self, other: Self) -> bool {
        self.axis == other.axis
            && match (self.sub, other.sub) {
                (Some(a), Some(b)) => {
                    a.pre_size < b.next_pre_size() && b.pre_size < a.next_pre_size()
                }
                _ => true,
            }
    }
    /// Whether the axis can be split so that each of the two refs is a product of whole parts.
    pub fn can_coexist(self, other: Self) -> bool {
        match (self.sub, other.sub) {
            (Some(a), Some(b)) if self.axis == other.axis => {
                let (min_pre, max_pre) = min_max(a.pre_size, b.pre_size);
                let (min_next, max_next) = min_max(a.next_pre_size(), b.next_pre_size());
                can_sub_axes_coexist(min_pre, max_pre, min_next, max_next)
            }
            _ => true,
        }
    }
    /// The part the two share; `None` if there is none or they cannot coexist.
    pub fn overlap(self, other: Self) -> Option<Self> {
        if self.axis != other.axis {
            return None;
        }
        let (Some(a), Some(b)) = (self.sub, other.sub) else {
            return Some(if self.sub.is_none() { other } else { self });
        };
        let (min_pre, max_pre) = min_max(a.pre_size, b.pre_size);
        let (min_next, max_next) = min_max(a.next_pre_size(), b.next_pre_size());
        if min_next <= max_pre || !can_sub_axes_coexist(min_pre, max_pre, min_next, max_next) {
            return None;
        }
        Some(Self::sub(self.axis, max_pre, min_next / max_pre))
    }
    /// The largest prefix of `self` that does not overlap `other`: `self` itself if they are
    /// disjoint, `None` if there is none or they cannot coexist.
    pub fn prefix_without_overlap(self, other: Self) -> Option<Self> {
        if !self.can_coexist(other) {
            return None;
        }
        if !self.overlaps(other) {
            return Some(self);
        }
        let (mine, theirs) = (self.pre_size(), other.pre_size());
        (mine < theirs).then(|| Self::sub(self.axis, mine, theirs / mine))
    }
    /// The largest suffix of `self` that does not overlap `other`; `None` if there is none.
    pub fn suffix_without_overlap(self, other: Self, mesh: &Mesh) -> Option<Self> {
        if !self.can_coexist(other) {
            return None;
        }
        if !self.overlaps(other) {
            return Some(self);
        }
        let (mine, theirs) = (self.next_pre_size(mesh), other.next_pre_size(mesh));
        (mine > theirs).then(|| Self::sub(self.axis, theirs, mine / theirs))
    }
    /// The largest ref that is a prefix of both.
    pub fn greatest_common_prefix(self, other: Self) -> Option<Self> {
        if !self.can_coexist(other) {
            None
        } else if self.is_prefix_of(other) {
            Some(self)
        } else if other.is_prefix_of(self) {
            Some(other)
        } else {
            None
        }
    }
    /// The smallest ref that contains both, which are parts of one axis; the full axis if no
    /// sub-axis does.
    fn hull(self, other: Self, mesh: &Mesh) -> Self {
        let pre_size = self.pre_size().min(other.pre_size());
        let end = self.next_pre_size(mesh).max(other.next_pre_size(mesh));
        let whole = mesh.axis_size(self.axis);
        if end % pre_size != 0 || (pre_size, end) == (1, whole) {
            return Self::full(self.axis);
        }
        Self::sub(self.axis, pre_size, end / pre_size)
    }
    /// Whether `other` is the part right after `self`.
    pub fn can_merge(self, other: Self) -> bool {
        match (self.sub, other.sub) {
            (Some(a), Some(b)) => self.axis == other.axis && a.next_pre_size() == b.pre_size,
            _ => false,
        }
    }
    /// `self` followed by `other`, as one ref; `other` must be mergeable.
    #[must_use]
    pub fn merge(self, other: Self, mesh: &Mesh) -> Self {
        debug_assert!(self.can_merge(other));
        let (pre_size, size) = (self.pre_size(), self.size(mesh) * other.size(mesh));
        if mesh.axis_size(self.axis) == size {
            return Self::full(self.axis);
        }
        Self::sub(self.axis, pre_size, size)
    }
}

/// Appends `axis`, or merges it into the last ref where the two are consecutive parts of an axis.
#[inline]
pub fn push_or_merge<L>(axes: &mut L, axis: AxisRef, mesh: &Mesh)
where
    L: DerefMut<Target = [AxisRef]> + Extend<AxisRef>,
{
    match axes.last_mut() {
        Some(last) if last.can_merge(axis) => *last = last.merge(axis, mesh),
        _ => axes.extend([axis]),
    }
}

/// Sorts in mesh order and merges consecutive parts.
pub fn sort_and_merge(axes: &mut Vec<AxisRef>, mesh: &Mesh) {
    axes.sort_by_key(|axis| axis.mesh_order(mesh));
    let sorted = std::mem::take(axes);
    for axis in sorted {
        push_or_merge(axes, axis, mesh);
    }
}

/// `axes` with overlapping refs merged into one, in the order of first appearance.
pub fn disjoint(axes: &[AxisRef], mesh: &Mesh) -> Vec<AxisRef> {
    let mut joined: Vec<AxisRef> = Vec::new();
    for &axis in axes {
        let mut axis = axis;
        // The merged ref may overlap others in turn.
        while let Some(at) = joined.iter().position(|other| other.overlaps(axis)) {
            if joined[at].contains(axis) {
                axis = joined[at];
                break;
            }
            axis = joined.remove(at).hull(axis, mesh);
        }
        if !joined.contains(&axis) {
            joined.push(axis);
        }
    }
    joined
}

/// The axes and sub-axes of `mesh`, major to minor, whose devices are at the positions `0`,
/// `stride`, `2 * stride`, ..., `(size - 1) * stride`; `None` if no axes have these positions.
pub fn axes_along(stride: i64, size: i64, mesh: &Mesh) -> Option<Vec<AxisRef>> {
    let (mut at, mut left, mut minor) = (stride, size, 1);
    let mut axes = Vec::new();
    for (index, axis) in mesh.axes.iter().enumerate().rev() {
        let end = minor * axis.size;
        if left > 1 && at < end {
            let inner = at / minor;
            let room = axis.size / inner.max(1);
            let part = room.min(left);
            let nests = inner * minor == at && axis.size == inner * room;
            if !nests || room % part != 0 || left % part != 0 {
                return None;
            }
            let id = AxisId::from_index(index);
            let is_whole = part == axis.size;
            let part_of_axis = AxisRef::sub(id, room / part, part);
            axes.push(if is_whole { AxisRef::full(id) } else { part_of_axis });
            (at, left) = (end, left / part);
        }
        minor = end;
    }
    axes.reverse();
    (left == 1).then_some(axes)
}

/// Number of devices along all of `axes`.
pub fn total_size(axes: &[AxisRef], mesh: &Mesh) -> i64 {
    axes.iter().map(|axis| axis.size(mesh)).product()
}

/// Whether any ref of one list overlaps any of the other.
pub fn any_overlap(axes: &[AxisRef], others: &[AxisRef]) -> bool {
    axes.iter().any(|axis| others.iter().any(|other| axis.overlaps(*other)))
}

/// The parts of `axes`, in order, that no ref of `others` overlaps. The refs of `others` do not overlap
/// each other.
pub fn difference(axes: &[AxisRef], others: &[AxisRef], mesh: &Mesh) -> Vec<AxisRef> {
    if axes == others {
        return Vec::new();
    }
    let mut rest = Vec::new();
    for &axis in axes {
        let mut left = Some(axis);
        while let Some(axis) = left {
            let overlapping = others.iter().copied().filter(|other| axis.overlaps(*other));
            let Some(first) = overlapping.min_by_key(|other| other.pre_size()) else {
                rest.push(axis);
                break;
            };
            rest.extend(axis.prefix_without_overlap(first));
            left = axis.suffix_without_overlap(first, mesh);
        }
    }
    rest
}

/// How one axis list stands to another it is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrefixStatus {
    /// They are the same list.
    Equal,
    /// The first is a prefix of the second and shorter, possibly ending inside an axis.
    StrictPrefix,
    /// Neither.
    NotAPrefix,
}

/// Whether `first` is a prefix of `second`; its last ref may be a prefix of its counterpart.
pub fn prefix_status(first: &[AxisRef], second: &[AxisRef]) -> PrefixStatus {
    let Some((&last, head)) = first.split_last() else {
        return if second.is_empty() { PrefixStatus::Equal } else { PrefixStatus::StrictPrefix };
    };
    if first.len() > second.len() || head != &second[..head.len()] {
        return PrefixStatus::NotAPrefix;
    }
    let counterpart = second[head.len()];
    if first.len() == second.len() && last == counterpart {
        PrefixStatus::Equal
    } else if last.is_prefix_of(counterpart) {
        PrefixStatus::StrictPrefix
    } else {
        PrefixStatus::NotAPrefix
    }
}
