//! Counts the nodes (GPUs on one switch, hosts, racks) that the devices of a group are on.
//!
//! Nodes take devices in the order of their ids, `node_size` each. The positions of a group's
//! devices along some axes are sums of digits, one digit for each axis ([`crate::layout`]), so that
//! nodes are counted without a visit of each device: a digit of size `k` repeats the pattern of the
//! smaller digits `k` times, which is computed as two halves of `k / 2` copies, and patterns with
//! the same offset in a node are computed once. Only if a mesh lists its device ids, each device is
//! visited.

use crate::axis::{disjoint, AxisRef};
use crate::layout::stride;
use crate::mesh::Mesh;
use rustc_hash::FxHashMap;

/// The nodes that a group of devices reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupNodes {
    /// The number of nodes.
    pub nodes: i64,
    /// The largest number of devices of the group in one node.
    pub most_in_one: i64,
}

/// The nodes that the first group of devices along `axes` reaches; each node has `node_size` devices.
pub fn group_nodes(axes: &[AxisRef], mesh: &Mesh, node_size: i64) -> GroupNodes {
    let node_size = node_size.max(1);
    let mut digits: Vec<(i64, i64)> = disjoint(axes, mesh)
        .into_iter()
        .map(|axis| (stride(axis, mesh), axis.size(mesh)))
        .filter(|&(_, size)| size > 1)
        .collect();
    digits.sort_unstable();
    if !mesh.device_ids.is_empty() {
        return listed(&digits, mesh, node_size);
    }
    let mut counter = Counter { digits, node_size, known: FxHashMap::default() };
    let spread = counter.pattern(counter.digits.len(), 0);
    GroupNodes { nodes: spread.nodes, most_in_one: spread.most_in_one }
}

/// Visits each device of the group.
fn listed(digits: &[(i64, i64)], mesh: &Mesh, node_size: i64) -> GroupNodes {
    let mut positions = vec![0];
    for &(stride, size) in digits {
        let copies = (0..size).flat_map(|n| positions.iter().map(move |at| at + n * stride));
        positions = copies.collect();
    }
    let mut counts: FxHashMap<i64, i64> = FxHashMap::default();
    for position in positions {
        *counts.entry(mesh.device_at_position(position) / node_size).or_default() += 1;
    }
    let most_in_one = counts.values().copied().max().unwrap_or(1);
    GroupNodes { nodes: counts.len() as i64, most_in_one }
}

/// A sequence of devices in ascending order, and the nodes that they are on.
#[derive(Clone, Copy)]
struct Spread {
    nodes: i64,
    most_in_one: i64,
    /// The index of the first node, and the number of devices in it.
    first: (i64, i64),
    last: (i64, i64),
}

impl Spread {
    const fn in_one_node(devices: i64) -> Self {
        Self { nodes: 1, most_in_one: devices, first: (0, devices), last: (0, devices) }
    }
    const fn moved(mut self, nodes: i64) -> Self {
        self.first.0 += nodes;
        self.last.0 += nodes;
        self
    }
    /// The devices of `self`, then those of `other`, which starts in the last node of `self` or later.
    fn then(self, other: Self) -> Self {
        let mut both = Self {
            nodes: self.nodes + other.nodes,
            most_in_one: self.most_in_one.max(other.most_in_one),
            first: self.first,
            last: other.last,
        };
        if self.last.0 == other.first.0 {
            let shared = self.last.1 + other.first.1;
            both.nodes -= 1;
            both.most_in_one = both.most_in_one.max(shared);
            if self.nodes == 1 {
                both.first.1 = shared;
            }
            if other.nodes == 1 {
                both.last.1 = shared;
            }
        }
        both
    }
}

struct Counter {
    /// Stride and size of each digit, by stride.
    digits: Vec<(i64, i64)>,
    node_size: i64,
    /// The results by number of digits, number of copies and offset.
    known: FxHashMap<(usize, i64, i64), Spread>,
}

