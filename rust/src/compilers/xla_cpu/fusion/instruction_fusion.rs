//! Instruction fusion: which ops fuse with their producers, and which producers are duplicated into each consumer.
//!
//! Source: XLA's `InstructionFusion` and `CpuInstructionFusion`.

use crate::compilers::accelerator::fusion::is_splat;
use crate::compilers::xla_cpu::fusion::op_names::{Expense, Named};
use crate::compilers::xla_cpu::layout_assignment::operand_copies::Layouts;
use crate::compilers::xla_cpu::passes::tree_reduction_rewriter::after_first_step;
use crate::index::{OpId, ValueId};
use crate::ir::{OpKind, OpTraits, Program};
use crate::work::cached::Works;
use crate::work::ops::Movement;

/// Whether `op` fuses with its producers; `is_apart` says whether it is a concatenation that does not.
pub fn fuses(
    program: &Program,
    works: &mut Works<'_>,
    layouts: &mut Layouts,
    (op, is_apart): (OpId, bool),
) -> bool {
    let by_priority = layouts.compiler().fuses_by_priority();
    match works.movement(op) {
        Movement::Pointwise => true,
        Movement::Reduce | Movement::Update if by_priority => true,
        Movement::Window => {
            !is_apart && (layouts.compiler().gathers_computed() || !is_gather(program, op))
        }
        Movement::Reduce => {
            program.kind(op) == OpKind::Reduce
                && after_first_step(program, works, layouts, op).is_none()
        }
        Movement::Update => program.kind(op) != OpKind::Scatter,
        _ => false,
    }
}

fn is_gather(program: &Program, op: OpId) -> bool {
    program.op_name(op) == "stablehlo.gather"
}

/// The most operands of a concatenation that fuses, and the least size of a last dim along which concatenations do not fuse.
const MAX_CONCATENATED: usize = 8;
const LEAST_LAST_DIM: i64 = 128;

/// Whether `op` is a concatenation that does not fuse.
pub fn is_apart(program: &Program, works: &mut Works<'_>, layouts: &mut Layouts, op: OpId) -> bool {
    if layouts.compiler().fuses_by_priority() {
        return false;
    }
    let Some(dim) = layouts.concatenated(program, op) else { return false };
    let sizes = works.tensors.of(program.result(op, 0)).dims.as_deref().unwrap_or_default();
    let is_last = sizes.len() > 1 && dim + 1 == sizes.len();
    program.num_operands(op) > MAX_CONCATENATED || is_last && sizes[dim] >= LEAST_LAST_DIM
}

/// Whether XLA does not duplicate `op`, which is elementwise or moves data. CPUs compute `bf16` in `f32`, and the conversion back
/// is expensive.
pub fn is_expensive(
    program: &Program,
    works: &mut Works<'_>,
    layouts: &Layouts,
    (op, named): (OpId, &Named),
) -> bool {
    let Some(result) = program.op_results(op).next() else { return true };
    let is_computed = works.movement(op) == Movement::Pointwise && !named.is_select;
    if layouts.is_on_host() && is_computed && works.tensors.element(result) == "bf16" {
        return true;
    }
    let is_of =
        |prefix: &str, works: &mut Works<'_>| works.tensors.element(result).starts_with(prefix);
    let is_integer = |works: &mut Works<'_>| is_of("i", works) || is_of("ui", works);
    let divisor = program.operands(op).nth(1);
    match named.expense {
        Expense::Never => false,
        Expense::Always => true,
        Expense::OfComplex => is_of("complex", works),
        Expense::Division if !is_integer(works) => {
            // A division by what is broadcast multiplies with the inverse.
            divisor.is_none_or(|value| !is_broadcast(program, value))
        }
        Expense::Division => divisor.is_none_or(|value| !is_splat_value(program, value)),
        Expense::Remainder => {
            divisor.is_none_or(|value| !is_integer(works) || !is_splat_value(program, value))
        }
    }
}

/// Whether `value` is a splat constant, or a broadcast.
fn is_broadcast(program: &Program, value: ValueId) -> bool {
    let op = program.defining_op(value);
    op.is_some_and(|op| program.op_name(op) == "stablehlo.broadcast_in_dim")
        || is_splat_value(program, value)
}

/// Whether `value` is a splat constant, or a broadcast of one.
fn is_splat_value(program: &Program, value: ValueId) -> bool {
    splat(program, value).is_some()
}

/// The splat constant that `value` is, or is a broadcast of.
pub fn splat(program: &Program, value: ValueId) -> Option<OpId> {
    let mut op = program.defining_op(value)?;
    if program.op_name(op) == "stablehlo.broadcast_in_dim" {
        op = program.defining_op(program.operands(op).next()?)?;
    }
    (program.has_traits(op, OpTraits::CONSTANT_LIKE) && is_splat(program, op)).then_some(op)
}

/// Whether the result of `op` is computed from an intermediate that it writes: the `f32` of a `bf16` result, another layout,
/// partial sums, or the result of a merged dot. Consumers that fuse compute what they need of it.
pub fn has_tail(program: &Program, works: &mut Works<'_>, layouts: &mut Layouts, op: OpId) -> bool {
    let Some(result) = program.op_results(op).next() else { return false };
    layouts.image_groups(program, op) == 1
        && (layouts.widens(program, works, op, result)
            || layouts.moves_result(program, works, op)
            || layouts.merged.parts.contains_key(&op)
            || layouts.split_k(program, works, op) > 1)
}
