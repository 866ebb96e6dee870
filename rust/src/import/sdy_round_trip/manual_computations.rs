//! Converts calls of `@xla.sdy.manual_computation_body` between custom calls that change global
//! shapes to local ones and back.

use super::frontend_attributes::{of_op, Text};
use super::shardings::per_value;
use crate::attribute::parse_manual_axes;
use crate::error::{Code, Result};
use crate::import::import_func_calls::return_by_sdy;
use crate::import::{mistake, CallGraph};
use crate::index::{FuncId, OpId, ShardingId, StrId, TypeId, ValueId};
use crate::ir::{NewOp, OpKind, Payload, Program, SymbolTable, ValueMap};
use crate::mlir::{op_attribute, AttrValue};
use rustc_hash::FxHashSet;

/// A part of the name of functions that are bodies of manual computations.
const BODY: &str = "xla.sdy.manual_computation_body";
pub(super) const TO_LOCAL: &str = "xla.sdy.GlobalToLocalShape";
pub(super) const TO_GLOBAL: &str = "xla.sdy.LocalToGlobalShape";

/// Replaces the calls of the module.
pub(super) fn run(program: &mut Program) -> Result<()> {
    let symbols = SymbolTable::new(program);
    let graph = CallGraph::new(program, &symbols);
    graph.check_acyclic(program)?;
    let mut bodies = FxHashSet::default();
    // Callees first, so that nested bodies are replaced before they are copied.
    for &func in &graph.post_order {
        let ops: Vec<OpId> = program.pre_order(program.func_op(func)).collect();
        for op in ops {
            let Some(&Payload::Call(name)) = program.payload(op) else { continue };
            if program.kind(op) == OpKind::Call && program.str(name).contains(BODY) {
                if let Some(body) = symbols.function(name) {
                    if replace(program, op, body)? {
                        bodies.insert(body);
                    }
                }
            }
        }
    }
    erase_shape_changes(program);
    for func in program.functions_in_order() {
        if bodies.contains(&func) {
            program.erase_op(program.func_op(func));
        }
    }
    Ok(())
}

/// Replaces `call`, of the function `func`, by a manual computation. Returns false if the custom
/// calls around it have no `sdy` shardings.
fn replace(program: &mut Program, call: OpId, func: FuncId) -> Result<bool> {
    let results: Vec<ValueId> = program.op_results(call).collect();
    let is_used = results.iter().any(|&result| program.uses(result).next().is_some());
    if !results.is_empty() && !is_used {
        // All results are tensors without elements, which constants have replaced.
        program.erase_op(call);
        return Ok(true);
    }
    let to_local = program
        .operands(call)
        .filter_map(|value| program.defining_op(value))
        .find(|&op| is_call_of(program, op, TO_LOCAL));
    let to_global = results
        .iter()
        .flat_map(|&result| program.users(result))
        .find(|&op| is_call_of(program, op, TO_GLOBAL));
    let has_axes = |op: OpId| of_op(program, op, "manual_axes").is_some();
    if ![to_local, to_global, Some(call)].into_iter().flatten().any(has_axes) {
        // Its shardings are in GSPMD's notation.
        return Ok(false);
    }
    if (program.num_operands(call) > 0 && to_local.is_none())
        || (!results.is_empty() && to_global.is_none())
    {
        let message = format!("no @{TO_LOCAL} or no @{TO_GLOBAL} around a manual computation");
        return Err(mistake(program, call, Code::InvalidSharding, message).into());
    }
    let operands: Vec<ValueId> =
        to_local.map_or_else(Vec::new, |op| program.operands(op).collect());
    let global: Vec<ValueId> =
        to_global.map_or_else(Vec::new, |op| program.op_results(op).collect());
    let in_shardings = shardings(program, call, to_local, "in_shardings", operands.len())?;
    let out_shardings = shardings(program, call, to_global, "out_shardings", global.len())?;
    let axes = manual_axes(program, [to_local, to_global, Some(call)])?;
    let types: Vec<TypeId> = global.iter().map(|&value| program.type_of(value)).collect();
    let computation = NewOp::of_kind(OpKind::ManualComputation, &operands, &types)
        .payload(Payload::ManualComputation(axes))
        .regions(1);
    let computation = program.build(computation, program.before(call));
    if let [only] = global[..] {
        program.copy_name(only, program.result(computation, 0));
    }
    let to = program.region(computation, 0);
    if let Some(from) = program.op_regions(program.func_op(func)).next() {
        program.clone_region(from, to, &mut ValueMap::default());
    }
    return_by_sdy(program, to);
    if let Some(body) = program.region_entry(to).get() {
        let args: Vec<ValueId> = program.block_args(body).collect();
        for (arg, sharding) in args.into_iter().zip(in_shardings) {
            program.set_sharding(arg, sharding);
        }
    }
    for (index, (old, sharding)) in global.into_iter().zip(out_shardings).enumerate() {
        let new = program.result(computation, index);
        program.set_sharding(new, sharding);
        program.replace_all_uses(old, new);
    }
    if let Some(op) = to_global {
        program.erase_op(op);
    }
    program.erase_op(call);
    Ok(true)
}

/// The shardings called `name` of the custom call `around` or, in older programs, of `call`.
fn shardings(
    program: &mut Program,
    call: OpId,
    around: Option<OpId>,
    name: &str,
    count: usize,
) -> Result<Vec<ShardingId>> {
    let text =
        around.and_then(|op| of_op(program, op, name)).or_else(|| of_op(program, call, name));
    let found = match text {
        Some(text) => per_value(program, &text)?,
        None => Vec::new(),
    };
    if found.len() != count {
        let message = format!("xla.sdy.{name} has {} shardings for {count} values", found.len());
        return Err(mistake(program, call, Code::InvalidSharding, message).into());
    }
    Ok(found)
}

/// The manual axes, from the first of `ops` that lists any.
fn manual_axes(program: &mut Program, ops: [Option<OpId>; 3]) -> Result<Vec<StrId>> {
    let found = |op: OpId| -> Option<Text> { of_op(program, op, "manual_axes") };
    let Some(text) = ops.into_iter().flatten().find_map(found) else { return Ok(Vec::new()) };
    let names = text.parse(|text| parse_manual_axes(text, 0))?;
    Ok(names.iter().map(|name| program.intern(name)).collect())
}

/// Whether `op` is a custom call of `target`.
pub(super) fn is_call_of(program: &Program, op: OpId, target: &str) -> bool {
    let name = || op_attribute(program, op, "call_target_name");
    program.kind(op) == OpKind::CustomCall
        && name().as_ref().and_then(AttrValue::as_str) == Some(target)
}

/// Erases the custom calls around bodies. Those without bodies remain from tensors without
/// elements.
fn erase_shape_changes(program: &mut Program) {
    for op in program.ops_in_pre_order(&[OpKind::CustomCall]).into_iter().rev() {
        let is_around = is_call_of(program, op, TO_LOCAL) || is_call_of(program, op, TO_GLOBAL);
        let results: Vec<ValueId> = program.op_results(op).collect();
        let is_used = results.into_iter().any(|result| program.uses(result).next().is_some());
        if is_around && !is_used {
            program.erase_op(op);
        }
    }
}
