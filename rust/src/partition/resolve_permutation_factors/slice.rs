//! Halo exchange for slices of sharded dims.

use super::exchange::{ceil, Plan, Shifted};
use super::manual::{self, Body, Halo};
use super::{is_small, Operand, Resolution};
use crate::axis::total_size;
use crate::index::{OpId, ValueId};
use crate::ir::{int_array, NewOp, OpKind, Program};
use crate::mlir::op_attribute;

/// The attributes of a slice.
struct Slice {
    starts: Vec<i64>,
    limits: Vec<i64>,
    strides: Vec<i64>,
}

/// Rewrites the slice `op`; returns false if it needs elements of shards that are too far away, or
/// if it has strides along a sharded dim.
pub fn resolve(program: &mut Program, op: OpId, resolution: &mut Resolution) -> bool {
    let Some(operand) = Operand::of(program, op) else { return true };
    let list = |name| op_attribute(program, op, name)?.as_ints();
    let lists = (list("start_indices"), list("limit_indices"), list("strides"));
    let (Some(starts), Some(limits), Some(strides)) = lists else { return false };
    let slice = Slice { starts, limits, strides };
    let Some(to) = program.value_type(program.result(op, 0)).static_shape() else { return false };
    let mesh = program.meshes()[operand.mesh].mesh.clone();
    if !is_small(&mesh, &[&operand.shape, &to]) {
        return false;
    }
    let sharding = program.shardings()[operand.sharding].clone();
    let is_whole: Vec<bool> =
        sharding.dims.iter().map(|dim| total_size(&dim.axes, &mesh) <= 1).collect();
    let plan = Plan::of(&operand.shape, &sharding, &mesh, |dim, shards, shard| {
        let (result, size) = (ceil(to[dim], shards), operand.shape[dim]);
        let low = -slice.starts[dim];
        Shifted { dim, shards, shard, result, low, dilation: 1, size }.exchange()
    });
    let is_dense = (0..to.len()).all(|dim| is_whole[dim] || slice.strides[dim] == 1);
    if is_dense && !plan.communicates() {
        return true;
    }
    if !is_dense || !plan.is_near() {
        return false;
    }
    let input = operand.padded(program, op, &plan.padded, None);
    let padding = program.build_zero(program.type_of(input), program.before(op));
    let low: Vec<i64> = slice.starts.iter().map(|start| -start).collect();
    let ones = vec![1; low.len()];
    let shardings = [operand.sharding; 2];
    let halo = Halo { op, input, shardings, padding, plan: &plan, low: &low, dilations: &ones };
    let result = manual::exchange(program, resolution, halo, |program, body, value, _| {
        slice_whole_dims(program, body, value, (&slice, &is_whole))
    });
    operand.replace(program, op, result, &to);
    true
}

/// Slices the dims that are not sharded.
fn slice_whole_dims(
    program: &mut Program,
    body: &Body,
    value: ValueId,
    (slice, is_whole): (&Slice, &[bool]),
) -> ValueId {
    let shape = program.value_type(value).static_shape().unwrap_or_default();
    let mut starts = vec![0; shape.len()];
    let (mut limits, mut strides) = (shape.clone(), vec![1; shape.len()]);
    for dim in (0..shape.len()).filter(|&dim| is_whole[dim]) {
        starts[dim] = slice.starts[dim];
        limits[dim] = slice.limits[dim];
        strides[dim] = slice.strides[dim].max(1);
    }
    if starts.iter().all(|start| *start == 0)
        && limits == shape
        && strides.iter().all(|stride| *stride == 1)
    {
        return value;
    }
    let size = |dim: usize| ceil(limits[dim] - starts[dim], strides[dim]);
    let sizes: Vec<i64> = (0..shape.len()).map(size).collect();
    let ty = program.tensor_type(&sizes, program.type_of(value));
    let slice = NewOp::of_kind(OpKind::Slice, &[value], &[ty])
        .sharding(body.sharding)
        .attr("limit_indices", int_array(&limits))
        .attr("start_indices", int_array(&starts))
        .attr("strides", int_array(&strides));
    program.build_value(slice, body.at)
}
