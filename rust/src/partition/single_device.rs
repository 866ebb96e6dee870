//! Single-device shardings, and the mesh of all devices.

use crate::index::{MeshId, OpId, ShardingId};
use crate::ir::{Payload, Program};

impl Program {
    /// Whether `sharding` is over a maximal mesh, a single device.
    pub fn is_on_single_device(&self, sharding: ShardingId) -> bool {
        self.single_device(sharding).is_some()
    }
    /// The device of `sharding`, if that is over a maximal mesh.
    pub fn single_device(&self, sharding: ShardingId) -> Option<i64> {
        let mesh = self.mesh_of(sharding).get()?;
        let mesh = self.mesh(mesh);
        mesh.is_maximal().then(|| mesh.device_ids.first().copied()).flatten()
    }
    /// The first mesh of the module that has axes.
    pub fn global_mesh(&self) -> Option<MeshId> {
        let meshes =
            self.block_ops(self.module_block()).filter_map(|op: OpId| match self.payload(op) {
                Some(&Payload::Mesh(mesh)) => Some(mesh),
                _ => None,
            });
        meshes.into_iter().find(|&mesh| !self.mesh(mesh).axes.is_empty())
    }
}
