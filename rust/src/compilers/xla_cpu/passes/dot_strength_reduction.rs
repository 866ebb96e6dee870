//! Dots as multiplications and sums: `dot-strength-reduction`.
//!
//! XLA multiplies the two operands, broadcast to the shape of the result and the contracting dims, and adds up along the latter;
//! all of this fuses with other elementwise ops. All compilers do so if a dot contracts at most one element. XLA for GPUs also does
//! so if an operand has contracting and batch dims alone, and no kernel for matrices would pay: both operands are such vectors,
//! there are several batch dims, or the matrix is small.
//!
//! Source: XLA's `DotStrengthReduction`, and `HandleDot` of its `AlgebraicSimplifier`.

use crate::context::Context;
use crate::error::Result;
use crate::index::{OpId, TypeId, ValueId};
use crate::ir::{int_array, InsertPoint, NewOp, OpKind, Place, Program, Type};
use crate::mlir::op_attribute;
use crate::rules::{Shapes, SignatureView};
use crate::stablehlo::dims::DotDims;
use std::borrow::Cow;

/// Matrices times vectors are kernels of their own from this many elements of the two operands on.
const LEAST_ELEMENTS: i64 = 10_000_000;

/// A dot by its dims.
struct Dot {
    dims: DotDims,
    /// The sizes of the batch dims, of the free dims of both operands, and of the contracting dims.
    batch: Vec<i64>,
    free: [Vec<i64>; 2],
    contracted: Vec<i64>,
    /// Whether its precision is the default one.
    has_default_precision: bool,
}

impl Dot {
    /// `op`, if it is a dot with static dims.
    fn of(program: &Program, op: OpId) -> Option<Self> {
        let shapes = Shapes::new(&[], &[]);
        let view = SignatureView::of(program, program.signature(op).get()?, &shapes);
        let dims = DotDims::read(view.attribute("dot_dimension_numbers")?)?;
        let [left, right] = [0, 1].map(|index| shape_of(program, program.operand(op, index)));
        let (left, right) = (left?, right?);
        let at = |list: &[usize]| list.iter().map(|&dim| left.get(dim).copied()).collect();
        let (batch, contracted): (Option<Vec<i64>>, Option<Vec<i64>>) =
            (at(&dims.lhs_batching), at(&dims.lhs_contracting));
        let (batch, contracted) = (batch?, contracted?);
        let has_default_precision = has_default_precision(program, op);
        let mut dot =
            Self { dims, batch, free: Default::default(), contracted, has_default_precision };
        dot.free = [(0, left), (1, right)].map(|(side, shape)| {
            let [.., free] = dot.dims_of(program, op, side);
            free.into_iter().map(|dim| shape[dim]).collect()
        });
        Some(dot)
    }
    /// The batch, contracting and free dims of operand `side` of `op`.
    fn dims_of(&self, program: &Program, op: OpId, side: usize) -> [Vec<usize>; 3] {
        let (batching, contracting) = match side {
            0 => (&self.dims.lhs_batching, &self.dims.lhs_contracting),
            _ => (&self.dims.rhs_batching, &self.dims.rhs_contracting),
        };
        let rank = shape_of(program, program.operand(op, side)).map_or(0, |shape| shape.len());
        let is_free = |dim: &usize| !batching.contains(dim) && !contracting.contains(dim);
        let free = (0..rank).filter(is_free).collect();
        [batching.iter().copied().collect(), contracting.iter().copied().collect(), free]
    }
    /// Whether it contracts at most one element.
    fn is_outer(&self) -> bool {
        self.contracted.iter().all(|&size| size == 1)
    }
    /// Whether XLA for GPUs reduces it.
    fn is_reduced_on_gpus(&self) -> bool {
        let [rows, columns] = self.free.each_ref().map(|dims| elements(dims));
        let is_small = rows.saturating_add(columns).saturating_mul(elements(&self.contracted))
            < LEAST_ELEMENTS;
        let has_several_batch_dims = self.batch.iter().filter(|&&size| size > 1).count() > 1;
        let has_no_kernel = has_several_batch_dims || !self.has_default_precision;
        self.is_outer()
            || rows.min(columns) == 1 && (rows.max(columns) == 1 || is_small || has_no_kernel)
    }
}

/// Whether `op`, a product, is computed in the precision that products have by default.
pub fn has_default_precision(program: &Program, op: OpId) -> bool {
    let precisions = op_attribute(program, op, "precision_config");
    let mut precisions = precisions.iter().filter_map(|it| it.items()).flatten();
    precisions.all(|precision| precision.as_str().is_none_or(|it| it == "DEFAULT"))
        && op_attribute(program, op, "algorithm").is_none()
}

/// The product of sizes.
fn elements(sizes: &[i64]) -> i64 {
    sizes.iter().fold(1, |product: i64, &size| product.saturating_mul(size))
}

