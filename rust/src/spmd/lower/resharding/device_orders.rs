//! The device orders of the meshes of a program.

use crate::error::Result;
use crate::index::MeshId;
use crate::ir::Program;
use crate::spmd::devices::Devices;
use crate::spmd::sharding_checks::used_meshes;
use rustc_hash::FxHashMap;

/// For each sharding the order of its devices. Maximal shardings, those over no mesh, and those over a mesh that nothing is
/// sharded over, have none. Orders are numbered by the meshes, whichever shardings the program had before.
pub(in crate::spmd::lower) fn orders(
    program: &Program,
    devices: &mut Devices,
) -> Result<Vec<Option<u32>>> {
    let used = used_meshes(program);
    let mut by_mesh: FxHashMap<MeshId, u32> = FxHashMap::default();
    for id in program.meshes().ids().filter(|&id| used.contains(id)) {
        let mesh = program.mesh(id);
        if !mesh.is_maximal() && mesh.device_count() > 1 {
            by_mesh.insert(id, devices.order_of(mesh)?);
        }
    }
    let shardings = program.shardings().ids();
    Ok(shardings.map(|id| by_mesh.get(&program.mesh_of(id)).copied()).collect())
}
