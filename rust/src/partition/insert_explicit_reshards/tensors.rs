//! The tensors of an op, operands before results, and their mesh.

use crate::index::{MeshId, OpId, ShardingId, ValueId};
use crate::ir::{OpKind, Program};
use rustc_hash::FxHashMap;

/// The shardings of operands and results; if a propagation barrier defines an operand, that of the
/// barrier's operand.
pub(super) fn tensor_shardings(program: &mut Program, op: OpId) -> Vec<ShardingId> {
    let (num_operands, num_results) = (program.num_operands(op), program.num_results(op));
    let mut shardings = Vec::with_capacity(num_operands + num_results);
    for index in 0..num_operands + num_results {
        let value = if index < num_operands {
            behind_barriers(program, program.operand(op, index))
        } else {
            behind_barriers(program, program.result(op, index - num_operands))
        };
        shardings.push(program.sharding_of(value));
    }
    shardings
}

/// The numbers of elements of operands and results; 0 if unknown.
pub(super) fn tensor_sizes(program: &Program, op: OpId) -> Vec<i64> {
    let operands = program.operands(op);
    let size = |value| {
        let shape = program.value_type(value).static_shape();
        shape.map_or(0, |shape| shape.iter().fold(1, |n: i64, &m| n.wrapping_mul(m)))
    };
    operands.chain(program.op_results(op)).map(size).collect()
}

/// The mesh on which to shard the tensors with these shardings; `None` if they are over different
/// meshes or a single device, or if there is no mesh.
pub(super) fn op_mesh(program: &Program, shardings: &[ShardingId]) -> Option<MeshId> {
    let common = common_mesh(program, shardings)?;
    if program.mesh(common).is_maximal() {
        return None;
    }
    Some(most_common_mesh(program, shardings).unwrap_or(common))
}

/// The value that propagation barriers pass on as `value`; `value` itself if no barrier defines it.
pub fn behind_barriers(program: &Program, mut value: ValueId) -> ValueId {
    while let Some(def) = program.defining_op(value) {
        if program.kind(def) != OpKind::PropagationBarrier {
            break;
        }
        value = program.operand(def, 0);
    }
    value
}

/// The common mesh of all `shardings`, ignoring the device order, preferably one with the default
/// order; empty meshes are compatible with any mesh.
pub fn common_mesh(program: &Program, shardings: &[ShardingId]) -> Option<MeshId> {
    let mut common: Option<MeshId> = None;
    for &sharding in shardings {
        let Some(mesh) = program.mesh_of(sharding).get() else { continue };
        let is_empty = |mesh: MeshId| {
            let mesh = program.mesh(mesh);
            mesh.axes.is_empty() && mesh.device_ids.is_empty()
        };
        match common {
            Some(known) if known == mesh => {}
            Some(known) if !is_empty(known) => {
                if is_empty(mesh) {
                    continue;
                }
                let (known, other) = (program.mesh(known), program.mesh(mesh));
                if known.axes != other.axes || known.is_maximal() != other.is_maximal() {
                    return None;
                }
                if other.device_ids.is_empty() {
                    common = Some(mesh);
                }
            }
            _ => common = Some(mesh),
        }
    }
    common
}

/// The most common mesh of the `shardings` with axes; the first one if there are several.
fn most_common_mesh(program: &Program, shardings: &[ShardingId]) -> Option<MeshId> {
    let mut counts: FxHashMap<MeshId, usize> = FxHashMap::default();
    let mut best = (0, None);
    for &sharding in shardings {
        if !program.is_fully_replicated(sharding) {
            let mesh = program.mesh_of(sharding);
            let count = counts.entry(mesh).or_default();
            *count += 1;
            if *count > best.0 {
                best = (*count, Some(mesh));
            }
        }
    }
    best.1
}

/// The sharding of `value`, or a closed one without axes.
pub fn sharding_or_closed(program: &mut Program, value: ValueId, mesh: MeshId) -> ShardingId {
    let ty = program.type_of(value);
    match program.sharding_of(value).get() {
        Some(sharding) => sharding,
        None => program.replicated(mesh, ty, true),
    }
}
