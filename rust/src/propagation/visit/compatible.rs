//! Computes the axes that the tensors of an op agree on along one factor.

use crate::axis::{prefix_status, AxisRef, PrefixStatus};
use crate::index::FactorId;
use crate::ir::Direction;
use crate::mesh::Mesh;
use crate::projection::{
    gcd, sort_by_bucket, AxisList, FactorSharding, Projection, TensorFactorShardings,
};

/// The axes that tensors agree on along `factor`, see [`compatible_major_axes`]; `None` if all
/// tensors have them. A tensor can only get a prefix of them.
pub fn missing_compatible_axes(
    projection: &Projection,
    factor: FactorId,
    direction: Direction,
) -> Option<AxisList> {
    let axes = compatible_major_axes(projection, factor, direction);
    if axes.is_empty() {
        return None;
    }
    let lacks_some = projection.along(factor).any(|sharding| would_expand(sharding, &axes));
    lacks_some.then_some(axes)
}

/// The longest list of axes that conflicts with no tensor's sharding along `factor`, without regard
/// to other factors. They are the axes of the tensors from which `direction` propagates, truncated
/// where any tensor disagrees.
fn compatible_major_axes(
    projection: &Projection,
    factor: FactorId,
    direction: Direction,
) -> AxisList {
    let (operands, results) = projection.sides_with(factor);
    let (first, second) = match direction {
        Direction::None => return AxisList::new(),
        Direction::Forward | Direction::Both => (operands, results),
        Direction::Backward => (results, operands),
    };
    let mut merged = Merged { axes: AxisList::new(), can_expand: true };
    merged.merge_all(projection, first, factor);
    // Tensors of the other side may truncate the list, but not extend it.
    merged.can_expand &= direction == Direction::Both;
    merged.merge_all(projection, second, factor);
    merged.axes
}

/// The axes agreed on so far, and whether more may be added to them.
struct Merged {
    axes: AxisList,
    can_expand: bool,
}

impl Merged {
    fn merge_all(&mut self, projection: &Projection, tensors: &[u32], factor: FactorId) {
        for sharding in projection.along_in(tensors, factor) {
            if !self.merge(&sharding.axes) {
                self.can_expand = false;
            }
        }
    }

    /// Merges `new` into the list; false if the list may not be extended any more.
    ///
    /// If a sub-axis of one list is a prefix of its counterpart and is not the last of its list,
    /// the next axis conflicts: if it were the following part of the same axis, the two would have
    /// been merged.
    fn merge(&mut self, new: &[AxisRef]) -> bool {
        let num_old = self.axes.len();
        for (index, &theirs) in new.iter().enumerate() {
            if index >= num_old {
                break;
            }
            let mine = self.axes[index];
            if mine == theirs {
                continue;
            }
            if theirs.axis != mine.axis {
                self.axes.truncate(index);
                return false;
            }
            if theirs.is_prefix_of(mine) {
                if index + 1 < new.len() {
                    self.axes[index] = theirs;
                    self.axes.truncate(index + 1);
                    return false;
                }
            } else if mine.is_prefix_of(theirs) {
                if !self.can_expand || index + 1 < num_old {
                    self.axes.truncate(index + 1);
                    return false;
                }
                self.axes[index] = theirs;
            } else {
                self.axes.truncate(index);
                return false;
            }
        }
        if self.can_expand && new.len() > num_old {
            self.axes.extend_from_slice(&new[num_old..]);
        }
        self.can_expand
    }
}

/// The largest prefix of `axis` that overlaps none of `others`.
fn prefix_without_overlaps(axis: AxisRef, others: &[AxisRef]) -> Option<AxisRef> {
    others.iter().try_fold(axis, |axis, &other| axis.prefix_without_overlap(other))
}

/// The largest prefix of `axis` that overlaps no axis of the factors of `tensor` other than
/// `factor`, which is one of `num_factors`.
pub fn prefix_across_factors(
    axis: AxisRef,
    tensor: &TensorFactorShardings,
    factor: FactorId,
    num_factors: usize,
) -> Option<AxisRef> {
    let without = |prefix: AxisRef, sharding: &FactorSharding| {
        let prefix = prefix_without_overlaps(prefix, &sharding.overflow)?;
        prefix_without_overlaps(prefix, &sharding.axes)
    };
    let mut others = tensor.factors.iter().filter(|(other, sharding)| {
        let mut axes = sharding.axes.iter().chain(&sharding.overflow);
        *other != factor && axes.any(|own| own.axis == axis.axis)
    });
    let Some(first) = others.next() else { return Some(axis) };
    let Some(second) = others.next() else { return without(axis, first.1) };
    let mut others: Vec<_> = [first, second].into_iter().chain(others).collect();
    sort_by_bucket(&mut others, num_factors, |(other, _)| *other);
    others.into_iter().try_fold(axis, |prefix, (_, sharding)| without(prefix, sharding))
}

