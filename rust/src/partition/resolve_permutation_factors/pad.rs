//! Halo exchange for pads of sharded dims.

use super::exchange::{ceil, Plan, Shifted};
use super::manual::{self, Body, Halo};
use super::{is_small, Operand, Resolution};
use crate::axis::total_size;
use crate::index::{OpId, ValueId};
use crate::ir::{int_array, NewOp, Program};
use crate::mesh::Mesh;
use crate::mlir::op_attribute;
use crate::sharding::TensorSharding;

/// The attributes of a pad.
pub struct Padding {
    low: Vec<i64>,
    high: Vec<i64>,
    interior: Vec<i64>,
}

impl Padding {
    /// The attributes of the pad `op`.
    pub fn of(program: &Program, op: OpId) -> Option<Self> {
        let list = |name| op_attribute(program, op, name)?.as_ints();
        let (low, high) = (list("edge_padding_low")?, list("edge_padding_high")?);
        Some(Self { low, high, interior: list("interior_padding")? })
    }
    /// Whether each shard of the result along `dim` has only elements of the operand's shard with
    /// the same index.
    pub fn is_local(&self, dim: usize, [from, to]: [&[i64]; 2], shards: i64) -> bool {
        if shards <= 1 {
            return true;
        }
        if self.interior[dim] != 0 {
            return false;
        }
        let (shard, result) = (ceil(from[dim], shards), ceil(to[dim], shards));
        (0..shards).all(|target| {
            let start = i128::from(target) * i128::from(result) - i128::from(self.low[dim]);
            let last = (start + i128::from(result) - 1).min(i128::from(from[dim]) - 1);
            let (first, shard, target) = (start.max(0), i128::from(shard), i128::from(target));
            first > last || (first / shard == target && last / shard == target)
        })
    }
    fn plan(&self, [from, to]: [&[i64]; 2], sharding: &TensorSharding, mesh: &Mesh) -> Plan {
        Plan::of(from, sharding, mesh, |dim, shards, shard| {
            let (result, low) = (ceil(to[dim], shards), self.low[dim]);
            let dilation = self.interior[dim] + 1;
            Shifted { dim, shards, shard, result, low, dilation, size: from[dim] }.exchange()
        })
    }
}

/// Rewrites the pad `op`; returns false if it needs elements of shards that are too far away.
pub fn resolve(program: &mut Program, op: OpId, resolution: &mut Resolution) -> bool {
    let Some(operand) = Operand::of(program, op) else { return true };
    let shape = program.value_type(program.result(op, 0)).static_shape();
    let (Some(to), Some(padding)) = (shape, Padding::of(program, op)) else { return false };
    let numbers: [&[i64]; 5] =
        [&operand.shape, &to, &padding.low, &padding.high, &padding.interior];
    if !is_small(program.mesh(operand.mesh), &numbers) {
        return false;
    }
    let sharding = program.shardings()[operand.sharding].clone();
    let plan = padding.plan([&operand.shape, &to], &sharding, program.mesh(operand.mesh));
    if !plan.communicates() {
        return true;
    }
    if !plan.is_near() {
        return false;
    }
    let fill = program.operand(op, 1);
    let input = operand.padded(program, op, &plan.padded, Some(fill));
    let shardings = [operand.sharding; 2];
    let dilations: Vec<i64> = padding.interior.iter().map(|between| between + 1).collect();
    let halo = Halo {
        op,
        input,
        shardings,
        padding: fill,
        plan: &plan,
        low: &padding.low,
        dilations: &dilations,
    };
    let mesh = program.meshes()[operand.mesh].mesh.clone();
    let is_whole: Vec<bool> =
        sharding.dims.iter().map(|dim| total_size(&dim.axes, &mesh) <= 1).collect();
    let result = manual::exchange(program, resolution, halo, |program, body, value, shape| {
        pad_whole_dims(program, body, value, (&padding, &is_whole, shape))
    });
    operand.replace(program, op, result, &to);
    true
}

/// Pads the dims that are not sharded.
fn pad_whole_dims(
    program: &mut Program,
    body: &Body,
    value: ValueId,
    (padding, is_whole, shape): (&Padding, &[bool], &[i64]),
) -> ValueId {
    let own = |list: &[i64]| -> Vec<i64> {
        list.iter().zip(is_whole).map(|(&number, &own)| if own { number } else { 0 }).collect()
    };
    let (low, high, between) = (own(&padding.low), own(&padding.high), own(&padding.interior));
    if [&low, &high, &between].into_iter().flatten().all(|number| *number == 0) {
        return value;
    }
    let ty = program.tensor_type(shape, program.type_of(value));
    let pad = NewOp::new("stablehlo.pad", &[value, body.padding], &[ty])
        .sharding(body.sharding)
        .attr("edge_padding_high", int_array(&high))
        .attr("edge_padding_low", int_array(&low))
        .attr("interior_padding", int_array(&between));
    program.build_value(pad, body.at)
}
