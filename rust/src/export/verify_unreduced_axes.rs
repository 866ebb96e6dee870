//! `sdy-verify-unreduced-axes`: fails if an op adds, drops or changes unreduced axes without a
//! reason.
//!
//! A reshard or a constraint may do any of these, so uses of its result are not checked. Reductions
//! and dot products may add axes with their own reduction, and other ops may add axes with any
//! reduction that is the same for all results. Calls and returns have to agree with the function.

use crate::axis::SubAxis;
use crate::context::Context;
use crate::error::{Code, Diagnostic, Error, Result};
use crate::index::{FuncId, OpId, ValueId};
use crate::ir::{OpKind, OpTraits, Payload, Program};
use crate::sharding::{ReductionOp, TensorSharding};
use crate::verify::Transition;
use std::borrow::Cow;

/// Runs the pass on functions; it reports the first error of each.
pub fn run(program: &mut Program, _context: &mut Context<'_>, functions: &[OpId]) -> Result<()> {
    let shardings = program.shardings();
    let reductions = [OpKind::AllReduce, OpKind::ReduceScatter];
    if shardings.ids().all(|id| shardings[id].unreduced.is_empty())
        && reductions.iter().all(|&kind| program.num_made(kind) == 0)
    {
        return Ok(());
    }
    let mistake_in = |&func: &OpId| {
        let found = program.post_order(func).find_map(|op| Some((op, problem_of(program, op)?)));
        let (op, message) = found?;
        let message = format!("'{}' op {message}", program.op_name(op));
        let problem = Diagnostic::new(Code::InvalidSharding, message);
        Some(program.reported_at(op, problem))
    };
    Error::check(functions.iter().filter_map(mistake_in).collect())
}

/// The error if `op` adds, drops or moves unreduced axes that it may not.
fn problem_of(program: &Program, op: OpId) -> Option<String> {
    match program.kind(op) {
        // The verifier of the dialect checks these.
        OpKind::Reshard | OpKind::ShardingConstraint => return None,
        OpKind::AllReduce | OpKind::ReduceScatter => {
            let is_sharded = program.sharding_behind_barriers(program.operand(op, 0)).is_some();
            return (!is_sharded).then(|| "operand must be sharded.".to_owned());
        }
        OpKind::Call => return call_problem(program, op),
        OpKind::FuncReturn | OpKind::SdyReturn => return return_problem(program, op),
        _ if OpTraits::of_name(program.op_name(op)).has(OpTraits::TERMINATOR) => return None,
        _ => {}
    }
    let name = program.op_name(op);
    let operands: Vec<ValueId> = program.operands(op).collect();
    let seen = |values: &[ValueId]| -> Vec<_> {
        values.iter().filter_map(|&value| program.sharding_behind_barriers(value)).collect()
    };
    let results: Vec<ValueId> = program.op_results(op).collect();
    if matches!(name, "stablehlo.all_reduce" | "stablehlo.reduce_scatter") {
        let (operands, results) =
            (seen(&operands[..1.min(operands.len())]), seen(&results[..1.min(results.len())]));
        let (added, removed) = (None, reduction_of(program, op));
        return Transition { operands: &operands, results: &results, added, removed }
            .problem(program);
    }
    let after = seen(&results);
    let (inputs, added) = match name {
        "stablehlo.reduce" => (results.len().min(operands.len()), reduction_of(program, op)),
        "stablehlo.dot" | "stablehlo.dot_general" => (operands.len(), Some(ReductionOp::Sum)),
        _ => {
            let mut unreduced = after.iter().filter(|sharding| !sharding.unreduced.is_empty());
            let first = unreduced.next().map(|sharding| sharding.reduction_op);
            if unreduced.any(|sharding| Some(sharding.reduction_op) != first) {
                let message = "results introduce unreduced axes with conflicting reduction ops";
                return Some(message.to_owned());
            }
            (operands.len(), first)
        }
    };
    let mut operands = operands;
    operands.truncate(inputs);
    operands.retain(|&value| !is_resharded(program, value));
    let before = seen(&operands);
    Transition { operands: &before, results: &after, added, removed: None }.problem(program)
}

/// Whether `value`, ignoring barriers, is the result of a reshard or a constraint.
fn is_resharded(program: &Program, value: ValueId) -> bool {
    let def = program.defining_op(program.behind_barriers(value));
    def.is_some_and(|def| matches!(program.kind(def), OpKind::Reshard | OpKind::ShardingConstraint))
}