/// A factor of a tensor to which an axis is to be added.
#[derive(Clone, Copy)]
pub struct Room<'a> {
    /// How the factor is sharded in the tensor.
    pub sharding: &'a FactorSharding,
    /// The size of the factor.
    pub factor_size: i64,
    /// The number of shards by the axes before the new one.
    pub sharded_size: i64,
}

/// The largest prefix of `axis` that `tensor` can have along the factor: it has it already, or the
/// factor is open and can be sharded further.
pub fn prefix_within_factor(
    axis: AxisRef,
    tensor: &TensorFactorShardings,
    room: Room<'_>,
    mesh: &Mesh,
) -> Option<AxisRef> {
    let axis = prefix_without_overlaps(axis, &tensor.replicated)?;
    let axis = prefix_without_overlaps(axis, &tensor.unreduced)?;
    let Room { sharding, factor_size, sharded_size } = room;
    if sharding.axes.iter().any(|own| own.contains(axis)) {
        return Some(axis);
    }
    if !sharding.is_closed && sharding.overflow.is_empty() {
        if sharding.is_minor_most {
            return Some(axis);
        }
        if factor_size % sharded_size == 0 {
            let size = axis.size(mesh);
            let common = gcd(factor_size / sharded_size, size);
            if common == size {
                return Some(axis);
            }
            if common != 1 {
                return Some(AxisRef::sub(axis.axis, axis.pre_size(), common));
            }
        }
    }
    // The tensor's own last axis stays if the new axis starts with it. (The lists have a common
    // prefix, so only the last one can.)
    sharding.axes.last().copied().filter(|last| last.is_prefix_of(axis))
}

/// Whether `axes` extend those of the tensor with `sharding`.
#[inline]
pub fn would_expand(sharding: &FactorSharding, axes: &[AxisRef]) -> bool {
    prefix_status(&sharding.axes, axes) == PrefixStatus::StrictPrefix
}

/// Truncates `list`: `compatible` maps an axis, and the number of shards by the axes before it, to
/// the prefix that can stay. The list ends at the first axis that cannot stay whole. If
/// `conservative`, no sub-axis can stay.
pub fn truncate_by(
    list: &mut AxisList,
    mesh: &Mesh,
    conservative: bool,
    mut compatible: impl FnMut(AxisRef, i64) -> Option<AxisRef>,
) {
    let mut sharded_size = 1;
    for index in 0..list.len() {
        let axis = list[index];
        match compatible(axis, sharded_size) {
            Some(prefix) if !(conservative && prefix.sub.is_some()) => {
                if prefix != axis {
                    list[index] = prefix;
                    list.truncate(index + 1);
                    return;
                }
                sharded_size = i64::saturating_mul(sharded_size, prefix.size(mesh));
            }
            _ => {
                list.truncate(index);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::AxisId;

    fn merged(old: &[AxisRef], new: &[AxisRef], can_expand: bool) -> (Vec<AxisRef>, bool) {
        let mut merged = Merged { axes: old.into(), can_expand };
        let can_expand = merged.merge(new);
        (merged.axes.to_vec(), can_expand)
    }

    #[test]
    fn merging_follows_the_longer_list_until_a_conflict() {
        let full = |axis| AxisRef::full(AxisId::new(axis));
        let part = |pre, size| AxisRef::sub(AxisId::new(0), pre, size);
        let (a, b, c) = (full(0), full(1), full(2));
        assert_eq!(merged(&[a], &[a, b], true), (vec![a, b], true));
        assert_eq!(merged(&[a, b], &[a, c], true), (vec![a], false));
        assert_eq!(merged(&[part(1, 2)], &[part(1, 4)], true), (vec![part(1, 4)], true));
        assert_eq!(merged(&[part(1, 2), b], &[part(1, 4), b], true), (vec![part(1, 2)], false));
        assert_eq!(merged(&[a], &[a, b], false), (vec![a], false));
        assert_eq!(merged(&[a, b], &[a], false), (vec![a, b], false));
        assert_eq!(merged(&[part(1, 2)], &[part(1, 4)], false), (vec![part(1, 2)], false));
        assert_eq!(merged(&[part(1, 2)], &[part(2, 2)], true), (vec![], false));
    }
}
