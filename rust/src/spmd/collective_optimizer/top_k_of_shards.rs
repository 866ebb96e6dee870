//! `top-k-of-shards`: selects the largest elements of shards before these are gathered, and the largest of those behind.
//!
//! `top_k(all_gather(x))` gathers the results of `top_k(x)` instead of `x`: along a batch dim they are the results; along the last
//! dim the largest of them are. All devices must hold different shards, and each more elements than are selected.
//!
//! Source: XLA's partitioner, which does that for the custom call `TopK` that its compiler for GPUs makes of a top-k
//! (`HandleCustomCallTopK`).

use super::super::devices::{Devices, Purpose};
use super::super::emit::{int_array, Emitter};
use super::{dim, matrix, participants, Names};
use crate::context::Context;
use crate::error::Result;
use crate::index::{OpId, ValueId};
use crate::ir::Program;

const TOP_K: &str = "chlo.top_k";
const GATHER: &str = "stablehlo.all_gather";

/// An all-gather before a top-k.
struct Gather {
    op: OpId,
    dim: usize,
    groups: Vec<Vec<i64>>,
}

/// Runs the pass on the module.
pub fn run(program: &mut Program, context: &mut Context<'_>) -> Result<()> {
    context.progress("top-k-of-shards", 0, 1)?;
    for op in Names::new(program, &[TOP_K]).ops(program) {
        if let Some(gathers) = gathers_of(program, op) {
            replace(program, op, &gathers);
        }
    }
    Ok(())
}

/// The all-gathers that make the operand of `op`, the last one first, if their shards are those of all devices.
fn gathers_of(program: &Program, op: OpId) -> Option<Vec<Gather>> {
    let mut value = program.operand(op, 0);
    let mut gathers = Vec::new();
    while let Some(made) =
        program.defining_op(value).filter(|&made| program.op_name(made) == GATHER)
    {
        if program.num_operands(made) != 1 {
            return None;
        }
        let groups = matrix(program, made, "replica_groups")?;
        gathers.push(Gather { op: made, dim: dim(program, made, "all_gather_dim")?, groups });
        value = program.operand(made, 0);
    }
    let devices: usize = gathers.first()?.groups.iter().map(Vec::len).sum();
    let shards = gathers.iter().try_fold(1_usize, |shards, gather| {
        shards.checked_mul(gather.groups.first().map_or(0, Vec::len))
    })?;
    let size = |value| program.value_type(value).static_shape()?.last().copied();
    let is_selective = size(program.result(op, 0))? < size(value)?;
    (shards == devices && is_selective).then_some(gathers)
}

fn replace(program: &mut Program, op: OpId, gathers: &[Gather]) {
    let Some(first) = gathers.last() else { return };
    let input = program.operand(first.op, 0);
    let results = [0, 1].map(|index| program.result(op, index));
    let (types, cause) = (results.map(|value| program.type_of(value)), program.cause(first.op));
    let all: Vec<_> = gathers.iter().map(|gather| participants(program, gather.op)).collect();
    let mut emit = Emitter::new(program, Devices::of(Purpose::Count));
    emit.go_before(op);
    let last = emit.shape(input).len() - 1;
    let count = emit.shape(results[0])[last];
    let top_k = |emit: &mut Emitter<'_>, value: ValueId| {
        let mut shape = emit.shape(value);
        shape[last] = count;
        let types = types.map(|ty| emit.like(&shape, ty));
        let attrs = [("k", format!("{count} : i64"))];
        let new = emit.op_with_results(TOP_K, &[value], &types, &attrs);
        [0, 1].map(|index| emit.program.result(new, index))
    };
    let mut found = top_k(&mut emit, input);
    for (gather, attrs) in gathers.iter().zip(all).rev() {
        if gather.dim == last {
            found[1] = shifted(&mut emit, found[1], input, gather);
        }
        found = found.map(|value| gathered(&mut emit, value, gather, &attrs, cause));
        if gather.dim == last {
            let [values, places] = top_k(&mut emit, found[0]);
            found = [values, taken_along(&mut emit, found[1], places)];
        }
    }
    for (old, new) in results.into_iter().zip(found) {
        program.replace_all_uses(old, new);
    }
    program.erase_op(op);
    for gather in gathers {
        if !program.has_uses(program.result(gather.op, 0)) {
            program.erase_op(gather.op);
        }
    }
}

/// `indices` into the shard of each device as those into the shards that `gather` gathers of `input`.
fn shifted(emit: &mut Emitter<'_>, indices: ValueId, input: ValueId, gather: &Gather) -> ValueId {
    let size = emit.shape(input).last().copied().unwrap_or(1);
    let mut starts = vec![0; gather.groups.iter().map(Vec::len).sum()];
    for group in &gather.groups {
        for (place, &device) in (0..).zip(group) {
            if let Some(start) = starts.get_mut(usize::try_from(device).unwrap_or(usize::MAX)) {
                *start = place * size;
            }
        }
    }
    let index = emit.index_type();
    let id = emit.program.tensor_type_of(&[], "ui32");
    let id = emit.op("stablehlo.partition_id", &[], id, &[]);
    let id = emit.op("stablehlo.convert", &[id], index, &[]);
    let start = emit.lookup(&starts, id);
    let ty = emit.type_of(indices);
    let element = emit.like(&[], ty);
    let start = emit.op("stablehlo.convert", &[start], element, &[]);
    let start = emit.broadcast(start, &[], ty);
    emit.elementwise("stablehlo.add", &[indices, start])
}

/// `value` gathered by the devices, and along the dim, of `gather`.
fn gathered(
    emit: &mut Emitter<'_>,
    value: ValueId,
    gather: &Gather,
    attrs: &[(&'static str, String)],
    cause: Option<OpId>,
) -> ValueId {
    let (mut shape, ty) = (emit.shape(value), emit.type_of(value));
    shape[gather.dim] *= gather.groups.first().map_or(1, |group| group.len() as i64);
    let ty = emit.like(&shape, ty);
    let mut attrs = attrs.to_vec();
    attrs.push(("all_gather_dim", format!("{} : i64", gather.dim)));
    let new = emit.op_with_results(GATHER, &[value], &[ty], &attrs);
    if let Some(cause) = cause {
        emit.program.set_cause(new, cause);
    }
    emit.program.result(new, 0)
}

/// The elements of `input` at the indices `places` along its last dim.
pub(in crate::spmd) fn taken_along(
    emit: &mut Emitter<'_>,
    input: ValueId,
    places: ValueId,
) -> ValueId {
    let mut shape = emit.shape(places);
    let dim = shape.len() - 1;
    shape.push(1);
    let starts = emit.reshape(places, &shape);
    let batch: Vec<String> = (0..dim).map(|dim| dim.to_string()).collect();
    let batch = if batch.is_empty() {
        String::new()
    } else {
        let dims = batch.join(", ");
        format!("operand_batching_dims = [{dims}], start_indices_batching_dims = [{dims}], ")
    };
    let numbers = format!(
        "#stablehlo.gather<collapsed_slice_dims = [{dim}], {batch}start_index_map = [{dim}], \
         index_vector_dim = {}>",
        dim + 1
    );
    let attrs = [("dimension_numbers", numbers), ("slice_sizes", int_array(&vec![1; dim + 1]))];
    let ty = emit.type_of(input);
    let ty = emit.like(&shape[..=dim], ty);
    emit.op("stablehlo.gather", &[input, starts], ty, &attrs)
}
