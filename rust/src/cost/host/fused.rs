//! Which ops XLA fuses with the ops that make their operands, and which it computes anew in each of their users.
//!
//! Source: XLA's `InstructionFusion`, `CpuInstructionFusion` and `LibraryRewriter`.

use super::super::fusion::is_splat;
use super::super::work::{Measure, Movement};
use super::super::works::Works;
use super::layouts::Layouts;
use super::stepwise::after_first_step;
use crate::index::{OpId, ValueId};
use crate::ir::{OpKind, OpTraits, Program};

/// The fewest elements that a library reduces, or computes for a reduction.
const LEAST_REDUCED: u128 = 4096;

/// Whether `op` is a reduction that a library computes: a sum, or the largest or the smallest, of many 32-bit floats.
pub fn is_sum(program: &Program, works: &mut Works<'_>, op: OpId) -> bool {
    if program.kind(op) != OpKind::Reduce || program.num_results(op) != 1 {
        return false;
    }
    let operand = program.operand(op, 0);
    if works.tensors.of(operand).elements < LEAST_REDUCED {
        return false;
    }
    let element = works.tensors.element(program.result(op, 0));
    let region =
        program.op_regions(op).next().and_then(|region| program.region_entry(region).get());
    let inner = region.and_then(|block| program.block_ops(block).next());
    let is_known = |op: OpId| {
        let name = program.op_name(op);
        matches!(name, "stablehlo.add" | "stablehlo.maximum" | "stablehlo.minimum")
    };
    element == "f32" && inner.is_some_and(is_known)
}

/// Whether a reduction that a library computes takes in `op`, which has one result, if nothing else needs that.
pub fn is_for_sums(program: &Program, works: &mut Works<'_>, op: OpId) -> bool {
    let is_large = works.tensors.of(program.result(op, 0)).elements >= LEAST_REDUCED;
    (is_large || program.has_traits(op, OpTraits::CONSTANT_LIKE))
        && is_known_to_library(program.op_name(op))
}

/// Whether a library computes the op of this name for a reduction.
fn is_known_to_library(name: &str) -> bool {
    let name = if name == "chlo.square" { "stablehlo.multiply" } else { name };
    matches!(
        name.strip_prefix("stablehlo.").unwrap_or_default(),
        "abs"
            | "add"
            | "broadcast_in_dim"
            | "cbrt"
            | "ceil"
            | "constant"
            | "convert"
            | "cosine"
            | "divide"
            | "exponential"
            | "floor"
            | "log"
            | "logistic"
            | "maximum"
            | "minimum"
            | "multiply"
            | "negate"
            | "power"
            | "reshape"
            | "round_nearest_even"
            | "rsqrt"
            | "sign"
            | "sine"
            | "sqrt"
            | "subtract"
            | "tanh"
    )
}

/// Whether `op` fuses with the ops that make its operands.
pub fn fuses(program: &Program, works: &mut Works<'_>, layouts: &mut Layouts, op: OpId) -> bool {
    match works.movement(op) {
        Movement::Pointwise => true,
        Movement::Window => !is_apart(program, works, layouts, op),
        Movement::Reduce => {
            program.kind(op) == OpKind::Reduce
                && after_first_step(program, works, layouts, op).is_none()
        }
        Movement::Update => program.kind(op) != OpKind::Scatter,
        _ => false,
    }
}

/// The most operands of a concatenation that fuses, and the fewest elements of the last dim of one along that dim that does not.
const MAX_CONCATENATED: usize = 8;
const LEAST_LAST_DIM: i64 = 128;

/// Whether `op` is a concatenation that is a kernel of its own.
pub fn is_apart(program: &Program, works: &mut Works<'_>, layouts: &mut Layouts, op: OpId) -> bool {
    let Some(dim) = layouts.concatenated(program, op) else { return false };
    let sizes = works.tensors.of(program.result(op, 0)).dims.as_deref().unwrap_or_default();
    let is_last = sizes.len() > 1 && dim + 1 == sizes.len();
    program.num_operands(op) > MAX_CONCATENATED || is_last && sizes[dim] >= LEAST_LAST_DIM
}

