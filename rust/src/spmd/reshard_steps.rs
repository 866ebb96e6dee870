//! A record of the collectives of each reshard, with the placements before and after each.

use super::devices::Devices;
use super::placement::{PlacementId, Placements};
use crate::index::{MeshId, OpId};
use crate::mesh::Mesh;
use crate::sharding::TensorSharding;

/// One step of a reshard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// The ids of the ops that were made for it: the first, and the one after the last.
    pub ops: (OpId, OpId),
    /// The placement of the operand.
    pub before: PlacementId,
    /// The placement of the result.
    pub after: PlacementId,
    /// Whether it is part of a full rematerialization, see [`super::xla::reshard`].
    pub rematerializes: bool,
}

/// The steps of all reshards, in the order in which they were made, so that ids of ops ascend.
#[derive(Debug, Default)]
pub struct Steps {
    rows: Vec<Step>,
    placements: Placements,
    devices: Devices,
}

impl Steps {
    pub(super) const fn new(rows: Vec<Step>, placements: Placements, devices: Devices) -> Self {
        Self { rows, placements, devices }
    }
    /// The step that `op` was made for.
    fn step(&self, op: OpId) -> Option<&Step> {
        let at = self.rows.partition_point(|step| step.ops.0 <= op);
        self.rows[..at].last().filter(|step| op < step.ops.1)
    }
    /// Whether `op` was made for a step of a reshard.
    pub fn has(&self, op: OpId) -> bool {
        self.step(op).is_some()
    }
    /// Whether `op` is part of a full rematerialization: it gathers the whole tensor, as no other case applied.
    pub fn rematerializes(&self, op: OpId) -> bool {
        self.step(op).is_some_and(|step| step.rematerializes)
    }
    /// The shardings over `mesh` of the operand and of the result of `op`, a collective of a reshard; `None` for one that cannot be
    /// expressed over this mesh.
    pub fn shardings(&self, op: OpId, (id, mesh): (MeshId, &Mesh)) -> [Option<TensorSharding>; 2] {
        let order = self.devices.known_order(mesh);
        let sharding = |placement: PlacementId| {
            let placement = &self.placements[placement];
            let has_order = placement.is_replicated() || order == Some(placement.order);
            has_order.then(|| placement.sharding(id, mesh)).flatten()
        };
        self.step(op).map_or([None, None], |step| [sharding(step.before), sharding(step.after)])
    }
}
