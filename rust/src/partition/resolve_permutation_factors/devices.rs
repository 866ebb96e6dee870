//! Maps devices to shards, and shards to neighbouring devices.

use crate::axis::{total_size, AxisRef};
use crate::layout::stride;
use crate::mesh::Mesh;

/// The index of the shard along `axes` that the device at `position` of `mesh` has.
pub fn shard_number(position: i64, axes: &[AxisRef], mesh: &Mesh) -> i64 {
    axes.iter().fold(0, |number, &axis| {
        let size = axis.size(mesh);
        number * size + position / stride(axis, mesh) % size
    })
}

/// The source-target pairs of device ids that send each shard along `axes` to the device whose
/// shard index is larger by `offset`, if it exists.
pub fn shift_pairs(mesh: &Mesh, axes: &[AxisRef], offset: i64) -> Vec<[i64; 2]> {
    let shards = total_size(axes, mesh);
    let mut pairs = Vec::new();
    for position in 0..mesh.num_devices() {
        let mut number = shard_number(position, axes, mesh) + offset;
        if !(0..shards).contains(&number) {
            continue;
        }
        let mut target = position;
        for &axis in axes.iter().rev() {
            let (size, stride) = (axis.size(mesh), stride(axis, mesh));
            target += (number % size - position / stride % size) * stride;
            number /= size;
        }
        pairs.push([mesh.device_at_position(position), mesh.device_at_position(target)]);
    }
    pairs
}
