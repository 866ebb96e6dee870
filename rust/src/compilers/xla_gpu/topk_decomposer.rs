//! `topk-decomposer`: selections of the largest elements that are sorts of all elements.
//!
//! XLA for GPUs has a kernel for the at most 16 largest elements of rows of at least 1024 numbers in `f32` or `bf16`. Otherwise it
//! sorts the rows with their indices, and keeps the first elements: both are written in full.
//!
//! Source: XLA's `TopkDecomposer` and `TopkSpecializer`.

use crate::context::Context;
use crate::error::Result;
use crate::index::{OpId, ValueId};
use crate::ir::{InsertPoint, NewOp, Place, Program, Type};
use crate::spmd::devices::{Devices, Purpose};
use crate::spmd::emit::Emitter;

/// The most elements that the kernel selects, the fewest that it selects from, and the share of these from which on it sorts.
const MOST_SELECTED: i64 = 16;
const LEAST_ELEMENTS: i64 = 1024;
const SORTED_SHARE: f64 = 0.85;
/// The most dims that the kernel has.
const MOST_DIMS: usize = 2;

/// Runs the pass on the module.
pub fn run(program: &mut Program, context: &mut Context<'_>) -> Result<()> {
    context.progress("topk-decomposer", 0, 1)?;
    let Some(name) = program.strings().find("chlo.top_k") else { return Ok(()) };
    for op in program.ops_named_in_pre_order(&[name]) {
        if !has_kernel(program, op) {
            sort(program, op);
        }
    }
    Ok(())
}

/// Whether a kernel selects the largest elements for `op`; so it is said of what has dynamic dims.
fn has_kernel(program: &Program, op: OpId) -> bool {
    let shape = |value| program.value_type(value).static_shape();
    let (Some(of), Some(selected)) = (shape(program.operand(op, 0)), shape(program.result(op, 0)))
    else {
        return true;
    };
    let (Some(&all), Some(&count)) = (of.last(), selected.last()) else { return true };
    let is_number = matches!(element(program, op), "f32" | "bf16");
    is_number
        && of.len() <= MOST_DIMS
        && count <= MOST_SELECTED
        && all >= LEAST_ELEMENTS
        && (count as f64) < SORTED_SHARE * all as f64
}

/// The element type of the operand of `op`.
fn element(program: &Program, op: OpId) -> &str {
    match program.value_type(program.operand(op, 0)) {
        Type::RankedTensor { element, .. } => program.str(element.text),
        _ => "",
    }
}

/// Replaces `op` by the first elements of the sorted rows.
fn sort(program: &mut Program, op: OpId) {
    let is_float = element(program, op).starts_with(['f', 'b']);
    let input = program.operand(op, 0);
    let [values, indices] = [0, 1].map(|index| program.result(op, index));
    let mut emit = Emitter::new(program, Devices::of(Purpose::Count));
    emit.go_before(op);
    let (shape, selected) = (emit.shape(input), emit.shape(values));
    let Some(last) = shape.len().checked_sub(1) else { return };
    let (own, index) = (emit.type_of(input), emit.type_of(indices));
    let all = emit.like(&shape, index);
    let places =
        emit.op("stablehlo.iota", &[], all, &[("iota_dimension", format!("{last} : i64"))]);
    let scalars = [own, index].map(|ty| emit.like(&[], ty));
    let bit = emit.program.tensor_type_of(&[], "i1");
    let program = &mut *emit.program;
    let at = InsertPoint::at(Place::Before(op)).with_loc(program.loc(op));
    let new = NewOp::new("stablehlo.sort", &[input, places], &[own, all]);
    let new = new.attr("dimension", format!("{last} : i64")).attr("is_stable", "true").regions(1);
    let sorted = program.build(new, at);
    let [value, place] = scalars;
    let block = program.add_block(program.region(sorted, 0), &[value, value, place, place]);
    let inside = InsertPoint::at(Place::End(block)).with_loc(program.loc(op));
    let compared = [0, 1].map(|index| program.block_arg(block, index));
    let how = if is_float { "TOTALORDER" } else { "SIGNED" };
    let compare = NewOp::new("stablehlo.compare", &compared, &[bit])
        .attr("comparison_direction", "#stablehlo<comparison_direction GT>")
        .attr("compare_type", format!("#stablehlo<comparison_type {how}>"));
    let is_larger = program.build_value(compare, inside);
    program.build(NewOp::new("stablehlo.return", &[is_larger], &[]), inside);
    let found: [ValueId; 2] = [0, 1].map(|index| program.result(sorted, index));
    for (found, old) in found.into_iter().zip([values, indices]) {
        let first = emit.slice(found, &vec![0; shape.len()], &selected);
        emit.program.replace_all_uses(old, first);
    }
    emit.program.erase_op(op);
}
