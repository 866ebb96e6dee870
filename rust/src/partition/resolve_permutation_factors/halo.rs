//! Shifts padding from the high end of a sharded dim to the low end.
//!
//! In a manual computation each device sends the last elements of its shard, as many as there is
//! padding, to the device with the next shard, and prepends the elements that it receives. Since
//! [`Change::HaloExchanges`] it sends its whole shard, and the padding may be larger than a shard.

use super::devices::shift_pairs;
use super::local_exchange::splat;
use super::manual::local_shape;
use super::reverse::{coordinates, linear_index, stride, Plan};
use super::Resolution;
use crate::axis::AxisRef;
use crate::index::{AxisId, OpId, ShardingId, ValueId};
use crate::ir::{int_attr, InsertPoint, NewOp, OpKind, Payload, Place, Program};
use crate::mesh::Mesh;
use crate::shardy::Change;

/// Pads `input` with zeros at the high ends, to the padded shape of `plan`.
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

/// Shifts the padding that `plan` added to `input` to the low ends; returns the result with padding
/// there.
pub fn shift_padding_to_low(
    program: &mut Program,
    resolution: &mut Resolution,
    op: OpId,
    input: ValueId,
    sharding: ShardingId,
    plan: &Plan,
) -> ValueId {
    let outer = program.shardings()[sharding].clone();
    let mesh = program.meshes()[outer.mesh].mesh.clone();
    let is_manual = |axis: &AxisRef| plan.manual.contains(&axis.axis);
    let mut manual: Vec<AxisId> = plan.manual.clone();
    manual.sort_unstable();
    manual.dedup();
    let local_shape = local_shape(&plan.padded, &outer, &manual, &mesh);
    let names = program.manual_names(sharding, &manual);
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
    let inside = program.without_manual(sharding, &manual);
    let at = InsertPoint { place: Place::End(body), loc: program.loc(op) };
    for dim in 0..plan.shape.len() {
        let padding = plan.padded[dim] - plan.shape[dim];
        if padding > 0 {
            let axes: Vec<AxisRef> =
                outer.dims[dim].axes.iter().copied().filter(is_manual).collect();
            value = if program.shardy().has(Change::HaloExchanges) {
                let mut shift = Shift { program, resolution, mesh: &mesh, axes: &axes, inside, at };
                shift.far(value, (dim, padding))
            } else {
                let pairs = pairs(&mesh, &manual, &axes);
                shift(program, resolution, value, (dim, padding), &pairs, inside, at)
            };
        }
    }
    program.build(NewOp::of_kind(OpKind::SdyReturn, &[value], &[]), at);
    program.result(computation, 0)
}

/// The source-target pairs that send each shard along `axes` to the device with the next one, as
/// device ids in a mesh of only the `manual` axes.
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

/// A shift by any number of elements.
struct Shift<'a> {
    program: &'a mut Program,
    resolution: &'a mut Resolution,
    mesh: &'a Mesh,
    /// The axes of the dim.
    axes: &'a [AxisRef],
    inside: ShardingId,
    at: InsertPoint,
}

impl Shift<'_> {
    /// Shifts the local `value` by `padding` along `dim`, by any number of shards.
    fn far(&mut self, value: ValueId, (dim, padding): (usize, i64)) -> ValueId {
        let ty = self.program.type_of(value);
        let shape = self.program.types()[ty].static_shape().unwrap_or_default();
        let (hops, rest) = (padding / shape[dim].max(1), padding % shape[dim].max(1));
        let near = self.moved(value, hops);
        let far = self.moved(value, hops + 1);
        let cut = shape[dim] - rest;
        let (none, mut starts, mut limits) =
            (vec![0; shape.len()], vec![0; shape.len()], shape.clone());
        starts[dim] = cut;
        limits[dim] = cut;
        let last = self.program.build_slice(far, &starts, &shape, self.inside, self.at);
        let first = self.program.build_slice(near, &none, &limits, self.inside, self.at);
        let whole = NewOp::of_kind(OpKind::Concatenate, &[last, first], &[ty])
            .sharding(self.inside)
            .attr("dimension", int_attr(dim as i64));
        self.program.build_value(whole, self.at)
    }
    /// `value` of the device whose shard is `hops` to the left.
    fn moved(&mut self, value: ValueId, hops: i64) -> ValueId {
        if hops == 0 {
            return value;
        }
        let pairs = shift_pairs(self.mesh, self.axes, hops);
        if pairs.is_empty() {
            let ty = self.program.type_of(value);
            let zero = self.program.build_zero(ty, self.at);
            return self.program.build_value(splat(zero, ty).sharding(self.inside), self.at);
        }
        self.resolution.permute(self.program, value, &pairs, self.inside, self.at)
    }
}

/// Shifts the local `value` by `padding` along `dim`, by at most one shard.
fn shift(
    program: &mut Program,
    resolution: &mut Resolution,
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
    let received = resolution.permute(program, halo, pairs, sharding, at);
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
