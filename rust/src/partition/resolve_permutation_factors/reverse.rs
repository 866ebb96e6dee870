//! Reverses of sharded dims: every device reverses its shard, and the device order is reversed.
//!
//! The reshard before the reverse, or after it since [`Change::HaloExchanges`], to a mesh with
//! another device order takes one collective permute. If a dim does not divide evenly, its padding
//! has to be at the low end before it is reversed, so that it is at the high end afterwards: it is
//! padded at the high end and shifted, see [`super::halo`].

use super::halo::{pad_at_high_end, shift_padding_to_low};
use super::{Resolution, MAX_LISTED_DEVICES};
use crate::axis::{total_size, AxisRef};
use crate::index::{AxisId, FuncId, Id, MeshId, OpId, ShardingId, ValueId};
use crate::ir::{int_array, InsertPoint, NewOp, OpKind, Place, Program};
use crate::mesh::Mesh;
use crate::sharding::TensorSharding;
use crate::shardy::Change;

/// The rewrite of one reverse.
pub struct Plan {
    /// The axes along which the device order is reversed.
    pub reversed: Vec<AxisRef>,
    /// The axes of the dims that do not divide evenly.
    pub manual: Vec<AxisId>,
    /// The shape with those dims padded.
    pub padded: Vec<i64>,
    /// The shape before padding.
    pub shape: Vec<i64>,
}

/// Rewrites reverse `op`; returns false if it has to be replicated instead, because its padding is
/// larger than a shard.
pub fn resolve(program: &mut Program, op: OpId, resolution: &mut Resolution) -> bool {
    let operand = program.operand(op, 0);
    let sharding = program.sharding_of(operand);
    let Some(mesh) = program.mesh_of(sharding).get() else { return true };
    if program.is_fully_replicated(sharding) || program.mesh(mesh).is_maximal() {
        return true;
    }
    let Some(shape) = program.value_type(operand).static_shape() else { return true };
    let Some(plan) = plan(program, op, sharding, shape) else { return false };
    if plan.reversed.is_empty() {
        return true;
    }
    if program.mesh(mesh).num_devices() > MAX_LISTED_DEVICES {
        return false;
    }
    let mut input = operand;
    if !plan.manual.is_empty() {
        input = pad_at_high_end(program, op, input, sharding, &plan);
        input = shift_padding_to_low(program, resolution, op, input, sharding, &plan);
    }
    let reversed_mesh = reversed_mesh(program, mesh, &plan.reversed, resolution);
    let reversed = TensorSharding { mesh: reversed_mesh, ..program.shardings()[sharding].clone() };
    let reversed = program.intern_sharding(reversed);
    if program.shardy().has(Change::HaloExchanges) {
        reverse_first(program, op, input, [sharding, reversed], &plan);
        return true;
    }
    let result = program.result(op, 0);
    let reshard = program.build_unary(OpKind::Reshard, input, reversed, program.before(op));
    input = program.result(reshard, 0);
    if plan.manual.is_empty() {
        if let Some(slot) = program.op_uses(op).next() {
            program.set_operand(slot, input);
        }
        program.set_sharding(result, sharding);
    } else {
        reverse_padded(program, op, input, sharding, &plan);
    }
    true
}

/// Gives the result of `op` a mesh with reversed device order, and reshards it afterwards.
fn reverse_first(
    program: &mut Program,
    op: OpId,
    input: ValueId,
    [sharding, reversed]: [ShardingId; 2],
    plan: &Plan,
) {
    let result = program.result(op, 0);
    let wanted = program.sharding(result);
    if let Some(slot) = program.op_uses(op).next() {
        if program.used_value(slot) != input {
            program.set_operand(slot, input);
        }
    }
    program.set_sharding(result, reversed);
    program.set_type(result, program.type_of(input));
    program.update_types(op);
    let reshard = program.build_unary(OpKind::Reshard, result, wanted, program.after(op));
    let mut new = program.result(reshard, 0);
    if !plan.manual.is_empty() {
        let at = InsertPoint { place: Place::After(reshard), loc: program.loc(op) };
        new = program.build_slice(new, &vec![0; plan.shape.len()], &plan.shape, sharding, at);
    }
    program.replace_all_uses_except(result, new, reshard);
}

/// The dims that `op` reverses.
fn reversed_dims(program: &Program, op: OpId) -> Vec<usize> {
    let attributes = crate::mlir::signature_attributes(program, program.signature(op));
    let dims = attributes.into_iter().find(|(name, _)| *name == "dimensions");
    let dims = dims.and_then(|(_, dims)| dims.as_ints()).unwrap_or_default();
    dims.into_iter().filter_map(|dim| usize::try_from(dim).ok()).collect()
}