/// `program` with multiplications for dots that contract at most one element, whose types are all the same.
pub fn multiplied(program: Cow<'_, Program>) -> Cow<'_, Program> {
    let found = dots(&program, |dot, program, op| {
        let own = element(program, program.result(op, 0));
        dot.is_outer() && program.operands(op).all(|operand| element(program, operand) == own)
    });
    if found.is_empty() {
        return program;
    }
    let mut program = program.into_owned();
    for (op, dot) in found {
        reduce(&mut program, op, &dot);
    }
    Cow::Owned(program)
}

/// Runs the pass on the module, as XLA for GPUs does.
pub fn run(program: &mut Program, context: &mut Context<'_>) -> Result<()> {
    context.progress("dot-strength-reduction", 0, 1)?;
    for (op, dot) in dots(program, |dot, _, _| dot.is_reduced_on_gpus()) {
        reduce(program, op, &dot);
    }
    Ok(())
}

/// The dots that `is_one` says.
fn dots(program: &Program, is_one: impl Fn(&Dot, &Program, OpId) -> bool) -> Vec<(OpId, Dot)> {
    let mut ops = program.ops_of(&[OpKind::DotGeneral]);
    ops.sort_unstable();
    let found = ops.into_iter().filter_map(|op| Some((op, Dot::of(program, op)?)));
    found.filter(|(op, dot)| is_one(dot, program, *op)).collect()
}

fn shape_of(program: &Program, value: ValueId) -> Option<Vec<i64>> {
    program.value_type(value).static_shape()
}

/// The element type of `value`.
fn element(program: &Program, value: ValueId) -> Option<&str> {
    match program.value_type(value) {
        Type::RankedTensor { element, .. } => Some(program.str(element.text)),
        _ => None,
    }
}

/// Replaces `op`, a dot, by a multiplication, and a sum if it contracts more than one element.
fn reduce(program: &mut Program, op: OpId, dot: &Dot) {
    let value = if dot.is_outer() { outer(program, op, dot) } else { sum(program, op, dot) };
    program.replace_all_uses(program.result(op, 0), value);
    program.erase_op(op);
}

/// The product of the operands of `op`, which contracts at most one element, both broadcast to the shape of the result.
fn outer(program: &mut Program, op: OpId, dot: &Dot) -> ValueId {
    let ty = program.type_of(program.result(op, 0));
    let operands = [0, 1].map(|side| {
        let [batching, _, free] = dot.dims_of(program, op, side);
        let value = program.operand(op, side);
        let value = formed(program, op, value, &[&batching[..], &free].concat());
        let first = dot.batch.len() + if side == 0 { 0 } else { dot.free[0].len() };
        let places = (0..dot.batch.len()).chain(first..first + free.len());
        broadcast(program, op, value, &places.collect::<Vec<_>>(), ty)
    });
    made(program, op, NewOp::new("stablehlo.multiply", &operands, &[ty]))
}

/// The sum over the contracting dims of the larger operand of `op` times the other one, which has contracting and batch dims alone
/// and is broadcast along the dims of the larger one. These stay where they are: a transpose of the result is small.
fn sum(program: &mut Program, op: OpId, dot: &Dot) -> ValueId {
    let [rows, columns] = dot.free.each_ref().map(|dims| elements(dims));
    let (matrix, vector) = if rows > columns { (0, 1) } else { (1, 0) };
    let mut own = dot.dims_of(program, op, matrix);
    let all: Vec<usize> = (0..own.iter().map(Vec::len).sum()).collect();
    let mut value = program.operand(op, matrix);
    // A transposed matrix is read as it is stored.
    if let Some((stored, order)) = untransposed(program, value) {
        value = stored;
        own = own.map(|dims| dims.into_iter().map(|dim| order[dim]).collect());
    }
    let [batching, contracting, free] = own;
    let value = formed(program, op, value, &all);
    let whole = program.type_of(value);
    // The dims of the vector in the order of those of the matrix that they belong to.
    let [own_batching, own_contracting, _] = dot.dims_of(program, op, vector);
    let places = batching.iter().zip(&own_batching);
    let mut places: Vec<_> = places.chain(contracting.iter().zip(&own_contracting)).collect();
    places.sort_unstable();
    let (places, own): (Vec<usize>, Vec<usize>) = places.into_iter().unzip();
    let other = formed(program, op, program.operand(op, vector), &own);
    let other = broadcast(program, op, other, &places, whole);
    let product = made(program, op, NewOp::new("stablehlo.multiply", &[value, other], &[whole]));
    let summed = summed(program, op, product, &contracting);
    let ty = program.type_of(program.result(op, 0));
    // What is left has the dims of the matrix in their order.
    let left: Vec<usize> = all.into_iter().filter(|dim| !contracting.contains(dim)).collect();
    let order = batching.iter().chain(&free).filter_map(|dim| left.iter().position(|it| it == dim));
    let value = transposed(program, op, summed, &order.collect::<Vec<_>>());
    let shape = shape_of(program, program.result(op, 0)).unwrap_or_default();
    let value = reshaped(program, op, value, &shape);
    converted(program, op, value, ty)
}

/// The operand of the transpose that makes `value`, and the dim of it that is each dim of `value`.
fn untransposed(program: &Program, value: ValueId) -> Option<(ValueId, Vec<usize>)> {
    let by = program.defining_op(value)?;
    if program.op_name(by) != "stablehlo.transpose" {
        return None;
    }
    let order = op_attribute(program, by, "permutation")?.as_ints()?;
    let order: Option<Vec<usize>> =
        order.into_iter().map(|dim| usize::try_from(dim).ok()).collect();
    Some((program.operand(by, 0), order?))
}

/// `value` with the elements of the result of `op` and the dims `kept`, in this order; the others have size 1.
fn formed(program: &mut Program, op: OpId, value: ValueId, kept: &[usize]) -> ValueId {
    let shape = shape_of(program, value).unwrap_or_default();
    let like = program.type_of(program.result(op, 0));
    let like = program.tensor_type(&shape, like);
    let value = converted(program, op, value, like);
    let mut sorted = kept.to_vec();
    sorted.sort_unstable();
    let sizes: Vec<i64> = sorted.iter().map(|&dim| shape[dim]).collect();
    let value = reshaped(program, op, value, &sizes);
    let order = kept.iter().filter_map(|dim| sorted.iter().position(|it| it == dim));
    transposed(program, op, value, &order.collect::<Vec<_>>())
}

/// `value` with its dims in another order.
fn transposed(program: &mut Program, op: OpId, value: ValueId, order: &[usize]) -> ValueId {
    if order.is_sorted() {
        return value;
    }
    let shape = shape_of(program, value).unwrap_or_default();
    let sizes: Vec<i64> = order.iter().map(|&dim| shape[dim]).collect();
    let ty = program.type_of(value);
    let ty = program.tensor_type(&sizes, ty);
    let new = NewOp::new("stablehlo.transpose", &[value], &[ty]);
    made(program, op, new.attr("permutation", dims(order)))
}

/// `value` with the dims `shape`.
fn reshaped(program: &mut Program, op: OpId, value: ValueId, shape: &[i64]) -> ValueId {
    let ty = program.type_of(value);
    let new = program.tensor_type(shape, ty);
    if new == ty {
        return value;
    }
    made(program, op, NewOp::new("stablehlo.reshape", &[value], &[new]))
}

/// `value` broadcast to the type `ty`, its dims at `places`.
fn broadcast(
    program: &mut Program,
    op: OpId,
    value: ValueId,
    places: &[usize],
    ty: TypeId,
) -> ValueId {
    let new = NewOp::new("stablehlo.broadcast_in_dim", &[value], &[ty]);
    made(program, op, new.attr("broadcast_dimensions", dims(places)))
}

/// The attribute that lists `dims`.
fn dims(dims: &[usize]) -> String {
    int_array(&dims.iter().map(|&dim| dim as i64).collect::<Vec<_>>())
}

/// `value` with the elements of `ty`, which has its shape.
fn converted(program: &mut Program, op: OpId, value: ValueId, ty: TypeId) -> ValueId {
    if program.type_of(value) == ty {
        return value;
    }
    made(program, op, NewOp::new("stablehlo.convert", &[value], &[ty]))
}

/// The sum of `value` along `contracting`; half precision is added up as `f32`.
fn summed(program: &mut Program, op: OpId, value: ValueId, contracting: &[usize]) -> ValueId {
    let all = shape_of(program, value).unwrap_or_default();
    let kept = (0..all.len()).filter(|dim| !contracting.contains(dim));
    let shape: Vec<i64> = kept.map(|dim| all[dim]).collect();
    let mut own = program.type_of(value);
    if matches!(element(program, value), Some("bf16" | "f16")) {
        own = program.tensor_type_of(&all, "f32");
    }
    let value = converted(program, op, value, own);
    let (ty, scalar) = (program.tensor_type(&shape, own), program.tensor_type(&[], own));
    let zero = crate::spmd::emit::zero(element(program, value).unwrap_or_default());
    let zero = format!("dense<{zero}> : {}", program.type_text(scalar));
    let zero =
        made(program, op, NewOp::new("stablehlo.constant", &[], &[scalar]).attr("value", zero));
    let mut along = contracting.to_vec();
    along.sort_unstable();
    let new = NewOp::new("stablehlo.reduce", &[value, zero], &[ty]);
    let new = new.attr("dimensions", dims(&along)).regions(1);
    let at = InsertPoint::at(Place::Before(op)).with_loc(program.loc(op));
    let sum = program.build(new, at);
    let block = program.add_block(program.region(sum, 0), &[scalar, scalar]);
    let inside = InsertPoint::at(Place::End(block)).with_loc(program.loc(op));
    let [a, b] = [0, 1].map(|index| program.block_arg(block, index));
    let added = program.build(NewOp::new("stablehlo.add", &[a, b], &[scalar]), inside);
    let added_value = program.result(added, 0);
    let end = program.build(NewOp::new("stablehlo.return", &[added_value], &[]), inside);
    for new in [added, end, sum] {
        program.sign_op(new);
    }
    program.result(sum, 0)
}

/// The result of `new`, an op that is inserted before `op`.
fn made(program: &mut Program, op: OpId, new: NewOp<'_>) -> ValueId {
    let at = InsertPoint::at(Place::Before(op)).with_loc(program.loc(op));
    let new = program.build(new, at);
    program.sign_op(new);
    program.result(new, 0)
}