/// The reduction that the body of `op` computes; `None` if it is not a sum, maximum or minimum.
fn reduction_of(program: &Program, op: OpId) -> Option<ReductionOp> {
    let terminator = program.region_terminator(op, 0)?;
    if program.kind(terminator) != OpKind::StablehloReturn {
        return None;
    }
    let of_value = |value: ValueId| {
        Some(match program.op_name(program.defining_op(value)?) {
            "stablehlo.add" => ReductionOp::Sum,
            "stablehlo.maximum" => ReductionOp::Max,
            "stablehlo.minimum" => ReductionOp::Min,
            _ => return None,
        })
    };
    let mut returned = program.operands(terminator);
    let first = of_value(returned.next()?)?;
    returned.all(|value| of_value(value) == Some(first)).then_some(first)
}

/// The error in the unreduced axes of operands and results of `call`.
fn call_problem(program: &Program, call: OpId) -> Option<String> {
    let Some(Payload::Call(callee)) = program.payload(call) else { return None };
    let is_callee = |&func: &FuncId| program.func_name(func) == *callee;
    let callee = program.functions_in_order().into_iter().find(is_callee)?;
    for (index, operand) in program.operands(call).enumerate() {
        if is_resharded(program, operand) {
            continue;
        }
        let given = program.sharding_behind_barriers(operand);
        let wanted = program.shardings().get(program.func_arg_sharding(callee, index));
        let names = difference(program, given.as_deref(), wanted);
        if let Some(names) = names {
            return Some(mismatch(&names, &format!("call argument {index}.")));
        }
    }
    for (index, result) in program.op_results(call).enumerate() {
        let returned = program.shardings().get(program.func_results(callee)[index].sharding);
        let seen = program.sharding_behind_barriers(result);
        if let Some(names) = difference(program, returned, seen.as_deref()) {
            return Some(mismatch(&names, &format!("call result {index}.")));
        }
    }
    None
}

/// The error in the unreduced axes of values that `op` returns.
fn return_problem(program: &Program, op: OpId) -> Option<String> {
    let parent = program.parent_op(op)?;
    for (index, operand) in program.operands(op).enumerate() {
        let wanted = match program.function_of(parent).get() {
            Some(func) => {
                let sharding = program.func_results(func).get(index)?.sharding;
                program.shardings().get(sharding).map(Cow::Borrowed)
            }
            None => outer_sharding(program, parent, index),
        };
        let Some(wanted) = wanted.filter(|_| !is_resharded(program, operand)) else { continue };
        let given = program.sharding_behind_barriers(operand);
        if let Some(names) = difference(program, given.as_deref(), Some(&wanted)) {
            return Some(mismatch(
                &names,
                &format!(
                    "return value {index} without a blessed operation (e.g., sdy.reshard). This is an invalid \
                     transition from unreduced to reduced."
                ),
            ));
        }
    }
    None
}

/// The sharding of result `index` of `op`, as seen by its region.
fn outer_sharding(program: &Program, op: OpId, index: usize) -> Option<Cow<'_, TensorSharding>> {
    let result = program.op_results(op).nth(index)?;
    let sharding = program.sharding_behind_barriers(result)?;
    if program.kind(op) != OpKind::ManualComputation {
        return Some(sharding);
    }
    let manual = program.manual_axes(op, &sharding);
    Some(Cow::Owned(sharding.without_manual_axes(&manual)))
}

fn mismatch(names: &str, place: &str) -> String {
    format!("has unreduced axes mismatch for '{names}' at {place}")
}

/// The names of the axes over which only one of two shardings is unreduced, at least in part;
/// `None` if there are none.
fn difference(
    program: &Program,
    first: Option<&TensorSharding>,
    second: Option<&TensorSharding>,
) -> Option<String> {
    let axes = |sharding: Option<&TensorSharding>| -> Vec<(String, Option<SubAxis>)> {
        let all = sharding.into_iter().flat_map(|sharding| {
            let mesh = program.mesh(sharding.mesh);
            sharding.unreduced.iter().map(|axis| (mesh.axis_name(axis.axis).to_owned(), axis.sub))
        });
        all.collect()
    };
    let (first, second) = (axes(first), axes(second));
    let only =
        |these: &[(String, Option<SubAxis>)], those: &[(String, Option<SubAxis>)]| -> Vec<String> {
            let only = these.iter().filter(|&axis| !those.contains(axis));
            only.map(|(name, _)| name.clone()).collect()
        };
    let mut names = only(&first, &second);
    names.extend(only(&second, &first));
    names.sort_unstable();
    names.dedup();
    (!names.is_empty()).then(|| names.join(", "))
}
