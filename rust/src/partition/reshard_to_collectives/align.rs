//! Splits axes so that axes that overlap become equal.

use crate::axis::AxisRef;
use crate::mesh::Mesh;

/// Splits the axes of both lists where an axis of the other list ends inside them.
pub fn align_both(first: &mut [Vec<AxisRef>], second: &mut [Vec<AxisRef>], mesh: &Mesh) {
    let (of_first, of_second) = (sorted(first, mesh), sorted(second, mesh));
    align(first, &of_second, mesh);
    align(second, &of_first, mesh);
}

/// All axes in mesh order.
pub fn sorted(axes_per_dim: &[Vec<AxisRef>], mesh: &Mesh) -> Vec<AxisRef> {
    let mut all: Vec<AxisRef> = axes_per_dim.iter().flatten().copied().collect();
    all.sort_by_key(|axis| axis.mesh_order(mesh));
    all
}

/// Splits axes where one of `others`, which are in mesh order and do not overlap each other, ends
/// inside them.
pub fn align(axes_per_dim: &mut [Vec<AxisRef>], others: &[AxisRef], mesh: &Mesh) {
    for axes in axes_per_dim {
        let mut at = 0;
        while at < axes.len() {
            at = align_one(axes, at, others, mesh);
        }
    }
}

/// Splits the axis at index `at`; returns the index to continue at.
fn align_one(axes: &mut Vec<AxisRef>, mut at: usize, others: &[AxisRef], mesh: &Mesh) -> usize {
    let Some(mut other_at) = others.iter().position(|other| other.overlaps(axes[at])) else {
        return at + 1;
    };
    loop {
        let whole = axes[at];
        let other = others.get(other_at).copied().filter(|other| {
            other.overlaps(whole) && other.can_coexist(whole) && !other.contains(whole)
        });
        let Some((other, overlap)) = other.and_then(|other| Some((other, whole.overlap(other)?)))
        else {
            return at + 1;
        };
        axes.remove(at);
        if let Some(prefix) = whole.prefix_without_overlap(other) {
            axes.insert(at, prefix);
            at += 1;
        }
        axes.insert(at, overlap);
        at += 1;
        let Some(suffix) = whole.suffix_without_overlap(other, mesh) else { return at };
        axes.insert(at, suffix);
        other_at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::AxisId;
    use crate::mesh::MeshAxis;

    #[test]
    fn overlapping_axes_are_split_alike() {
        let mesh = Mesh::new(vec![MeshAxis { name: "x".into(), size: 8 }], Vec::new());
        let x = AxisId::new(0);
        let mut first = [vec![AxisRef::full(x)]];
        let mut second = [vec![AxisRef::sub(x, 2, 2)]];
        align_both(&mut first, &mut second, &mesh);
        assert_eq!(first[0], [AxisRef::sub(x, 1, 2), AxisRef::sub(x, 2, 2), AxisRef::sub(x, 4, 2)]);
        assert_eq!(second[0], [AxisRef::sub(x, 2, 2)]);
    }
}
