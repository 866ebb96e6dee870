//! The devices of a program: their orders in meshes, replica groups, and source-target pairs.

use super::digits::{number_at, total_size, Digit};
use super::placement::Placement;
use crate::error::{Code, Diagnostic, Result};
use crate::mesh::Mesh;
use rustc_hash::FxHashMap;

/// The devices of a program. Meshes of the same devices may list them in different orders; the digits of a position refer to one of
/// these orders.
#[derive(Debug, Default)]
pub struct Devices {
    /// For each order a mesh that has it.
    orders: Vec<Mesh>,
    purpose: Purpose,
    has_replicas: bool,
}

/// The purpose of a per-device program, which limits how many devices its collectives may list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Purpose {
    /// The program is run.
    #[default]
    Run,
    /// Its costs are counted: groups of more than [`MAX_COUNTED`] devices are written by their digits.
    Count,
    /// Its text is compared with that of the reference.
    Print,
}

/// The most devices that a program to run or to print is for: its collectives list them.
pub(super) const MAX_DEVICES: i64 = 1 << 22;
/// The most devices that the collectives of a program to count list.
const MAX_COUNTED: i64 = 1 << 16;

impl Devices {
    /// No devices yet, of a program for `purpose`.
    pub fn of(purpose: Purpose) -> Self {
        Self { orders: Vec::new(), purpose, has_replicas: false }
    }
    /// The devices, whose ids are those of replicas if `has_replicas`, else those of partitions.
    #[must_use]
    pub fn with_replicas(self, has_replicas: bool) -> Self {
        Self { has_replicas, ..self }
    }
    /// Whether the ids of devices are those of replicas.
    pub const fn has_replicas(&self) -> bool {
        self.has_replicas
    }
    /// The op that returns the id of the device.
    pub const fn id_op(&self) -> &'static str {
        if self.has_replicas {
            "stablehlo.replica_id"
        } else {
            "stablehlo.partition_id"
        }
    }
    /// Whether there are too many devices to list them; then a device's id is its position.
    pub fn are_unlisted(&self) -> bool {
        self.purpose == Purpose::Count
            && self.count() > MAX_COUNTED
            && self.orders.iter().all(|mesh| listed_ids(mesh).is_empty())
    }
    /// The number of devices.
    pub fn count(&self) -> i64 {
        self.orders.first().map_or(1, Mesh::device_count)
    }
    /// For each order a mesh that has it.
    pub fn orders(&self) -> &[Mesh] {
        &self.orders
    }
    /// A mesh with this order.
    pub fn mesh(&self, order: u32) -> Option<&Mesh> {
        self.orders.get(order as usize)
    }
    /// The number of the order of `mesh`, if it is known.
    pub fn known_order(&self, mesh: &Mesh) -> Option<u32> {
        let wanted = listed_ids(mesh);
        let same = |known: &Mesh| listed_ids(known) == wanted;
        self.orders.iter().position(same).map(|order| order as u32)
    }
    /// The number of the order of `mesh`; an error if its devices are not those of earlier meshes.
    pub fn order_of(&mut self, mesh: &Mesh) -> Result<u32> {
        if let Some(first) = self.orders.first() {
            if first.device_count() != mesh.device_count() {
                let (a, b) = (first.device_count(), mesh.device_count());
                let message = format!("a program of one device is for one set of devices: a mesh has {a}, another has {b}");
                let hint = "give all meshes of the program the same devices";
                return Err(Diagnostic::new(Code::Unpartitionable, message).with_hint(hint).into());
            }
        }
        if self.purpose != Purpose::Count && mesh.device_count() > MAX_DEVICES {
            let message =
                format!("a program of one of {} devices lists all of them", mesh.device_count());
            let hint = format!("{MAX_DEVICES} devices are the most; `cost` has no limit");
            return Err(Diagnostic::new(Code::ProgramTooLarge, message).with_hint(hint).into());
        }
        let order = self.known_order(mesh).unwrap_or_else(|| {
            self.orders.push(mesh.clone());
            self.orders.len() as u32 - 1
        });
        Ok(order)
    }
}

/// The devices of `mesh` in order; empty for the default order.
fn listed_ids(mesh: &Mesh) -> &[i64] {
    let is_default = (0..).zip(&mesh.device_ids).all(|(at, &id)| at == id);
    if is_default {
        &[]
    } else {
        &mesh.device_ids
    }
}

