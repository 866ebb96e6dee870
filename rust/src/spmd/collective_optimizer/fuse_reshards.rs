//! `fuse-reshards`: fuses successive reshards.
//!
//! A slice that takes a device's own shard out of an all-gather is replaced by that shard, two successive permutes by one, and an
//! all-to-all after its inverse by the operand of that. The first of these by itself is XLA's
//! `AllGatherDynamicSliceSimplifier`, `all-gather-dynamic-slice-simplifier`.

use super::super::collectives::matrix_text;
use super::offsets::Offsets;
use super::{dim, matrix, Names};
use crate::context::Context;
use crate::error::Result;
use crate::index::{OpId, ValueId};
use crate::ir::Program;
use crate::mlir::op_attribute;

const GATHER: &str = "stablehlo.all_gather";
const PERMUTE: &str = "stablehlo.collective_permute";
const ALL_TO_ALL: &str = "stablehlo.all_to_all";

/// Runs the pass on the module.
pub fn run(program: &mut Program, context: &mut Context<'_>) -> Result<()> {
    context.progress("fuse-reshards", 0, 1)?;
    take_own_shards(program);
    let ops = Names::new(program, &[PERMUTE, ALL_TO_ALL]).ops(program);
    let named = |program: &Program, op, name| !program.is_erased(op) && program.op_name(op) == name;
    for &op in &ops {
        if named(program, op, PERMUTE) {
            permutes(program, op);
        }
    }
    for &op in &ops {
        if named(program, op, ALL_TO_ALL) {
            inverse(program, op);
        }
    }
    Ok(())
}

/// Replaces slices of all-gathers that are the device's own shard.
pub fn take_own_shards(program: &mut Program) {
    let mut offsets = Offsets::default();
    for op in Names::new(program, &[GATHER]).ops(program) {
        if !program.is_erased(op) {
            own_shards(program, op, &mut offsets);
        }
    }
}

/// The op that defines `value`, if it is called `name` and has one operand and one result.
fn made_by(program: &Program, value: ValueId, name: &str) -> Option<OpId> {
    let op = program.defining_op(value)?;
    let is_it = program.op_name(op) == name
        && program.num_operands(op) == 1
        && program.num_results(op) == 1;
    is_it.then_some(op)
}

/// Replaces the uses of `op` by `value`, and erases `op`.
fn replace(program: &mut Program, op: OpId, value: ValueId) {
    program.replace_all_uses(program.result(op, 0), value);
    program.erase_op(op);
}

fn erase_unused(program: &mut Program, op: OpId) {
    if !program.has_uses(program.result(op, 0)) {
        program.erase_op(op);
    }
}

/// Replaces slices of the result of `gather`, an all-gather, that are the device's own shard.
fn own_shards(program: &mut Program, gather: OpId, offsets: &mut Offsets) {
    if program.num_operands(gather) != 1 {
        return;
    }
    let users: Vec<OpId> = program.users(program.result(gather, 0)).collect();
    let mut is_changed = false;
    for user in users {
        if is_own_shard(program, gather, user, offsets) == Some(true) {
            replace(program, user, program.operand(gather, 0));
            is_changed = true;
        }
    }
    if is_changed {
        erase_unused(program, gather);
    }
}

fn is_own_shard(
    program: &Program,
    gather: OpId,
    slice: OpId,
    offsets: &mut Offsets,
) -> Option<bool> {
    let (input, whole) = (program.operand(gather, 0), program.result(gather, 0));
    let is_slice = program.op_name(slice) == "stablehlo.dynamic_slice"
        && program.operand(slice, 0) == whole
        && program.type_of(program.result(slice, 0)) == program.type_of(input);
    if !is_slice {
        return Some(false);
    }
    let dim = dim(program, gather, "all_gather_dim")?;
    let size = *program.value_type(input).static_shape()?.get(dim)?;
    let groups = matrix(program, gather, "replica_groups")?;
    let count = groups.iter().flatten().max().map(|&last| last as usize + 1)?;
    let starts = offsets.of(program, program.operand(slice, 1 + dim), count)?;
    Some(groups.iter().all(|group| {
        (0..).zip(group).all(|(place, &device): (i64, &i64)| {
            usize::try_from(device).ok().and_then(|device| starts.get(device))
                == Some(&(place * size))
        })
    }))
}

/// Fuses `second`, a permute, with the permute that defines its operand, if that has no other use.
fn permutes(program: &mut Program, second: OpId) -> Option<()> {
    if program.num_operands(second) != 1 {
        return None;
    }
    let first = made_by(program, program.operand(second, 0), PERMUTE)?;
    if !program.has_one_use(program.result(first, 0)) {
        return None;
    }
    let pairs = |op| matrix(program, op, "source_target_pairs");
    let (before, after) = (pairs(first)?, pairs(second)?);
    let mut both = Vec::new();
    for pair in &before {
        let onward = after.iter().filter(|next| next[0] == pair[1]);
        both.extend(onward.map(|next| vec![pair[0], next[1]]));
    }
    if both.is_empty() {
        return None;
    }
    let slot = program.op_uses(second).next()?;
    let input = program.operand(first, 0);
    program.set_operand(slot, input);
    program.set_attr(second, "source_target_pairs", &matrix_text(&both));
    program.erase_op(first);
    Some(())
}

/// Erases `second`, an all-to-all, if it is the inverse of the one that defines its operand.
fn inverse(program: &mut Program, second: OpId) -> Option<()> {
    if program.num_operands(second) != 1 {
        return None;
    }
    let first = made_by(program, program.operand(second, 0), ALL_TO_ALL)?;
    let dims =
        |op| Some((dim(program, op, "split_dimension")?, dim(program, op, "concat_dimension")?));
    let ((split, concat), (other_split, other_concat)) = (dims(first)?, dims(second)?);
    let groups = |op| op_attribute(program, op, "replica_groups");
    let is_inverse = split == other_concat
        && concat == other_split
        && split != concat
        && groups(first).is_some()
        && groups(first) == groups(second);
    if !is_inverse {
        return None;
    }
    replace(program, second, program.operand(first, 0));
    erase_unused(program, first);
    Some(())
}
