//! Trip counts of loops.
//!
//! The trip count of a loop is known if its condition compares a counter with a bound, its body adds a step to the counter, and
//! start, bound and step are constants, or constants that the loop, or loops around it, carry unchanged.
//! `lax.scan` and `lax.fori_loop` over constant ranges are of this form.

use crate::index::{OpId, ValueId};
use crate::ir::{ConstantValue, OpKind, OpTraits, Program, ValueDef};
use crate::mlir::op_attribute;

/// The trip count of `op`, a `stablehlo.while`; `None` if it is not known.
pub fn trip_count(program: &Program, op: OpId) -> Option<u64> {
    let condition = program.region_terminator(op, 0)?;
    let compare = program.defining_op(program.operands(condition).next()?)?;
    if program.op_name(compare) != "stablehlo.compare" {
        return None;
    }
    let direction = op_attribute(program, compare, "comparison_direction")?;
    let direction = direction.as_str()?.to_owned();
    let (left, right) = (program.operand(compare, 0), program.operand(compare, 1));
    match counter(program, op, left) {
        Some(index) => count(program, op, index, right, &direction),
        None => count(program, op, counter(program, op, right)?, left, mirrored(&direction)?),
    }
}

/// The most constants that are added to a counter.
const MAX_TERMS: usize = 16;

/// Whether `value`, in the body of the loop `op` of `trips` trips, is another one of `0..trips` in each of them.
pub fn counts_trips(program: &Program, op: OpId, value: ValueId, trips: u64) -> bool {
    let Some(last) = i128::from(trips).checked_sub(1) else { return false };
    // In trip `trip` the value is `first + step * trip`.
    let linear = |first: i128, step: i128| (first, step) == (0, 1) || (first, step) == (last, -1);
    let (mut value, mut offset, mut sign) = (value, 0_i128, 1_i128);
    for _ in 0..MAX_TERMS {
        if let Some(index) = counter(program, op, value) {
            let start = program.operands(op).nth(index).and_then(|value| constant(program, value));
            let step = step(program, op, index).unwrap_or(0);
            return start.is_some_and(|start| linear(offset + sign * start, sign * step));
        }
        let Some(inner) = program.defining_op(value).filter(|&op| program.num_operands(op) == 2)
        else {
            return false;
        };
        let (left, right) = (program.operand(inner, 0), program.operand(inner, 1));
        let constants = (constant(program, left), constant(program, right));
        match (program.op_name(inner), constants) {
            ("stablehlo.add", (Some(term), _)) => (value, offset) = (right, offset + sign * term),
            ("stablehlo.add", (_, Some(term))) => (value, offset) = (left, offset + sign * term),
            ("stablehlo.subtract", (_, Some(term))) => {
                (value, offset) = (left, offset - sign * term);
            }
            ("stablehlo.subtract", (Some(term), _)) => {
                (value, offset, sign) = (right, offset + sign * term, -sign);
            }
            _ => return false,
        }
    }
    false
}

/// The comparison with its sides swapped.
fn mirrored(direction: &str) -> Option<&'static str> {
    Some(match direction {
        "LT" => "GT",
        "LE" => "GE",
        "GT" => "LT",
        "GE" => "LE",
        "NE" => "NE",
        _ => return None,
    })
}

/// The index of `value` among the carried values of `op`, if the body changes it by a constant.
fn counter(program: &Program, op: OpId, value: ValueId) -> Option<usize> {
    let index = carried(program, op, value)?;
    step(program, op, index)?;
    Some(index)
}

/// The index of `value`, an argument of the condition or body of `op`, among the carried values.
fn carried(program: &Program, op: OpId, value: ValueId) -> Option<usize> {
    let ValueDef::Arg(block) = program.def(value) else { return None };
    (program.block_parent_op(block) == op).then(|| program.value_index(value))
}

/// The value that the body returns for carried value `index`.
fn returned(program: &Program, op: OpId, index: usize) -> Option<ValueId> {
    let terminator = program.region_terminator(op, 1)?;
    program.operands(terminator).nth(index)
}

/// The constant that each trip adds to carried value `index`.
fn step(program: &Program, op: OpId, index: usize) -> Option<i128> {
    let next = program.defining_op(returned(program, op, index)?)?;
    let sign = match program.op_name(next) {
        "stablehlo.add" => 1,
        "stablehlo.subtract" => -1,
        _ => return None,
    };
    let (left, right) = (program.operand(next, 0), program.operand(next, 1));
    if carried(program, op, left) == Some(index) {
        return Some(sign * constant(program, right)?);
    }
    (sign == 1 && carried(program, op, right) == Some(index)).then(|| constant(program, left))?
}

/// The trips until the comparison of carried value `index` with `bound` changes.
fn count(
    program: &Program,
    op: OpId,
    index: usize,
    bound: ValueId,
    direction: &str,
) -> Option<u64> {
    let start = constant(program, program.operands(op).nth(index)?)?;
    let end = constant(program, bound)?;
    let step = step(program, op, index)?;
    let (distance, step) = match direction {
        "LT" => (end - start, step),
        "LE" => (end - start + 1, step),
        "GT" => (start - end, -step),
        "GE" => (start - end + 1, -step),
        "NE" if step != 0 && (end - start) % step == 0 && (end - start) / step >= 0 => {
            return u64::try_from((end - start) / step).ok();
        }
        _ => return None,
    };
    if distance <= 0 {
        return Some(0);
    }
    // With a step away from the bound the loop does not end.
    if step <= 0 {
        return None;
    }
    u64::try_from((distance + step - 1) / step).ok()
}

/// The integer of which `value` is a constant, through conversions and copies, and through loops, even nested ones, that carry it
/// unchanged: HLO carries captured values that way.
fn constant(program: &Program, mut value: ValueId) -> Option<i128> {
    const MAX_STEPS: usize = 64;
    for _ in 0..MAX_STEPS {
        let Some(op) = program.defining_op(value) else {
            value = unchanged(program, value)?;
            continue;
        };
        if program.has_traits(op, OpTraits::CONSTANT_LIKE) {
            let ConstantValue::Element(text) = program.constant_value(op) else { return None };
            return text.parse::<i64>().ok().map(i128::from);
        }
        let is_copy = matches!(program.kind(op), OpKind::Reshape | OpKind::OptimizationBarrier)
            || program.op_name(op) == "stablehlo.convert";
        if !is_copy {
            return None;
        }
        let index = program.value_index(value);
        value = program.operands(op).nth(if program.num_results(op) > 1 { index } else { 0 })?;
    }
    None
}

/// The initial value of `value`, an argument of a loop's condition or body, if the loop carries it unchanged.
fn unchanged(program: &Program, value: ValueId) -> Option<ValueId> {
    let ValueDef::Arg(block) = program.def(value) else { return None };
    let op = program.block_parent_op(block);
    if program.kind(op) != OpKind::While {
        return None;
    }
    let index = program.value_index(value);
    let back = returned(program, op, index)?;
    if carried(program, op, back) != Some(index) {
        return None;
    }
    program.operands(op).nth(index)
}
