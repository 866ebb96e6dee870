//! The manual computation in which devices exchange the elements that their shards of a result
//! need.
//!
//! Along each dim a device receives as many shards to the left and to the right of its own as any
//! device needs, concatenates them, pads them on both sides, and slices its shard of the result out
//! of them, at an offset that depends on the device.

use super::exchange::{round_up, Plan};
use super::local_exchange::Along;
use super::Resolution;
use crate::axis::{total_size, AxisRef};
use crate::index::{AxisId, OpId, ShardingId, StrId, ValueId};
use crate::ir::{InsertPoint, NewOp, OpKind, Payload, Place, Program};
use crate::mesh::Mesh;
use crate::sharding::{DimSharding, TensorSharding};

/// The parameters of the manual computation.
#[derive(Clone, Copy)]
pub struct Halo<'a> {
    /// The op that it replaces.
    pub op: OpId,
    /// The operand, padded to multiples of its shards.
    pub input: ValueId,
    /// The shardings of the operand and the result.
    pub shardings: [ShardingId; 2],
    /// The value where there is no element of the operand.
    pub padding: ValueId,
    /// The exchanges.
    pub plan: &'a Plan,
    /// For each dim the number of elements inserted before the operand.
    pub low: &'a [i64],
    /// For each dim the distance in the result between neighbouring elements of the operand.
    pub dilations: &'a [i64],
}

/// The body of the manual computation.
pub struct Body {
    /// The value where there is no element of the operand.
    pub padding: ValueId,
    /// The sharding of values of the operand's shape.
    pub sharding: ShardingId,
    /// The insertion point of new ops.
    pub at: InsertPoint,
}

impl Program {
    /// `sharding` without the axes `manual` and their sub-axes.
    pub(super) fn without_manual(&mut self, sharding: ShardingId, manual: &[AxisId]) -> ShardingId {
        let mut inside = self.shardings()[sharding].clone();
        for dim in &mut inside.dims {
            dim.axes.retain(|axis| !manual.contains(&axis.axis));
        }
        self.intern_sharding(inside)
    }
    /// The names of the axes `manual` of the mesh of `sharding`.
    pub(super) fn manual_names(&mut self, sharding: ShardingId, manual: &[AxisId]) -> Vec<StrId> {
        let mesh = self.mesh(self.shardings()[sharding].mesh);
        let name = |&axis: &AxisId| mesh.axis_name(axis).to_owned();
        let names: Vec<String> = manual.iter().map(name).collect();
        names.iter().map(|name| self.intern(name)).collect()
    }
}

/// The shape of a tensor of `shape`, sharded by `sharding`, inside a manual computation over the
/// axes `manual`.
pub fn local_shape(
    shape: &[i64],
    sharding: &TensorSharding,
    manual: &[AxisId],
    mesh: &Mesh,
) -> Vec<i64> {
    let shards = |dim: &DimSharding| {
        let is_manual = |axis: &AxisRef| manual.contains(&axis.axis);
        let own: Vec<AxisRef> = dim.axes.iter().copied().filter(is_manual).collect();
        total_size(&own, mesh).max(1)
    };
    shape.iter().zip(&sharding.dims).map(|(size, dim)| size / shards(dim)).collect()
}

/// Makes the manual computation, whose result has the shape of the op's result rounded up to
/// multiples of its shards; `finish` is called with the exchanged value and the result's shape
/// inside.
pub fn exchange(
    program: &mut Program,
    resolution: &mut Resolution,
    halo: Halo<'_>,
    finish: impl FnOnce(&mut Program, &Body, ValueId, &[i64]) -> ValueId,
) -> ValueId {
    let manual = &halo.plan.manual[..];
    let [sharding, result_sharding] = halo.shardings.map(|id| program.shardings()[id].clone());
    let mesh = program.meshes()[sharding.mesh].mesh.clone();
    let old = program.result(halo.op, 0);
    let shape = program.value_type(old).static_shape().unwrap_or_default();
    let round = |(&size, dim): (&i64, &DimSharding)| {
        let shards = total_size(&dim.axes, &mesh);
        round_up(size, shards.max(1))
    };
    let padded: Vec<i64> = shape.iter().zip(&result_sharding.dims).map(round).collect();
    let ty = program.tensor_type(&padded, program.type_of(old));
    let names = program.manual_names(halo.shardings[0], manual);
    let computation = NewOp::of_kind(OpKind::ManualComputation, &[halo.input, halo.padding], &[ty])
        .sharding(halo.shardings[1])
        .payload(Payload::ManualComputation(names))
        .regions(1);
    let computation = program.build(computation, program.before(halo.op));
    let own = local_shape(&halo.plan.padded, &sharding, manual, &mesh);
    let own = program.tensor_type(&own, program.type_of(halo.input));
    let scalar = program.type_of(halo.padding);
    let block = program.add_block(program.region(computation, 0), &[own, scalar]);
    let [mut value, padding] = [0, 1].map(|index| program.block_arg(block, index));
    program.set_sharding(value, halo.shardings[0]);
    let replicated = TensorSharding::fully_replicated(sharding.mesh, 0, false);
    let replicated = program.intern_sharding(replicated);
    program.set_sharding(padding, replicated);
    let at = InsertPoint { place: Place::End(block), loc: program.loc(halo.op) };
    let inside = program.without_manual(halo.shardings[0], manual);
    let body = Body { padding, sharding: inside, at };
    for dim in halo.plan.dims.iter().filter(|dim| dim.communicates) {
        let axes = match &dim.split {
            Some((axes, _)) => axes,
            None => &sharding.dims[dim.dim].axes,
        };
        let mut along = Along { program, resolution, body: &body, mesh: &mesh, dim, axes };
        value = along.exchange(value, halo.low[dim.dim], halo.dilations[dim.dim]);
    }
    let result = local_shape(&padded, &result_sharding, manual, &mesh);
    value = finish(program, &body, value, &result);
    program.build(NewOp::of_kind(OpKind::SdyReturn, &[value], &[]), at);
    program.result(computation, 0)
}
