//! `reduce-scatter-decomposer`: turns reduce-scatters that a TPU has no kernel for into an all-reduce and a slice.
//!
//! The compiler for TPUs has a kernel for an all-reduce of which each device keeps a slice: along any dim of a matrix; along the
//! first dim of other arrays, or along the last if shards fill the lanes of tiles; and if the array is not small. A transpose of the
//! shard decides which dim is the first: it is moved before the reduction. Dims of size one do not count.
//!
//! Source: XLA's `ReduceScatterDecomposer`; which ones stay reduce-scatters, programs compiled for TPU v5e show.

use super::super::devices::Devices;
use super::super::emit::Emitter;
use super::super::reducer::Reducer;
use super::{dim, matrix, participants, Names};
use crate::context::Context;
use crate::error::Result;
use crate::index::{BlockId, OpId, ValueId};
use crate::ir::{element_bits, Program, Type};
use crate::layout::bytes_of;
use crate::mlir::op_attribute;
use rustc_hash::FxHashMap;

/// The most bytes of an array that is not scattered.
const SMALL: u128 = 16 << 10;

/// The lanes of a tile.
const LANES: i64 = 128;

/// A reduce-scatter that is an all-reduce and a slice.
struct Found {
    reducer: Reducer,
    dim: usize,
    /// For each device the first index that it keeps.
    starts: Vec<i64>,
}

/// Runs the pass on the module.
pub fn run(program: &mut Program, context: &mut Context<'_>) -> Result<()> {
    context.progress("reduce-scatter-decomposer", 0, 1)?;
    let ops = Names::new(program, &["stablehlo.reduce_scatter"]).ops(program);
    let found = ops.into_iter().filter_map(|op| Some((op, found(program, op)?)));
    let found: Vec<(OpId, Found)> = found.collect();
    let mut emit = Emitter::new(program, Devices::default());
    // The device's id, by block.
    let mut devices: FxHashMap<BlockId, ValueId> = FxHashMap::default();
    for (op, found) in found {
        replace(&mut emit, op, &found, &mut devices);
    }
    Ok(())
}

fn found(program: &Program, op: OpId) -> Option<Found> {
    if program.num_results(op) != 1 {
        return None;
    }
    let [before, after] = [program.operand(op, 0), program.result(op, 0)];
    let dim = dim(program, op, "scatter_dimension")?;
    let shape = program.value_type(before).static_shape()?;
    let Type::RankedTensor { element, .. } = program.value_type(before) else { return None };
    let bytes = bytes_of(&shape, element_bits(program.str(element.text))?);
    let kept = *program.value_type(after).static_shape()?.get(dim)?;
    let rank = shape.iter().filter(|&&size| size != 1).count();
    let place = transposed(program, after, dim);
    let is_last = place + 1 == shape.len() && kept % LANES == 0;
    if bytes > SMALL && (rank <= 2 || place == 0 || is_last) {
        return None;
    }
    // Each device is in one group.
    let groups = matrix(program, op, "replica_groups")?;
    let mut starts = vec![0; groups.iter().map(Vec::len).sum()];
    for group in groups {
        for (position, id) in (0_i64..).zip(group) {
            *starts.get_mut(usize::try_from(id).ok()?)? = kept.checked_mul(position)?;
        }
    }
    Some(Found { reducer: Reducer::of_region(program, op)?, dim, starts })
}

/// The index of `dim` of `shard` in the result of the transpose that is its only use; `dim` itself without one.
fn transposed(program: &Program, shard: ValueId, dim: usize) -> usize {
    let user = program.users(shard).next().filter(|_| program.has_one_use(shard));
    let user = user.filter(|&user| program.op_name(user) == "stablehlo.transpose");
    let order = user.and_then(|user| op_attribute(program, user, "permutation")?.as_ints());
    let place = order.and_then(|order| order.iter().position(|&it| it == dim as i64));
    place.unwrap_or(dim)
}

fn replace(
    emit: &mut Emitter<'_>,
    op: OpId,
    found: &Found,
    devices: &mut FxHashMap<BlockId, ValueId>,
) {
    let (operand, old) = (emit.program.operand(op, 0), emit.program.result(op, 0));
    let (ty, kept) = (emit.type_of(operand), emit.shape(old));
    emit.go_before(op);
    let attrs = participants(emit.program, op);
    let sum = emit.op_with_results("stablehlo.all_reduce", &[operand], &[ty], &attrs);
    found.reducer.add_body(emit, sum, ty);
    if let Some(cause) = emit.program.cause(op) {
        emit.program.set_cause(sum, cause);
    }
    let device = *devices.entry(emit.block()).or_insert_with(|| emit.device());
    let start = emit.lookup(&found.starts, device);
    let starts: Vec<_> = (0..kept.len()).map(|dim| (dim == found.dim).then_some(start)).collect();
    let whole = emit.program.result(sum, 0);
    let shard = emit.dynamic_slice(whole, &starts, &kept);
    emit.program.replace_all_uses(old, shard);
    emit.program.erase_op(op);
}
