//! Reshards around ops on a single device: operands are resharded to that device, and results from
//! it, both by way of being replicated over all devices.

use super::tensors::tensor_shardings;
use super::Pass;
use crate::error::{Code, Diagnostic, Result};
use crate::index::{MeshId, OpId, ShardingId, UseId, ValueId};
use crate::ir::{InsertPoint, OpKind, Place, Program};
use crate::sharding::TensorSharding;

impl Pass {
    /// Fails if an argument or a result of `func_op` is on a single device.
    pub(super) fn check_function(program: &Program, func_op: OpId) -> Result<()> {
        let func = program.function_of(func_op);
        if func.is_none() {
            return Ok(());
        }
        let args = match program.func_body(func).get() {
            Some(body) => program.block_args(body).map(|arg| program.sharding(arg)).collect(),
            None => Vec::new(),
        };
        let results = program.func_results(func).iter().map(|result| result.sharding);
        let results: Vec<ShardingId> = results.collect();
        for (what, shardings) in [("argument", args), ("result", results)] {
            let on_device = |&sharding: &ShardingId| program.is_on_single_device(sharding);
            if let Some(index) = shardings.iter().position(on_device) {
                let message = format!(
                    "function {what} {index} cannot have a single-device sharding attribute"
                );
                return Err(refusal(program, func_op, message));
            }
        }
        Ok(())
    }
}

fn refusal(program: &Program, op: OpId, message: String) -> crate::error::Error {
    Diagnostic::new(Code::InvalidSharding, message).at_op(program, op).into()
}

/// Reshards operands and results of `op` if one of its results is on a single device; returns false
/// otherwise.
pub(super) fn reshard(program: &mut Program, op: OpId) -> Result<bool> {
    let shardings = tensor_shardings(program, op);
    let results = &shardings[program.num_operands(op)..];
    let mut device: Option<(i64, MeshId)> = None;
    for &sharding in results {
        let Some(own) = program.single_device(sharding) else { continue };
        if device.is_some_and(|(other, _)| other != own) {
            let name = program.op_name(op);
            let message = format!("'{name}' has conflicting single-device result shardings");
            return Err(refusal(program, op, message));
        }
        device = Some((own, program.mesh_of(sharding)));
    }
    let Some((_, device)) = device else { return Ok(false) };
    let Some(global) = program.global_mesh() else { return Ok(true) };
    let on_device = program.intern_sharding(TensorSharding::fully_replicated(device, 0, true));
    reshard_operands(program, op, on_device, global);
    reshard_results(program, op, results, global);
    for result in program.op_results(op) {
        if program.value_type(result).rank().is_some() {
            program.set_result_sharding(result, on_device);
        }
    }
    Ok(true)
}

/// Reshards the operands of `op` to `on_device`.
fn reshard_operands(program: &mut Program, op: OpId, on_device: ShardingId, global: MeshId) {
    let place = Place::Before(op);
    for slot in program.op_uses(op).collect::<Vec<UseId>>() {
        let operand = program.used_value(slot);
        let ty = program.type_of(operand);
        if program.types()[ty].rank().is_none() {
            continue;
        }
        let replicated = program.replicated(global, ty, true);
        let sharding = program.sharding_of(operand).get().unwrap_or(replicated);
        let mesh = program.mesh_of(sharding);
        if mesh == program.mesh_of(on_device) && program.are_equivalent(sharding, on_device) {
            continue;
        }
        let at = InsertPoint { place, loc: program.value_loc(operand) };
        let mut input = operand;
        if mesh != global || !program.is_fully_replicated(sharding) {
            input = build_reshard(program, input, replicated, op, at);
        }
        let input = build_reshard(program, input, on_device, op, at);
        program.set_operand(slot, input);
    }
}

/// Reshards the results of `op` to their former shardings, or to replicated ones if they had none.
fn reshard_results(program: &mut Program, op: OpId, shardings: &[ShardingId], global: MeshId) {
    let mut place = program.place_after(op);
    let results: Vec<ValueId> = program.op_results(op).collect();
    for (result, &old) in results.into_iter().zip(shardings) {
        let ty = program.type_of(result);
        if program.types()[ty].rank().is_none() {
            continue;
        }
        let replicated = program.replicated(global, ty, true);
        let is_kept = old.is_some() && !program.is_on_single_device(old);
        let target = if is_kept { old } else { replicated };
        let mut value = result;
        for sharding in [replicated, target] {
            if value != result && sharding == replicated {
                break;
            }
            let at = InsertPoint { place, loc: program.loc(op) };
            let reshard = build_reshard(program, value, sharding, op, at);
            if let Some(user) = program.defining_op(reshard) {
                program.replace_all_uses_except(value, reshard, user);
                place = Place::After(user);
            }
            value = reshard;
        }
    }
}

/// Makes a reshard whose cause is `op`.
fn build_reshard(
    program: &mut Program,
    input: ValueId,
    sharding: ShardingId,
    op: OpId,
    at: InsertPoint,
) -> ValueId {
    let reshard = program.build_unary(OpKind::Reshard, input, sharding, at);
    program.set_cause(reshard, op);
    program.result(reshard, 0)
}
