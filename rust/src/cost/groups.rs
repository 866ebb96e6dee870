//! The mesh axes along which a `StableHLO` collective runs, from its groups of devices.

use crate::axis::AxisRef;
use crate::index::{AxisId, Id, OpId};
use crate::ir::Program;
use crate::mesh::Mesh;
use crate::mlir::op_attribute;
use crate::mlir::AttrValue;

/// The axes of `mesh`, or parts of them, along which the devices of each group of `op` lie; `None` where groups are not
/// along axes, or are not understood.
pub fn axes_of_groups(program: &Program, op: OpId, mesh: &Mesh) -> Option<Vec<AxisRef>> {
    if let Some(pairs) = op_attribute(program, op, "source_target_pairs") {
        let ids = pairs.as_ints()?;
        let varying = ids.chunks_exact(2).map(|pair| varying_axes(mesh, pair));
        let mut axes: Vec<AxisId> = varying.collect::<Option<Vec<_>>>()?.concat();
        axes.sort_unstable();
        axes.dedup();
        return Some(axes.into_iter().map(AxisRef::full).collect());
    }
    let groups = op_attribute(program, op, "replica_groups")?;
    let AttrValue::Dense { ty, .. } = &groups else { return named_axes(program, op, mesh) };
    let ids = groups.as_ints()?;
    let size = columns(ty)?;
    let first: Vec<i64> =
        if ids.len() == 1 { vec![ids[0]; size] } else { ids.get(..size)?.to_vec() };
    let axes = varying_axes(mesh, &first)?;
    let parts: Option<Vec<AxisRef>> =
        axes.into_iter().map(|axis| part_of_axis(mesh, axis, &first)).collect();
    let parts = parts?;
    (crate::axis::total_size(&parts, mesh) == size as i64).then_some(parts)
}

/// How many devices of a group of `op` talk to each other; `None` where groups are not lists of devices.
pub fn size_of_groups(program: &Program, op: OpId) -> Option<i64> {
    if let Some(pairs) = op_attribute(program, op, "source_target_pairs") {
        let mut ids = pairs.as_ints()?;
        if ids.chunks_exact(2).all(|pair| pair[0] == pair[1]) {
            return Some(1);
        }
        ids.sort_unstable();
        ids.dedup();
        return Some(ids.len() as i64);
    }
    match op_attribute(program, op, "replica_groups")? {
        AttrValue::Dense { ty, .. } => Some(columns(ty)? as i64),
        _ => None,
    }
}

/// The number of columns of `tensor<2x4xi64>`.
fn columns(ty: &str) -> Option<usize> {
    let inner = ty.trim().strip_prefix("tensor<")?.strip_suffix("xi64>")?;
    inner.rsplit('x').next()?.parse().ok()
}

/// The axes along which `devices`, positions in the mesh, differ.
fn varying_axes(mesh: &Mesh, devices: &[i64]) -> Option<Vec<AxisId>> {
    let count = mesh.device_count();
    if devices.iter().any(|device| !(0..count).contains(device)) {
        return None;
    }
    let first = *devices.first()?;
    let axes = (0..mesh.axes.len()).map(AxisId::from_index);
    let varies = |&axis: &AxisId| {
        let of = |device| coordinate(mesh, axis, device);
        devices.iter().any(|&device| of(device) != of(first))
    };
    Some(axes.filter(varies).collect())
}

/// Where along `axis` a device is, given by its place in the mesh.
fn coordinate(mesh: &Mesh, axis: AxisId, device: i64) -> i64 {
    let minor: i64 = mesh.axes[axis.index() + 1..].iter().map(|axis| axis.size).product();
    device / minor % mesh.axis_size(axis)
}

/// The part of `axis` along which `devices` lie, evenly spaced.
fn part_of_axis(mesh: &Mesh, axis: AxisId, devices: &[i64]) -> Option<AxisRef> {
    let mut places: Vec<i64> =
        devices.iter().map(|&device| coordinate(mesh, axis, device)).collect();
    places.sort_unstable();
    places.dedup();
    let (count, size) = (places.len() as i64, mesh.axis_size(axis));
    let step = places.get(1)? - places[0];
    let is_even = places.windows(2).all(|pair| pair[1] - pair[0] == step);
    if count == size {
        return Some(AxisRef::full(axis));
    }
    let is_part = is_even && size % (step * count) == 0;
    is_part.then(|| AxisRef::sub(axis, size / (step * count), count))
}

/// The axes of groups in the form `#stablehlo.replica_group_mesh_axes<..., axes = [...]>`.
fn named_axes(program: &Program, op: OpId, mesh: &Mesh) -> Option<Vec<AxisRef>> {
    let text = program.attr(op, "replica_groups")?;
    let list = text.rsplit_once("axes")?.1;
    // Names are quoted; sub-axes are not supported.
    if list.contains("sub_axis_info") {
        return None;
    }
    let names = list.split('"').skip(1).step_by(2);
    names.map(|name| mesh.axis_by_name(name).map(AxisRef::full)).collect()
}
