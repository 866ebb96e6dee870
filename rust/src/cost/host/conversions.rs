//! The conversions that hosts, which compute `bf16` in `f32`, add to a program: of each value that ops read, once, and of each result.
//!
//! Source: XLA's `FloatNormalization`.

use super::super::execution::Execution;
use super::super::works::Works;
use super::equal::Equal;
use crate::index::{OpId, ValueId};
use crate::ir::{OpKind, OpTraits, Program};
use rustc_hash::FxHashSet;

/// The elements that are converted besides those that the program itself converts, each loop counted once.
pub fn conversions(
    program: &Program,
    works: &mut Works<'_>,
    execution: &Execution,
    (functions, equal): (&[OpId], &Equal),
) -> u128 {
    let Some(narrow) = program.strings().find("bf16") else { return 0 };
    let ops = functions.iter().flat_map(|&func| works.ops_inside(func).to_vec());
    let is_first = |op: &OpId| !equal.is_repeated(program, *op);
    let ops: Vec<OpId> = ops.filter(is_first).collect();
    // What the program converts is not converted once more.
    let converts = |op: &&OpId| program.op_name(**op) == "stablehlo.convert";
    let converted = ops.iter().filter(converts).map(|&op| equal.first(program.operand(op, 0)));
    let mut converted: FxHashSet<ValueId> = converted.collect();
    let mut elements: u128 = 0;
    for &op in ops.iter().filter(|op| computes(program, **op)) {
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
            if !is_constant && converted.insert(operand) {
                add(operand);
            }
        }
        program.op_results(op).for_each(add);
    }
    elements
}

/// Whether hosts compute `op`, which is not control flow, in `f32` where it has `bf16`.
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
    !is_kept
        && !program.has_traits(op, OpTraits::TERMINATOR)
        && program.op_name(op) != "stablehlo.convert"
}
