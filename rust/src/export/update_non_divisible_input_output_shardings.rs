//! `sdy-update-non-divisible-input-output-shardings`: trims the sharding of each dim of inputs and
//! outputs to the largest prefix that divides the dim evenly.
//!
//! Inputs and outputs are arguments and results of functions, manual computations and `mpmd`
//! fragments, and results of calls and of transfers between meshes. A dim of size 4 over `x` of
//! size 8 keeps `"x":(1)4`; one of size 6 over `x` of size 4 keeps `"x":(1)2`; a dim that is
//! trimmed loses its priority.

use crate::axis::{total_size, AxisRef};
use crate::context::Context;
use crate::error::Result;
use crate::index::{ShardingId, TypeId, ValueId};
use crate::ir::{OpKind, Port, Program};
use crate::mesh::Mesh;
use crate::projection::gcd;
use crate::sharding::{DimSharding, ReductionOp, TensorSharding};
use rustc_hash::FxHashMap;

/// The trimmed shardings, by sharding and type.
type Trimmed = FxHashMap<(ShardingId, TypeId), ShardingId>;

/// Runs the pass on the module.
pub fn run(program: &mut Program, _context: &mut Context) -> Result<()> {
    let mut trimmed = Trimmed::default();
    for func in program.functions_in_order() {
        if let Some(body) = program.func_body(func).get() {
            for arg in program.block_args(body) {
                trim_value(program, &mut trimmed, arg);
            }
        }
        for index in 0..program.func_results(func).len() {
            let Port { ty, sharding, .. } = program.func_results(func)[index];
            let new = evenly_sharded(program, &mut trimmed, sharding, ty);
            program.set_func_result_sharding(func, index, new);
        }
    }
    let kinds = [OpKind::Call, OpKind::ManualComputation, OpKind::Fragment, OpKind::Transfer];
    for op in program.ops_of(&kinds) {
        for result in program.op_results(op) {
            trim_value(program, &mut trimmed, result);
        }
        if matches!(program.kind(op), OpKind::ManualComputation | OpKind::Fragment) {
            let region = program.op_regions(op).next();
            let body = region.and_then(|region| program.region_entry(region).get());
            for arg in body.map(|body| program.block_args(body)).into_iter().flatten() {
                trim_value(program, &mut trimmed, arg);
            }
        }
    }
    Ok(())
}

/// Trims the sharding of `value` itself, not that of a data-flow edge on it. In a manual
/// computation the shape of an argument is local with respect to the manual axes, so only the free
/// axes have to divide it.
fn trim_value(program: &mut Program, trimmed: &mut Trimmed, value: ValueId) {
    let ty = program.type_of(value);
    let manual = program.manual_computation_of_arg(value);
    let old = program.sharding(value);
    let old = manual.map_or(old, |op| program.inside_manual(op, old));
    let new = evenly_sharded(program, trimmed, old, ty);
    let is_summed = |id: ShardingId| program.shardings()[id].reduction_op == ReductionOp::Sum;
    // Setting an argument's sharding turns its reduction into a sum.
    let loses_reduction = manual.is_some() && old.get().is_some_and(|id| !is_summed(id));
    if new != old || loses_reduction {
        match manual {
            Some(op) => program.set_manual_arg_sharding(op, value, new),
            None => _ = program.set_sharding(value, new),
        }
    }
}

/// `sharding` trimmed so that it shards a tensor of type `ty` evenly.
fn evenly_sharded(
    program: &mut Program,
    trimmed: &mut Trimmed,
    sharding: ShardingId,
    ty: TypeId,
) -> ShardingId {
    if sharding.is_none() || !program.types()[ty].is_static_tensor() {
        return sharding;
    }
    if let Some(&known) = trimmed.get(&(sharding, ty)) {
        return known;
    }
    let old = &program.shardings()[sharding];
    let shape = program.types()[ty].static_shape().unwrap_or_default();
    let even = even(old, &shape, program.mesh(old.mesh));
    let even = program.intern_sharding(even);
    trimmed.insert((sharding, ty), even);
    even
}

/// `sharding` trimmed so that it shards a tensor of `shape` evenly.
pub fn even(sharding: &TensorSharding, shape: &[i64], mesh: &Mesh) -> TensorSharding {
    let mut even = sharding.clone();
    for (dim, &size) in even.dims.iter_mut().zip(shape) {
        let count = total_size(&dim.axes, mesh);
        if count == 0 || size % count == 0 {
            continue;
        }
        *dim = DimSharding {
            axes: even_prefix(&dim.axes, size, mesh),
            is_closed: dim.is_closed,
            priority: None,
        };
    }
    even
}

/// The largest prefix of `axes` that divides `size`; it may end with a sub-axis.
fn even_prefix(axes: &[AxisRef], mut size: i64, mesh: &Mesh) -> Vec<AxisRef> {
    let mut prefix = Vec::new();
    for &axis in axes {
        let common = gcd(axis.size(mesh), size);
        if common == 1 {
            break;
        }
        if common < axis.size(mesh) {
            prefix.push(AxisRef::sub(axis.axis, axis.pre_size(), common));
            break;
        }
        prefix.push(axis);
        size /= common;
    }
    prefix
}