fn plan(program: &Program, op: OpId, sharding: ShardingId, shape: Vec<i64>) -> Option<Plan> {
    let dims = reversed_dims(program, op);
    let sharding = &program.shardings()[sharding];
    let mesh = program.mesh(sharding.mesh);
    let mut plan = Plan { reversed: Vec::new(), manual: Vec::new(), padded: shape.clone(), shape };
    for (dim, axes) in sharding.dims.iter().map(|dim| &dim.axes).enumerate() {
        let shards = total_size(axes, mesh);
        if !dims.contains(&dim) || shards <= 1 {
            continue;
        }
        plan.reversed.extend(axes);
        let size = plan.shape[dim];
        if size % shards != 0 {
            plan.manual.extend(axes.iter().map(|axis| axis.axis));
            plan.padded[dim] = (size / shards + 1).checked_mul(shards)?;
            let is_near = plan.padded[dim] - size <= plan.padded[dim] / shards;
            if !is_near && !program.shardy().has(Change::HaloExchanges) {
                return None;
            }
        }
    }
    Some(plan)
}

/// Replaces `op` by a reverse of the padded `input` and a slice of its result.
fn reverse_padded(
    program: &mut Program,
    op: OpId,
    input: ValueId,
    sharding: ShardingId,
    plan: &Plan,
) {
    let dims: Vec<i64> =
        reversed_dims(program, op).into_iter().filter_map(|dim| i64::try_from(dim).ok()).collect();
    let old = program.result(op, 0);
    let ty = program.type_of(input);
    let at = program.before(op);
    let reverse =
        program.build(NewOp::new("stablehlo.reverse", &[input], &[ty]).sharding(sharding), at);
    program.copy_attrs(op, reverse);
    program.set_attr(reverse, "dimensions", &int_array(&dims));
    let starts = vec![0; plan.shape.len()];
    let reversed = program.result(reverse, 0);
    let slice = program.build_slice(reversed, &starts, &plan.shape, sharding, at);
    program.replace_all_uses(old, slice);
    program.erase_op(op);
}

/// The mesh with reversed device order along `axes`.
fn reversed_mesh(
    program: &mut Program,
    mesh_id: MeshId,
    axes: &[AxisRef],
    resolution: &mut Resolution,
) -> MeshId {
    let mesh = program.mesh(mesh_id);
    let device_ids = (0..mesh.num_devices()).map(|device| {
        let mut coords = coordinates(device, mesh);
        for axis in axes {
            let (size, stride) = (axis.size(mesh), stride(*axis, mesh));
            let own = coords[axis.axis.index()] / stride % size;
            coords[axis.axis.index()] += (size - 1 - 2 * own) * stride;
        }
        let place = linear_index(&coords, mesh);
        let known = usize::try_from(place).ok().and_then(|place| mesh.device_ids.get(place));
        known.copied().unwrap_or(place)
    });
    let reversed = Mesh::new(mesh.axes.clone(), device_ids.collect());
    if let Some(&known) = resolution.meshes.get(&reversed) {
        return known;
    }
    let base = program.meshes()[mesh_id].symbol.map_or("mesh", |name| program.str(name));
    let wanted = format!("{base}_reversed");
    let wanted = program.intern(&wanted);
    let symbol = resolution.symbols.reserve(program, wanted, FuncId::NONE);
    let at = InsertPoint::at(Place::Start(program.module_block()));
    let (id, _) = program.create_mesh(symbol, reversed.clone(), at);
    resolution.meshes.insert(reversed, id);
    id
}

/// The difference of the coordinates along the mesh axis between neighbouring parts of `axis`.
pub fn stride(axis: AxisRef, mesh: &Mesh) -> i64 {
    mesh.axis_size(axis.axis) / (axis.pre_size() * axis.size(mesh)).max(1)
}

/// The coordinates along each axis of the device at `index` in row-major order.
pub fn coordinates(mut index: i64, mesh: &Mesh) -> Vec<i64> {
    let mut coords = vec![0; mesh.axes.len()];
    for (coord, axis) in coords.iter_mut().zip(&mesh.axes).rev() {
        *coord = index % axis.size;
        index /= axis.size;
    }
    coords
}

/// The inverse of [`coordinates`].
pub fn linear_index(coords: &[i64], mesh: &Mesh) -> i64 {
    coords.iter().zip(&mesh.axes).fold(0, |index, (coord, axis)| index * axis.size + coord)
}
