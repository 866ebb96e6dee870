//! The transposes of results of dots after which the order of dims is kept.

use super::dim_orders::{is_moved, DimOrder};
use super::operand_copies::Layouts;
use crate::compilers::target::Compiler;
use crate::index::{OpId, ValueId};
use crate::ir::{OpKind, OpTraits, Program};
use crate::mlir::op_attribute;

/// How many conversions between a product and a transpose, or after the latter, are looked through.
const MAX_CONVERSIONS: u32 = 2;

/// The transposes of results of dots that elementwise ops and reductions read.
pub(super) fn first_transposes(program: &Program, compiler: Compiler) -> Vec<OpId> {
    let Some(name) = program.strings().find("stablehlo.transpose") else { return Vec::new() };
    if !program.has_any(&[OpKind::DotGeneral]) {
        return Vec::new();
    }
    let mut layouts = Layouts::new(program, compiler);
    let is_first = |&op: &OpId| {
        program.op_name_id(op) == name
            && !program.is_erased(op)
            && comes_from_product(program, program.operand(op, 0))
            && permutation(program, op).is_some_and(|order| moves(program, op, &order))
            && is_computed_with(program, program.result(op, 0), MAX_CONVERSIONS)
    };
    let mut found: Vec<OpId> = program.op_ids().filter(is_first).collect();
    found.retain(|&op| !layouts.swaps_product(program, op));
    found
}

/// Whether `value` is the result of a dot, or of at most [`MAX_CONVERSIONS`] conversions of one.
fn comes_from_product(program: &Program, mut value: ValueId) -> bool {
    for _ in 0..=MAX_CONVERSIONS {
        match program.defining_op(value) {
            Some(op) if program.kind(op) == OpKind::DotGeneral => return true,
            Some(op) if is_conversion(program, op) => value = program.operand(op, 0),
            _ => return false,
        }
    }
    false
}

/// Whether an elementwise op besides conversions, of which at most `left` are looked through, or a reduction reads `value`.
fn is_computed_with(program: &Program, value: ValueId, left: u32) -> bool {
    program.users(value).any(|user| {
        if is_conversion(program, user) {
            return left > 0 && is_computed_with(program, program.result(user, 0), left - 1);
        }
        is_elementwise(program, user) || program.kind(user) == OpKind::Reduce
    })
}

fn is_conversion(program: &Program, op: OpId) -> bool {
    program.op_name(op) == "stablehlo.convert"
}

/// Whether `op` is elementwise, with one result.
pub(super) fn is_elementwise(program: &Program, op: OpId) -> bool {
    program.has_traits(op, OpTraits::ELEMENTWISE)
        && program.num_regions(op) == 0
        && program.num_results(op) == 1
}

/// The permutation of a transpose.
pub(super) fn permutation(program: &Program, op: OpId) -> Option<DimOrder> {
    let order = op_attribute(program, op, "permutation")?.as_ints()?;
    order.into_iter().map(|dim| usize::try_from(dim).ok()).collect()
}

/// Whether a transpose by `order` moves elements.
fn moves(program: &Program, op: OpId, order: &[usize]) -> bool {
    let sizes = program.value_type(program.operand(op, 0)).static_shape();
    sizes.is_some_and(|sizes| is_moved(order, &sizes))
}
