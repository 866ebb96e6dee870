//! Dots that contract at most one element: XLA multiplies the two operands, broadcast to the shape of the result, which fuses with
//! other elementwise ops.
//!
//! Source: `HandleDot` of XLA's `AlgebraicSimplifier`.

use crate::index::{OpId, ValueId};
use crate::ir::{int_array, InsertPoint, NewOp, OpKind, Place, Program, Type};
use crate::rules::{Shapes, SignatureView};
use crate::stablehlo::dims::DotDims;
use std::borrow::Cow;

/// `program` with these dots replaced by multiplications.
pub fn multiplied(program: Cow<'_, Program>) -> Cow<'_, Program> {
    let products: Vec<(OpId, DotDims)> = program
        .op_ids()
        .filter(|&op| program.kind(op) == OpKind::DotGeneral && !program.is_erased(op))
        .filter_map(|op| Some((op, outer_dims(&program, op)?)))
        .collect();
    if products.is_empty() {
        return program;
    }
    let mut program = program.into_owned();
    for (op, dims) in products {
        multiply(&mut program, op, &dims);
    }
    Cow::Owned(program)
}

/// The dims of `op`, if it is a dot that contracts at most one element and has one element type.
fn outer_dims(program: &Program, op: OpId) -> Option<DotDims> {
    let shapes = Shapes::new(&[], &[]);
    let view = SignatureView::of(program, program.signature(op).get()?, &shapes);
    let dims: DotDims = DotDims::read(view.attribute("dot_dimension_numbers")?)?;
    let shape = shape_of(program, program.operand(op, 0))?;
    let is_outer = dims.lhs_contracting.iter().all(|&dim| shape.get(dim) == Some(&1));
    let element = |value: ValueId| match program.value_type(value) {
        Type::RankedTensor { element, .. } => Some(element.text),
        _ => None,
    };
    let own = element(program.result(op, 0))?;
    let are_alike = program.operands(op).all(|operand| element(operand) == Some(own));
    (is_outer && are_alike).then_some(dims)
}

fn shape_of(program: &Program, value: ValueId) -> Option<Vec<i64>> {
    program.value_type(value).static_shape()
}

/// Replaces `op`, a dot with these `dims`, by a multiplication.
fn multiply(program: &mut Program, op: OpId, dims: &DotDims) {
    let [lhs, rhs] = [0, 1].map(|index| program.operand(op, index));
    let of_rhs = shape_of(program, rhs).map_or(0, |shape| shape.len());
    let of_rhs = of_rhs - dims.rhs_batching.len() - dims.rhs_contracting.len();
    let result = program.result(op, 0);
    let rank = shape_of(program, result).map_or(0, |shape| shape.len());
    let batch = dims.lhs_batching.len();
    let lhs = spread(program, op, lhs, (&dims.lhs_batching, &dims.lhs_contracting, batch));
    let rhs = spread(program, op, rhs, (&dims.rhs_batching, &dims.rhs_contracting, rank - of_rhs));
    let ty = program.type_of(result);
    let product = made(program, op, NewOp::new("stablehlo.multiply", &[lhs, rhs], &[ty]));
    program.replace_all_uses(result, product);
    program.erase_op(op);
}

/// `value`, an operand of `op`, broadcast to the shape of its result: its batch dims come first, its free dims begin at dim
/// `first`.
fn spread(
    program: &mut Program,
    op: OpId,
    value: ValueId,
    (batch, contracting, first): (&[usize], &[usize], usize),
) -> ValueId {
    let like = program.type_of(value);
    let shape = shape_of(program, value).unwrap_or_default();
    let mut next = first;
    let mut places = Vec::with_capacity(shape.len());
    let mut kept = Vec::with_capacity(shape.len());
    for (dim, &size) in shape.iter().enumerate() {
        if contracting.contains(&dim) {
            continue;
        }
        kept.push(size);
        let in_batch = batch.iter().position(|&other| other == dim);
        places.push(in_batch.unwrap_or(next) as i64);
        next += usize::from(in_batch.is_none());
    }
    let mut value = value;
    if kept.len() < shape.len() {
        let ty = program.tensor_type(&kept, like);
        value = made(program, op, NewOp::new("stablehlo.reshape", &[value], &[ty]));
    }
    let ty = program.type_of(program.result(op, 0));
    let places = int_array(&places);
    let new = NewOp::new("stablehlo.broadcast_in_dim", &[value], &[ty]);
    made(program, op, new.attr("broadcast_dimensions", places))
}

/// The result of `new`, an op that is inserted before `op`.
fn made(program: &mut Program, op: OpId, new: NewOp<'_>) -> ValueId {
    let at = InsertPoint::at(Place::Before(op)).with_loc(program.loc(op));
    let new = program.build(new, at);
    program.sign_op(new);
    program.result(new, 0)
}