/// Whether the result of `op` is another name of its only operand.
pub fn is_name(program: &Program, works: &mut Works<'_>, layouts: &mut Layouts, op: OpId) -> bool {
    if program.num_operands(op) != 1 || program.num_results(op) != 1 {
        return false;
    }
    works.movement(op) == Movement::Alias || layouts.keeps_places(program, works, op)
}

/// Whether XLA computes `op`, an elementwise one or data movement, only once. Hosts convert what they compute in `f32` to `bf16`,
/// which is expensive.
pub fn is_expensive(program: &Program, works: &mut Works<'_>, layouts: &Layouts, op: OpId) -> bool {
    let Some(result) = program.op_results(op).next() else { return true };
    let is_computed =
        works.movement(op) == Movement::Pointwise && program.op_name(op) != "stablehlo.select";
    if layouts.is_on_host() && is_computed && works.tensors.element(result) == "bf16" {
        return true;
    }
    let element = works.tensors.element(result);
    let (is_complex, is_integer) =
        (element.starts_with("complex"), element.starts_with('i') || element.starts_with("ui"));
    match program.op_name(op) {
        "stablehlo.abs" | "stablehlo.cosine" | "stablehlo.sign" | "stablehlo.sine"
        | "stablehlo.tan" => is_complex,
        "stablehlo.divide" | "stablehlo.remainder" => {
            let divisor = program.operands(op).nth(1);
            let is_divide = program.op_name(op) == "stablehlo.divide";
            match divisor {
                // A division by what is broadcast multiplies with the inverse.
                Some(value) if is_divide && !is_integer => !is_broadcast(program, value),
                Some(value) => !is_integer || !is_splat_value(program, value),
                None => true,
            }
        }
        "stablehlo.gather" | "stablehlo.map" => true,
        _ => works
            .family(op)
            .is_some_and(|family| matches!(family.measure, Measure::PerElement(_, 1..))),
    }
}

/// Whether `value` is a constant all of whose elements are equal, or a broadcast.
fn is_broadcast(program: &Program, value: ValueId) -> bool {
    let op = program.defining_op(value);
    op.is_some_and(|op| program.op_name(op) == "stablehlo.broadcast_in_dim")
        || is_splat_value(program, value)
}

/// Whether `value` is a constant all of whose elements are equal, or a broadcast of one.
fn is_splat_value(program: &Program, value: ValueId) -> bool {
    let Some(op) = program.defining_op(value) else { return false };
    if program.has_traits(op, OpTraits::CONSTANT_LIKE) {
        return is_splat(program, op);
    }
    let operand = program.operands(op).next();
    program.op_name(op) == "stablehlo.broadcast_in_dim"
        && operand.and_then(|value| program.defining_op(value)).is_some_and(|op| {
            program.has_traits(op, OpTraits::CONSTANT_LIKE) && is_splat(program, op)
        })
}

/// Whether `op` reads at most one operand of as many dims as its result, or fewer elements than it writes.
pub fn reads_little(program: &Program, works: &mut Works<'_>, op: OpId) -> bool {
    let result = program.result(op, 0);
    let rank = rank(works, result);
    let is_made_of_nothing = |value: ValueId| {
        let op = program.defining_op(value);
        op.is_some_and(|op| {
            let name = program.op_name(op);
            matches!(name, "stablehlo.broadcast_in_dim" | "stablehlo.iota")
                || program.has_traits(op, OpTraits::CONSTANT_LIKE) && is_splat(program, op)
        })
    };
    let operands: Vec<ValueId> = program.operands(op).collect();
    let mut large = 0;
    let mut elements: u128 = 0;
    for (index, &value) in operands.iter().enumerate() {
        if !operands[..index].contains(&value) {
            elements = elements.saturating_add(works.tensors.of(value).elements);
        }
        large += usize::from(!is_made_of_nothing(value) && self::rank(works, value) >= rank);
    }
    large <= 1 || elements <= works.tensors.of(result).elements
}

/// The number of dims of `value` that are larger than one.
fn rank(works: &mut Works<'_>, value: ValueId) -> usize {
    let tensor = works.tensors.of(value);
    tensor.dims.as_deref().map_or(0, |dims| dims.iter().filter(|&&size| size > 1).count())
}
