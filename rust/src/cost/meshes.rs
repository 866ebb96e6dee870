//! Operands that have to be resharded because an op has tensors over different meshes.
//!
//! Shardy reshards within a mesh, and between meshes that only differ in the order of devices. It does not
//! reshard an operand over other axes than the op's result; XLA has to.

use crate::index::{MeshId, OpId, ValueId};
use crate::ir::{OpTraits, Program};
use crate::layout::Layout;
use crate::mesh::Mesh;
use crate::sharding::TensorSharding;

/// Whether `program` has more than one mesh, so that anything can be over different ones.
pub fn has_several(program: &Program) -> bool {
    program.meshes().ids().nth(1).is_some()
}

/// The operands of `op` that have to be resharded to another mesh, with a value over that mesh.
pub fn moved_operands(program: &Program, op: OpId) -> Vec<(ValueId, ValueId)> {
    if program.has_traits(op, OpTraits::TERMINATOR) || program.edge_spec(op).is_some() {
        return Vec::new();
    }
    let operands: Vec<ValueId> = program.operands(op).collect();
    let values = program.op_results(op).chain(operands.iter().copied());
    let Some(target) = values.into_iter().find(|&value| mesh_of(program, value).is_some()) else {
        return Vec::new();
    };
    let mut moved: Vec<(ValueId, ValueId)> = Vec::new();
    for operand in operands {
        let pair = (operand, target);
        if operand != target && !moved.contains(&pair) && has_to_move(program, operand, target) {
            moved.push(pair);
        }
    }
    moved
}

/// The mesh that `value` is over, unless that has no devices.
fn mesh_of(program: &Program, value: ValueId) -> Option<MeshId> {
    let mesh = program.visible_sharding(value)?.mesh.get()?;
    (program.mesh(mesh).device_count() > 0).then_some(mesh)
}

fn has_to_move(program: &Program, operand: ValueId, target: ValueId) -> bool {
    let (Some(from), Some(to)) = (mesh_of(program, operand), mesh_of(program, target)) else {
        return false;
    };
    let (from_mesh, to_mesh) = (program.mesh(from), program.mesh(to));
    if from == to || from_mesh == to_mesh {
        return false;
    }
    let (Some(before), Some(after)) =
        (program.visible_sharding(operand), program.visible_sharding(target))
    else {
        return false;
    };
    !holds_all(&before, from_mesh, to_mesh)
        && !is_held_alike(program, (operand, &before, from_mesh), (target, &after, to_mesh))
}

/// Whether every device of `to` holds the whole of a tensor that has `sharding` over `from`.
fn holds_all(sharding: &TensorSharding, from: &Mesh, to: &Mesh) -> bool {
    if sharding.dims.iter().any(|dim| !dim.axes.is_empty()) {
        return false;
    }
    match (from.is_maximal(), to.is_maximal()) {
        (true, _) => from.device_ids == to.device_ids,
        (false, true) => to.device_ids.iter().all(|id| (0..from.device_count()).contains(id)),
        (false, false) => from.device_count() >= to.device_count(),
    }
}

type Held<'a> = (ValueId, &'a TensorSharding, &'a Mesh);

/// Whether both tensors have the same shape, and each device the same shard of both.
fn is_held_alike(program: &Program, before: Held<'_>, after: Held<'_>) -> bool {
    let shape = |value: ValueId| program.types()[program.type_of(value)].static_shape();
    let (Some(shape), Some(other)) = (shape(before.0), shape(after.0)) else { return false };
    shape == other
        && Layout::new(before.1, before.2)
            .is_equivalent(&Layout::new(after.1, after.2), Some(&shape))
}

/// Whether every device holds the same shard of `operand` and of `result`, which have the same shape.
pub fn are_held_alike(program: &Program, operand: ValueId, result: ValueId) -> bool {
    let (Some(before), Some(after)) =
        (program.visible_sharding(operand), program.visible_sharding(result))
    else {
        return false;
    };
    let meshes = (program.mesh(before.mesh), program.mesh(after.mesh));
    is_held_alike(program, (operand, &before, meshes.0), (result, &after, meshes.1))
}
