//! Reductions that XLA's CPU library (YNNPACK) computes, and the producers that such a reduction fuses.
//!
//! Source: XLA's `LibraryRewriter`.

use crate::compilers::xla_cpu::fusion::op_names::Named;
use crate::index::OpId;
use crate::ir::{OpKind, OpTraits, Program};
use crate::work::cached::Works;

/// The fewest elements of a reduction that a library computes, and of its fused producers.
const LEAST_REDUCED: u128 = 4096;

/// Whether a library computes `op`: a sum, maximum or minimum of many 32-bit floats.
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

/// Whether a library reduction fuses `op`, which has one result, if that has no other use.
pub fn is_for_sums(program: &Program, works: &mut Works<'_>, (op, named): (OpId, &Named)) -> bool {
    named.is_known_to_library
        && program.num_results(op) > 0
        && (!named.converts || is_read_by_library(works.tensors.element(program.operand(op, 0))))
        && (works.tensors.of(program.result(op, 0)).elements >= LEAST_REDUCED
            || program.has_traits(op, OpTraits::CONSTANT_LIKE))
}

/// Whether a library converts elements of this type to floats. Others are converted and materialized before.
fn is_read_by_library(element: &str) -> bool {
    matches!(element, "f32" | "bf16" | "f64" | "i8" | "ui8")
}
