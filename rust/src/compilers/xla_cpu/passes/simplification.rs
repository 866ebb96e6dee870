//! The rewrites of XLA:CPU before buffer assignment that change which ops use what: barriers are dropped, equal ops are merged,
//! dots that contract at most one element become multiplications ([`super::dot_strength_reduction`]), and adds are folded into scatters
//! ([`super::scatter_sums`]).
//!
//! Rematerialization marks ops to be recomputed by a barrier. On CPUs the recomputed ops are merged with the original ones, whose
//! results stay live; only ops that depend on a collective are computed twice. A minimum or maximum of the operand of an earlier
//! `argmin` or `argmax` is the value that this has found.
//!
//! Source: XLA's `OptimizationBarrierExpander`, `HloCSE`, and `HandleReduce` of its `AlgebraicSimplifier`.

use crate::compilers::xla_cpu::passes::common_subexpressions::{function, Equal};
use crate::compilers::xla_cpu::passes::dot_strength_reduction::multiplied;
use crate::compilers::xla_cpu::passes::scatter_sums::scattered;
use crate::index::{BlockId, OpId, ValueId};
use crate::ir::{OpKind, Program};
use crate::mlir::op_attribute;
use crate::work::cached::Works;
use crate::work::execution::Execution;
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// `program` after these rewrites.
pub fn simplified(program: Cow<'_, Program>) -> Cow<'_, Program> {
    let program = scattered(multiplied(program));
    if !program.has_any(&[OpKind::OptimizationBarrier, OpKind::Reduce]) {
        return program;
    }
    let (replaced, ops) = replacements(&program);
    if replaced.is_empty() {
        return program;
    }
    let mut program = program.into_owned();
    for (value, by) in replaced {
        program.replace_all_uses(value, by);
    }
    for op in ops.into_iter().rev() {
        let is_used = program.op_results(op).any(|value| program.users(value).next().is_some());
        if !is_used && !program.is_erased(op) {
            program.erase_op(op);
        }
    }
    Cow::Owned(program)
}

/// Pairs of a value and the equal value that replaces it, and the ops that may be dead then, in program order.
fn replacements(program: &Program) -> (Vec<(ValueId, ValueId)>, Vec<OpId>) {
    let mut works = Works::new(program);
    let execution = Execution::new(program, &mut works);
    let functions: Vec<OpId> =
        execution.functions.iter().map(|&func| program.func_op(func)).collect();
    let has_barriers = program.has_any(&[OpKind::OptimizationBarrier]);
    let equal = Equal::new(program, &mut works, &functions, has_barriers);
    let (mut replaced, mut ops) = (Vec::new(), Vec::new());
    // The ops so far that find a largest or a least element of a value, with its place.
    let mut found: FxHashMap<ValueId, Vec<OpId>> = FxHashMap::default();
    for &func in &functions {
        for &op in works.ops_inside(func).iter() {
            let before = replaced.len();
            if has_barriers {
                let firsts = program.op_results(op).map(|value| (value, equal.first(value)));
                replaced.extend(firsts.filter(|(value, first)| value != first));
            }
            if program.kind(op) == OpKind::Reduce && program.num_results(op) <= 2 {
                let others = found.entry(equal.first(program.operand(op, 0))).or_default();
                match others.iter().find(|&&other| finds_too(program, other, op)) {
                    Some(&other) if replaced.len() == before => {
                        replaced.push((program.result(op, 0), program.result(other, 0)));
                    }
                    _ if program.num_results(op) == 2 => others.push(op),
                    _ => {}
                }
            }
            if replaced.len() > before {
                ops.push(op);
            }
        }
    }
    (replaced, ops)
}

/// Whether `other`, an `argmin` or `argmax` with its value, computes the minimum or maximum `op`.
fn finds_too(program: &Program, other: OpId, op: OpId) -> bool {
    let direction = match function(program, op).map(|name| program.str(name)) {
        Some("stablehlo.minimum") => "LT",
        Some("stablehlo.maximum") => "GT",
        _ => return false,
    };
    let dims = |op| op_attribute(program, op, "dimensions")?.as_ints();
    let region = program.op_regions(other).next();
    let block = region.and_then(|region| program.region_entry(region).get());
    let compares = |block: BlockId| {
        let arguments: Vec<ValueId> = program.block_args(block).step_by(2).collect();
        let is_it = |inner: OpId| {
            let way = op_attribute(program, inner, "comparison_direction");
            program.operands(inner).eq(arguments.iter().copied())
                && way.is_some_and(|way| way.as_str() == Some(direction))
        };
        program.block_ops(block).any(is_it)
    };
    program.parent_block(other) == program.parent_block(op)
        && dims(other) == dims(op)
        && block.is_some_and(compares)
}
