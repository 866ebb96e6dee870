//! The mesh axes along which a `StableHLO` collective runs, from its groups of devices.

use crate::axis::AxisRef;
use crate::index::{AxisId, Id, OpId};
use crate::ir::Program;
use crate::mesh::Mesh;
use crate::mlir::op_attribute;
use crate::mlir::AttrValue;

/// The axes of `mesh` along which the devices of each group of `op` lie; `None` where groups are not
/// along whole axes, or are not understood.
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
    let product: i64 = axes.iter().map(|&axis| mesh.axis_size(axis)).product();
    (product == size as i64).then(|| axes.into_iter().map(AxisRef::full).collect())
}

/// The number of columns of `tensor<2x4xi64>`.
fn columns(ty: &str) -> Option<usize> {
    let inner = ty.trim().strip_prefix("tensor<")?.strip_suffix("xi64>")?;
    inner.rsplit('x').next()?.parse().ok()
}

/// The axes along which devices, given by their place in the mesh, differ.
fn varying_axes(mesh: &Mesh, devices: &[i64]) -> Option<Vec<AxisId>> {
    let count = mesh.device_count();
    if devices.iter().any(|device| !(0..count).contains(device)) {
        return None;
    }
    let first = *devices.first()?;
    let mut axes = Vec::new();
    let mut stride = 1;
    for index in (0..mesh.axes.len()).rev() {
        let size = mesh.axes[index].size;
        let coordinate = |device: i64| device / stride % size;
        if devices.iter().any(|&device| coordinate(device) != coordinate(first)) {
            axes.push(AxisId::from_index(index));
        }
        stride *= size;
    }
    axes.reverse();
    Some(axes)
}

/// The axes that groups are given by, `#stablehlo.replica_group_mesh_axes<..., axes = [...]>`.
fn named_axes(program: &Program, op: OpId, mesh: &Mesh) -> Option<Vec<AxisRef>> {
    let text = program.attr(op, "replica_groups")?;
    let list = text.rsplit_once("axes")?.1;
    // Names stand in quotes; a sub-axis has more to say, which is not followed here.
    if list.contains("sub_axis_info") {
        return None;
    }
    let names = list.split('"').skip(1).step_by(2);
    names.map(|name| mesh.axis_by_name(name).map(AxisRef::full)).collect()
}
