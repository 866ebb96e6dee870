//! The orders of devices that the shardings of a program are over.

use super::super::devices::Devices;
use crate::error::Result;
use crate::ir::Program;
use rustc_hash::FxHashMap;

/// For each sharding the order of its devices. Maximal shardings, and those over no mesh, have none.
pub(super) fn orders(program: &Program, devices: &mut Devices) -> Result<Vec<Option<u32>>> {
    let mut orders = Vec::with_capacity(program.shardings().len());
    let mut by_mesh = FxHashMap::default();
    for id in program.shardings().ids() {
        let sharding = &program.shardings()[id];
        let mesh = program.mesh(sharding.mesh);
        if mesh.is_maximal() || mesh.device_count() <= 1 {
            orders.push(None);
            continue;
        }
        let known = by_mesh.get(&sharding.mesh).copied();
        let order = match known {
            Some(order) => order,
            None => devices.order_of(mesh)?,
        };
        by_mesh.insert(sharding.mesh, order);
        orders.push(Some(order));
    }
    Ok(orders)
}
