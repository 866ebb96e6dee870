//! Axis lists as sets: difference and order by name.

use crate::axis::AxisRef;
use crate::mesh::Mesh;
use std::cmp::Ordering;

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

/// The largest prefix of `axis` that overlaps none of `others`.
pub fn prefix_without_overlap(axis: AxisRef, others: &[AxisRef]) -> Option<AxisRef> {
    others.iter().try_fold(axis, |prefix, &other| prefix.prefix_without_overlap(other))
}

/// Truncates `axes` at the first axis that overlaps `others`, of which the prefix without overlap is kept;
/// true if anything was removed.
pub fn truncate_without_overlap(axes: &mut Vec<AxisRef>, others: &[AxisRef]) -> bool {
    for index in 0..axes.len() {
        let prefix = prefix_without_overlap(axes[index], others);
        if prefix != Some(axes[index]) {
            axes.truncate(index);
            axes.extend(prefix);
            return true;
        }
    }
    false
}

/// Compares by name, then pre-size; of a full axis and a sub-axis with pre-size 1 the latter comes
/// first; then by size. This is the order that Shardy sorts attributes of axes by.
pub fn compare_by_name(a: AxisRef, b: AxisRef, mesh: &Mesh) -> Ordering {
    let key = |axis: AxisRef| {
        let size = axis.sub.map_or(0, |sub| sub.size);
        (mesh.axis_name(axis.axis), axis.pre_size(), axis.sub.is_none(), size)
    };
    key(a).cmp(&key(b))
}

/// Compares lists by length, then by their first different refs.
pub fn compare_lists(a: &[AxisRef], b: &[AxisRef], mesh: &Mesh) -> Ordering {
    let first_difference = || {
        let pairs = a.iter().zip(b).find(|(a, b)| a != b);
        pairs.map_or(Ordering::Equal, |(&a, &b)| compare_by_name(a, b, mesh))
    };
    a.len().cmp(&b.len()).then_with(first_difference)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::AxisId;
    use crate::mesh::MeshAxis;

    #[test]
    fn difference_keeps_what_is_around_an_overlap() {
        let mesh = Mesh::new(vec![MeshAxis { name: "x".into(), size: 16 }], Vec::new());
        let x = AxisId::new(0);
        let middle = AxisRef::sub(x, 2, 4);
        assert_eq!(
            difference(&[AxisRef::full(x)], &[middle], &mesh),
            [AxisRef::sub(x, 1, 2), AxisRef::sub(x, 8, 2)]
        );
        assert_eq!(difference(&[middle], &[AxisRef::full(x)], &mesh), []);
        let mut axes = vec![AxisRef::full(x)];
        assert!(truncate_without_overlap(&mut axes, &[middle]));
        assert_eq!(axes, [AxisRef::sub(x, 1, 2)]);
        assert_eq!(compare_by_name(AxisRef::sub(x, 1, 2), AxisRef::full(x), &mesh), Ordering::Less);
        assert_eq!(compare_by_name(middle, AxisRef::full(x), &mesh), Ordering::Greater);
    }
}
