//! Axis lists as sets: parts that do not overlap, and the order by name.

pub use crate::axis::difference;
use crate::axis::AxisRef;
use crate::mesh::Mesh;
use std::cmp::Ordering;

/// The largest prefix of `axis` that overlaps none of `others`.
pub fn prefix_without_overlap(axis: AxisRef, others: &[AxisRef]) -> Option<AxisRef> {
    others.iter().try_fold(axis, |prefix, &other| prefix.prefix_without_overlap(other))
}

/// Truncates `axes` at the first axis that overlaps `others`; of that axis, the prefix without
/// overlap is kept. Returns whether anything was removed.
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

/// Compares by name, then pre-size, where a sub-axis with pre-size 1 comes before the full axis,
/// then by size. Shardy sorts axis attributes in this order.
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
