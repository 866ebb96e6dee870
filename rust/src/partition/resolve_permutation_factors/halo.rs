//! Shifting padding from the high end of a sharded dim to the low end.
//!
//! In a manual computation each device sends the last elements of its shard, as many as there is padding, to the
//! device with the next shard, and prepends the elements that it receives.

use super::reverse::{coordinates, linear_index, stride, Plan};
use crate::axis::{total_size, AxisRef};
use crate::index::{AxisId, OpId, ShardingId, StrId, ValueId};
use crate::ir::{int_attr, InsertPoint, NewOp, OpKind, Payload, Place, Program};
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
    let at = program.before(op);
    let zero = program.build_zero(program.type_of(input), at);
    program.build_pad(input, zero, &plan.padded, sharding, at)
}

/// Shifts the padding that `plan` added to `input` to the low ends; the result is padded there.
pub fn shift_padding_to_low(
    program: &mut Program,
    op: OpId,
    input: ValueId,
    sharding: ShardingId,
    plan: &Plan,
) -> ValueId {
    let outer = program.shardings()[sharding].clone();
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
    let names: Vec<StrId> = names.iter().map(|name| program.intern(name)).collect();
    let ty = program.type_of(input);
    let computation = NewOp::of_kind(OpKind::ManualComputation, &[input], &[ty])
        .sharding(sharding)
        .payload(Payload::ManualComputation(names))
        .regions(1);
    let computation = program.build(computation, program.before(op));
    let local_type = program.tensor_type(&local_shape, ty);
    let body = program.add_block(program.region(computation, 0), &[local_type]);
    let mut value = program.block_arg(body, 0);
    program.set_sharding(value, sharding);
    let inside = inside(program, &outer, &manual);
    let at = InsertPoint { place: Place::End(body), loc: program.loc(op) };
    for dim in 0..plan.shape.len() {
        let padding = plan.padded[dim] - plan.shape[dim];
        if padding > 0 {
            let axes: Vec<AxisRef> =
                outer.dims[dim].axes.iter().copied().filter(is_manual).collect();
            let pairs = pairs(program.mesh(outer.mesh), &manual, &axes);
            value = shift(program, value, (dim, padding), &pairs, inside, at);
        }
    }
    program.build(NewOp::of_kind(OpKind::SdyReturn, &[value], &[]), at);
    program.result(computation, 0)
}

/// `outer` without the manual axes, wherever they stand in a dim.
fn inside(program: &mut Program, outer: &TensorSharding, manual: &[AxisId]) -> ShardingId {
    let mut inside = outer.clone();
    for dim in &mut inside.dims {
        dim.axes.retain(|axis| !manual.contains(&axis.axis));
    }
    program.intern_sharding(inside)
}

/// The source-target pairs that send each shard along `axes` to the device with the next one, as devices of the
/// mesh of the `manual` axes alone.
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
    at: InsertPoint,
) -> ValueId {
    let ty = program.type_of(value);
    let shape = program.types()[ty].static_shape().unwrap_or_default();
    let kept = shape[dim] - padding;
    let starts = vec![0; shape.len()];
    let mut halo = value;
    if kept > 0 {
        let mut halo_starts = starts.clone();
        halo_starts[dim] = kept;
        halo = program.build_slice(value, &halo_starts, &shape, sharding, at);
    }
    let list: Vec<String> = pairs.iter().map(|[from, to]| format!("[{from}, {to}]")).collect();
    let elements = if list.is_empty() { String::new() } else { format!("[{}]", list.join(", ")) };
    let pairs = format!("dense<{elements}> : tensor<{}x2xi64>", pairs.len());
    let permute = NewOp::new("stablehlo.collective_permute", &[halo], &[program.type_of(halo)])
        .sharding(sharding)
        .attr("source_target_pairs", pairs);
    let received = program.build_value(permute, at);
    if kept == 0 {
        return received;
    }
    let mut limits = shape;
    limits[dim] = kept;
    let rest = program.build_slice(value, &starts, &limits, sharding, at);
    let whole = NewOp::of_kind(OpKind::Concatenate, &[received, rest], &[ty])
        .sharding(sharding)
        .attr("dimension", int_attr(dim as i64));
    program.build_value(whole, at)
}