impl Counter {
    /// The devices given by the first `count` digits; the first device is at `offset` in its node.
    fn pattern(&mut self, count: usize, offset: i64) -> Spread {
        match count.checked_sub(1) {
            None => Spread::in_one_node(1),
            Some(inner) => self.copies(inner, self.digits[inner].1, offset),
        }
    }
    /// `copies` copies of the pattern of the first `inner` digits, at multiples of the stride of
    /// the next digit.
    fn copies(&mut self, inner: usize, copies: i64, offset: i64) -> Spread {
        if copies == 1 {
            return self.pattern(inner, offset);
        }
        let stride = self.digits[inner].0;
        let inside = self.digits[..inner].iter().map(|(stride, size)| stride * (size - 1));
        if offset + inside.sum::<i64>() + stride * (copies - 1) < self.node_size {
            let devices: i64 = self.digits[..inner].iter().map(|digit| digit.1).product();
            return Spread::in_one_node(devices * copies);
        }
        if let Some(&known) = self.known.get(&(inner, copies, offset)) {
            return known;
        }
        let half = copies / 2;
        let next = offset + half * stride;
        let first = self.copies(inner, half, offset);
        let second = self.copies(inner, copies - half, next % self.node_size);
        let both = first.then(second.moved(next / self.node_size));
        self.known.insert((inner, copies, offset), both);
        both
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{AxisId, Id};
    use crate::mesh::MeshAxis;

    fn mesh(sizes: &[i64]) -> Mesh {
        let axis = |(at, &size): (usize, &i64)| MeshAxis { name: format!("a{at}").into(), size };
        Mesh::new(sizes.iter().enumerate().map(axis).collect(), Vec::new())
    }

    #[test]
    fn counting_agrees_with_visiting_every_device() {
        for sizes in [&[3, 3, 3, 3][..], &[2, 4, 8], &[5, 2, 7], &[6, 1, 10], &[64]] {
            let counted = mesh(sizes);
            let mut visited = counted.clone();
            visited.device_ids = (0..counted.device_count()).collect();
            for chosen in 0..1_u32 << sizes.len() {
                let axes: Vec<AxisRef> = (0..sizes.len())
                    .filter(|at| chosen >> at & 1 == 1)
                    .map(|at| AxisRef::full(AxisId::from_index(at)))
                    .collect();
                for node_size in 1..=12 {
                    assert_eq!(
                        group_nodes(&axes, &counted, node_size),
                        group_nodes(&axes, &visited, node_size),
                        "{sizes:?} {chosen:b} {node_size}"
                    );
                }
            }
        }
    }

    #[test]
    fn large_meshes_are_not_visited() {
        let huge = mesh(&[2, 1 << 40]);
        let inner = AxisRef::full(AxisId::from_index(1));
        let found = group_nodes(&[inner], &huge, 8);
        assert_eq!(found, GroupNodes { nodes: 1 << 37, most_in_one: 8 });
        let strided = group_nodes(&[AxisRef::sub(AxisId::from_index(1), 1, 1 << 39)], &huge, 8);
        assert_eq!(strided, GroupNodes { nodes: 1 << 37, most_in_one: 4 });
        let odd = mesh(&[3; 25]);
        let every_other: Vec<AxisRef> =
            (0..25).step_by(2).map(|at| AxisRef::full(AxisId::from_index(at))).collect();
        assert!(group_nodes(&every_other, &odd, 8).nodes <= 3_i64.pow(13));
    }

    #[test]
    fn axes_that_overlap_count_once() {
        let mesh = mesh(&[8, 16]);
        let b = AxisId::from_index(1);
        let axes = [AxisRef::full(b), AxisRef::full(AxisId::from_index(0)), AxisRef::sub(b, 8, 2)];
        assert_eq!(group_nodes(&axes, &mesh, 8), GroupNodes { nodes: 16, most_in_one: 8 });
    }
}
