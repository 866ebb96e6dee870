//! `sdy-resolve-single-device-sharding`: an op with a single-device sharding is computed only by
//! that device.
//!
//! The op moves into the first branch of a `stablehlo.if` on the device id; the other branch
//! returns zeros. The sum over all devices then gives every device the result.
//!
//! Source: Shardy's `resolve_single_device_sharding`.

use super::device_id::DeviceCounts;
use crate::axis::AxisRef;
use crate::context::Context;
use crate::error::{Code, Diagnostic, Result};
use crate::index::{AxisId, Id, MeshId, OpId, ShardingId, UseId, ValueId};
use crate::ir::{InsertPoint, NewOp, OpKind, Place, Program, ValueMap};

/// Runs the pass on `func`.
pub fn run(
    program: &mut Program,
    context: &mut Context,
    func: OpId,
    devices: DeviceCounts,
) -> Result<()> {
    context.progress("sdy-resolve-single-device-sharding", 0, 1)?;
    let Some(mesh) = program.global_mesh() else { return Ok(()) };
    let mut placed = Vec::new();
    for op in program.post_order(func).collect::<Vec<_>>() {
        if program.op_name(op).starts_with("sdy.") {
            continue;
        }
        if let Some(device) = device_of(program, op)? {
            placed.push((op, device));
        }
    }
    for (op, device) in placed {
        let condition = build_condition(program, op, device, devices)?;
        resolve(program, op, condition, mesh);
    }
    Ok(())
}

/// The device of the results of `op`; an error if they are on several devices, or if only some are
/// on a device and others are sharded.
fn device_of(program: &Program, op: OpId) -> Result<Option<i64>> {
    let (mut device, mut is_sharded) = (None, false);
    for result in program.op_results(op) {
        let sharding = program.sharding(result);
        if program.value_type(result).rank().is_none() || sharding.is_none() {
            continue;
        }
        match program.single_device(sharding) {
            Some(own) if device.is_some_and(|other| other != own) => {
                return Err(mismatch(program, op, "has results on different single devices"));
            }
            Some(own) => device = Some(own),
            None => is_sharded |= !program.is_fully_replicated(sharding),
        }
    }
    if device.is_some() && is_sharded {
        return Err(mismatch(program, op, "has results on a single device, and sharded ones"));
    }
    Ok(device)
}

fn mismatch(program: &Program, op: OpId, what: &str) -> crate::error::Error {
    let message = format!("'{}' {what}", program.op_name(op));
    Diagnostic::new(Code::InvalidSharding, message).at_op(program, op).into()
}

/// Makes the condition that the device id is `device`, right before `op`.
fn build_condition(
    program: &mut Program,
    op: OpId,
    device: i64,
    devices: DeviceCounts,
) -> Result<ValueId> {
    let at = program.before(op);
    let number = program.tensor_type_of(&[], "ui32");
    let flag = program.tensor_type_of(&[], "i1");
    let id = program.build_value(NewOp::new(devices.id_op()?, &[], &[number]), at);
    let value = format!("dense<{device}> : tensor<ui32>");
    let constant = NewOp::of_kind(OpKind::Constant, &[], &[number]).attr("value", value);
    let constant = program.build_value(constant, at);
    let compare = NewOp::new("stablehlo.compare", &[id, constant], &[flag])
        .attr("comparison_direction", "#stablehlo<comparison_direction EQ>");
    Ok(program.build_value(compare, at))
}

/// Replaces `op` by a conditional and sums of its results over `mesh`.
fn resolve(program: &mut Program, op: OpId, condition: ValueId, mesh: MeshId) {
    let loc = program.loc(op);
    let results: Vec<ValueId> = program.op_results(op).collect();
    let types: Vec<_> = results.iter().map(|&result| program.type_of(result)).collect();
    let conditional = NewOp::of_kind(OpKind::If, &[condition], &types).regions(2);
    let conditional = program.build(conditional, program.before(op));
    let reshards = build_branches(program, op, conditional, &results);
    let num_axes = program.mesh(mesh).axes.len();
    let axes: Vec<AxisRef> =
        (0..num_axes).map(|axis| AxisRef::full(AxisId::from_index(axis))).collect();
    let mut after = conditional;
    for (index, &result) in results.iter().enumerate() {
        let value = program.result(conditional, index);
        let ty = program.type_of(value);
        if program.types()[ty].rank().is_none() {
            program.replace_all_uses(result, value);
            continue;
        }
        let replicated = program.replicated(mesh, ty, true);
        let place = Place::After(after);
        let sum = program.create_all_reduce(value, axes.clone(), replicated, place);
        after = program.defining_op(sum).unwrap_or(after);
        program.set_loc(after, loc);
        replace(program, result, sum, replicated);
    }
    program.erase_op(op);
    for reshard in reshards {
        if !program.has_uses(program.result(reshard, 0)) {
            program.erase_op(reshard);
        }
    }
}

/// Fills the branches: `op` without shardings, on operands as they were before the reshard to the
/// device, and zeros. Returns the reshards that are not used any more.
fn build_branches(
    program: &mut Program,
    op: OpId,
    conditional: OpId,
    results: &[ValueId],
) -> Vec<OpId> {
    let loc = program.loc(op);
    let blocks = [0, 1].map(|branch| {
        let region = program.region(conditional, branch);
        program.add_block(region, &[])
    });
    let [computed, zeros] = blocks.map(|block| InsertPoint { place: Place::End(block), loc });
    let clone = program.clone_op_at(op, &mut ValueMap::default(), computed);
    let cloned: Vec<ValueId> = program.op_results(clone).collect();
    for &result in &cloned {
        program.set_sharding(result, ShardingId::NONE);
    }
    let mut reshards: Vec<OpId> = Vec::new();
    for slot in program.op_uses(clone) {
        let Some(def) = program.defining_op(program.used_value(slot)) else { continue };
        let is_reshard = program.kind(def) == OpKind::Reshard
            && program.is_on_single_device(program.sharding(program.result(def, 0)));
        if is_reshard {
            program.set_operand(slot, program.operand(def, 0));
            if !reshards.contains(&def) {
                reshards.push(def);
            }
        }
    }
    program.build(NewOp::of_kind(OpKind::StablehloReturn, &cloned, &[]), computed);
    let mut returned = Vec::with_capacity(results.len());
    for &result in results {
        let ty = program.type_of(result);
        returned.push(if program.types()[ty].rank().is_some() {
            program.build_zeros(ty, zeros)
        } else {
            program.build_value(NewOp::new("stablehlo.create_token", &[], &[ty]), zeros)
        });
    }
    program.build(NewOp::of_kind(OpKind::StablehloReturn, &returned, &[]), zeros);
    reshards
}

/// Replaces the uses of `result` by `sum`; reshards to the sharding of `sum` are not needed any
/// more.
fn replace(program: &mut Program, result: ValueId, sum: ValueId, replicated: ShardingId) {
    for slot in program.uses(result).collect::<Vec<UseId>>() {
        let user = program.user(slot);
        let is_same = program.kind(user) == OpKind::Reshard
            && program.sharding(program.result(user, 0)) == replicated;
        if is_same {
            program.replace_all_uses(program.result(user, 0), sum);
            program.erase_op(user);
        } else {
            program.set_operand(slot, sum);
        }
    }
}
