//! Shifting padding from the high end of a sharded dim to the low end.
//!
//! In a manual computation each shard hands its last elements, as many as there is padding, to the next
//! shard, and puts what it gets in front of the others.

use super::reverse::{coordinates, linear_index, stride, Plan};
use crate::axis::{total_size, AxisRef};
use crate::index::{AxisId, OpId, ShardingId, StrId, ValueId};
use crate::ir::{Payload, Place, Program};
use crate::mesh::Mesh;
use crate::sharding::TensorSharding;

/// Pads `input` with zeros at the high ends, up to the padded shape of `plan`.
pub fn pad_at_high_end(
    program: &mut Program,
    op: OpId,
    input: ValueId,
    sharding: ShardingId,
    plan: &Plan,
) -> ValueId {
    let at = (Place::Before(op), op);
    let zero = program.create_zero(program.values[input].ty, at);
    program.create_pad(input, zero, &plan.padded, sharding, at)
}

/// Shifts the padding that `plan` added to `input` to the low ends; the result is padded there.
pub fn shift_padding_to_low(
    program: &mut Program,
    op: OpId,
    input: ValueId,
    sharding: ShardingId,
    plan: &Plan,
) -> ValueId {
    let outer = program.shardings[sharding].clone();
    let mesh = program.mesh(outer.mesh);
    let is_manual = |axis: &AxisRef| plan.manual.contains(&axis.axis);
    let mut local_shape = plan.padded.clone();
    for (size, dim) in local_shape.iter_mut().zip(&outer.dims) {
        let manual: Vec<AxisRef> = dim.axes.iter().copied().filter(is_manual).collect();
        *size /= total_size(&manual, mesh).max(1);
    }
    let mut manual: Vec<AxisId> = plan.manual.clone();
    manual.sort_unstable();
    manual.dedup();
    let names: Vec<String> = manual.iter().map(|&axis| mesh.axis_name(axis).to_owned()).collect();
    let names: Vec<StrId> = names.iter().map(|name| program.strings.intern(name)).collect();
    let ty = program.values[input].ty;
    let computation = program.create_op("sdy.manual_computation", &[input], &[ty]);
    program.op_texts[computation].loc = program.op_texts[op].loc;
    program.set_payload(computation, Payload::ManualComputation(names));
    program.add_regions(computation, 1);
    let body = program.add_block(program.ops[computation].first_region);
    let local_type = program.tensor_type(&local_shape, ty);
    program.add_block_args(body, [(local_type, u32::MAX)]);
    program.insert_op(computation, Place::Before(op));
    let result = program.result(computation, 0);
    program.set_sharding(result, sharding);
    let args: Vec<ValueId> = program.block_args(body).collect();
    let mut value = args[0];
    program.set_sharding(value, sharding);
    let inside = inside(program, &outer, &manual);
    let at = (Place::End(body), op);
    for dim in 0..plan.shape.len() {
        let padding = plan.padded[dim] - plan.shape[dim];
        if padding > 0 {
            let axes: Vec<AxisRef> =
                outer.dims[dim].axes.iter().copied().filter(is_manual).collect();
            let pairs = pairs(program.mesh(outer.mesh), &manual, &axes);
            value = shift(program, value, (dim, padding), &pairs, inside, at);
        }
    }
    let end = program.create_op("sdy.return", &[value], &[]);
    program.op_texts[end].loc = program.op_texts[op].loc;
    program.insert_op(end, Place::End(body));
    result
}

/// `outer` without the manual axes, wherever they stand in a dim.
fn inside(program: &mut Program, outer: &TensorSharding, manual: &[AxisId]) -> ShardingId {
    let mut inside = outer.clone();
    for dim in &mut inside.dims {
        dim.axes.retain(|axis| !manual.contains(&axis.axis));
    }
    program.shardings.intern(inside)
}

/// Source and target of each hand-over to the next shard along `axes`, as devices of the mesh of the
/// `manual` axes alone.
fn pairs(mesh: &Mesh, manual: &[AxisId], axes: &[AxisRef]) -> Vec<[i64; 2]> {
    let kept = manual.iter().map(|&axis| mesh.axes[crate::index::Id::index(axis)].clone());
    let own = Mesh::new(kept.collect(), Vec::new());
    let place = |axis: AxisRef| manual.iter().position(|&other| other == axis.axis);
    let mut pairs = Vec::new();
    for device in 0..own.num_devices() {
        let coords = coordinates(device, &own);
        let mut next = coords.clone();
        let is_last = axes.iter().rev().all(|&axis| {
            let Some(at) = place(axis) else { return true };
            let (size, stride) = (axis.size(mesh), stride(axis, mesh));
            let is_last = coords[at] / stride % size == size - 1;
            next[at] += if is_last { -(size - 1) * stride } else { stride };
            is_last
        });
        if !is_last {
            pairs.push([device, linear_index(&next, &own)]);
        }
    }
    pairs
}

/// Shifts the local `value` by `padding` along `dim`.
fn shift(
    program: &mut Program,
    value: ValueId,
    (dim, padding): (usize, i64),
    pairs: &[[i64; 2]],
    sharding: ShardingId,
    at: (Place, OpId),
) -> ValueId {
    let ty = program.values[value].ty;
    let shape = program.types[ty].static_shape().unwrap_or_default();
    let kept = shape[dim] - padding;
    let starts = vec![0; shape.len()];
    let mut halo = value;
    if kept > 0 {
        let mut halo_starts = starts.clone();
        halo_starts[dim] = kept;
        halo = program.create_slice(value, &halo_starts, &shape, sharding, at);
    }
    let list: Vec<String> = pairs.iter().map(|[from, to]| format!("[{from}, {to}]")).collect();
    let elements = if list.is_empty() { String::new() } else { format!("[{}]", list.join(", ")) };
    let pairs = format!("dense<{elements}> : tensor<{}x2xi64>", pairs.len());
    let received = program.create_stablehlo_op(
        "stablehlo.collective_permute",
        &[halo],
        (program.values[halo].ty, sharding),
        &[("source_target_pairs", pairs)],
        at,
    );
    if kept == 0 {
        return received;
    }
    let mut limits = shape;
    limits[dim] = kept;
    let rest = program.create_slice(value, &starts, &limits, sharding, at);
    program.create_stablehlo_op(
        "stablehlo.concatenate",
        &[received, rest],
        (ty, sharding),
        &[("dimension", format!("{dim} : i64"))],
        at,
    )
}
