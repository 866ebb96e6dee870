//! Conversions that XLA adds because CPUs compute `bf16` in `f32`: one of each operand that is read, and one of each result.
//!
//! Source: XLA's `FloatNormalization`.

use crate::compilers::xla_cpu::passes::common_subexpressions::Equal;
use crate::index::{Id, OpId, ValueId};
use crate::ir::{OpKind, OpTraits, Program};
use crate::work::cached::Works;
use crate::work::execution::Execution;

/// The number of elements that are converted, besides conversions in the program itself; each loop counts as one trip.
pub fn conversions(
    program: &Program,
    works: &mut Works<'_>,
    execution: &Execution,
    (functions, equal): (&[OpId], &Equal),
) -> u128 {
    let Some(narrow) = program.strings().find("bf16") else { return 0 };
    let convert = program.strings().find("stablehlo.convert");
    let is_convert = |op: OpId| Some(program.op_name_id(op)) == convert;
    let all: Vec<_> = functions.iter().map(|&func| works.ops_inside(func)).collect();
    let ops = || {
        let ops = all.iter().flat_map(|ops| ops.iter().copied());
        ops.filter(|&op| !equal.is_repeated(program, op))
    };
    // What the program converts is not converted once more.
    let mut is_converted = vec![false; program.num_value_ids()];
    for op in ops().filter(|&op| is_convert(op)) {
        is_converted[equal.first(program.operand(op, 0)).index()] = true;
    }
    let mut elements: u128 = 0;
    for op in ops().filter(|&op| !is_convert(op) && computes(program, op)) {
        let times = execution.times_once(program.parent_block(op));
        let mut add = |value: ValueId| {
            let tensor = works.tensors.of(value);
            if tensor.element.get() == Some(narrow) {
                elements = elements.saturating_add(tensor.elements.saturating_mul(times));
            }
        };
        for operand in program.operands(op).map(|value| equal.first(value)) {
            let made = program.defining_op(operand);
            let is_constant =
                made.is_some_and(|made| program.has_traits(made, OpTraits::CONSTANT_LIKE));
            let is_converted = &mut is_converted[operand.index()];
            if !is_constant && !std::mem::replace(is_converted, true) {
                add(operand);
            }
        }
        program.op_results(op).for_each(add);
    }
    elements
}

/// Whether CPUs compute the `bf16` op `op` in `f32`: not control flow, calls, barriers and constants. It is no conversion.
fn computes(program: &Program, op: OpId) -> bool {
    let is_kept = matches!(
        program.kind(op),
        OpKind::While
            | OpKind::Case
            | OpKind::If
            | OpKind::Call
            | OpKind::Composite
            | OpKind::CustomCall
            | OpKind::OptimizationBarrier
            | OpKind::Constant
    );
    !is_kept && !program.has_traits(op, OpTraits::TERMINATOR)
}