/// The groups of devices that differ only in `digits`, as device ids; within a group in the order of the number that the digits
/// form, groups in the order of their first positions.
pub fn replica_groups(digits: &[Digit], mesh: &Mesh) -> Vec<Vec<i64>> {
    let mut offsets = vec![0i64];
    for digit in digits {
        let next = offsets
            .iter()
            .flat_map(|offset| (0..digit.size).map(move |value| offset + value * digit.stride));
        offsets = next.collect();
    }
    let is_first = |position: &i64| digits.iter().all(|digit| digit.value(*position) == 0);
    (0..mesh.device_count())
        .filter(is_first)
        .map(|first| offsets.iter().map(|at| mesh.device_at_position(first + at)).collect())
        .collect()
}

/// The permute from the placement `before`, in the order of the first mesh, to `after`, in that of the second: (source, target)
/// pairs of device ids in order of targets, including devices that keep their shard. `None` unless both placements have the same
/// number of shards in each dim and are partial over equally many devices.
pub fn permutation(
    before: &Placement,
    after: &Placement,
    [mesh_before, mesh_after]: [&Mesh; 2],
) -> Option<Vec<(i64, i64)>> {
    let shards = |placement: &Placement| -> Vec<i64> {
        placement.dims.iter().map(|digits| total_size(digits)).collect()
    };
    if shards(before) != shards(after) || before.partial != after.partial {
        return None;
    }
    // What a device holds: the number of its index in each dim and of its term of reductions. The numbers of both
    // placements mean the same, as these have equally many.
    let (digits_before, digits_after): (Vec<Digit>, Vec<Digit>) =
        (before.digits().collect(), after.digits().collect());
    let count = mesh_before.device_count();
    let mut held: FxHashMap<i64, i64> = FxHashMap::default();
    for position in 0..count {
        held.insert(mesh_before.device_at_position(position), number_at(&digits_before, position));
    }
    let mut holders: Vec<(i64, i64)> = Vec::new();
    let mut wanted: Vec<(i64, i64)> = Vec::new();
    let mut pairs: Vec<(i64, i64)> = Vec::with_capacity(held.len());
    for position in 0..count {
        let device = mesh_after.device_at_position(position);
        let (has, wants) = (held.remove(&device)?, number_at(&digits_after, position));
        if has == wants {
            pairs.push((device, device));
        } else {
            holders.push((has, device));
            wanted.push((wants, device));
        }
    }
    // Each shard is sent from the first device that has it to the first one that needs it.
    holders.sort_by_key(|&(shard, _)| shard);
    wanted.sort_by_key(|&(shard, _)| shard);
    for (&(shard, source), &(wants, target)) in holders.iter().zip(&wanted) {
        if shard != wants {
            return None;
        }
        pairs.push((source, target));
    }
    pairs.sort_unstable_by_key(|&(_, target)| target);
    Some(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::MeshAxis;

    fn mesh(sizes: &[(&str, i64)], ids: Vec<i64>) -> Mesh {
        let axis = |&(name, size): &(&str, i64)| MeshAxis { name: name.into(), size };
        Mesh::new(sizes.iter().map(axis).collect(), ids)
    }

    #[test]
    fn groups_follow_the_order_of_digits() {
        let mesh = mesh(&[("x", 2), ("y", 2)], vec![3, 2, 1, 0]);
        let (x, y) = (Digit { stride: 2, size: 2 }, Digit { stride: 1, size: 2 });
        assert_eq!(replica_groups(&[x], &mesh), [[3, 1], [2, 0]]);
        assert_eq!(replica_groups(&[y, x], &mesh), [[3, 1, 2, 0]]);
        assert_eq!(replica_groups(&[], &mesh), [[3], [2], [1], [0]]);
    }

    #[test]
    fn permutations_move_only_what_has_to() {
        let mesh = mesh(&[("x", 2), ("y", 2)], Vec::new());
        let (x, y) = (Digit { stride: 2, size: 2 }, Digit { stride: 1, size: 2 });
        let place = |digit| Placement { dims: vec![vec![digit]], ..Placement::default() };
        let pairs = permutation(&place(x), &place(y), [&mesh; 2]).unwrap();
        assert_eq!(pairs, [(0, 0), (2, 1), (1, 2), (3, 3)]);
        assert!(permutation(&place(x), &Placement::replicated(1), [&mesh; 2]).is_none());
    }
}
