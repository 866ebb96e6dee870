//! Dots as multiplications and sums: `dot-strength-reduction`.
//!
//! XLA multiplies the two operands, broadcast to the shape of the result and the contracting dims, and adds up along the latter;
//! all of this fuses with other elementwise ops. All compilers do so if a dot contracts at most one element. XLA for GPUs also does
//! so if an operand has contracting and batch dims alone, and no kernel for matrices would pay: both operands are such vectors,
//! there are several batch dims, or the matrix is small.
//!
//! Source: XLA's `DotStrengthReduction`, and `HandleDot` of its `AlgebraicSimplifier`.

use crate::compilers::xla_cpu::by_signature::BySignature;
use crate::context::Context;
use crate::error::Result;
use crate::index::{Id, OpId, TypeId, ValueId};
use crate::ir::{int_array, OpKind, Program, Type};
use crate::mlir::op_attribute;
use crate::rules::{Shapes, SignatureView};
use crate::spmd::devices::{Devices, Purpose};
use crate::spmd::emit::{zero, Emitter};
use crate::spmd::reducer::Reducer;
use crate::stablehlo::dims::DotDims;
use std::borrow::Cow;

/// Matrices times vectors are kernels of their own from this many elements of the two operands on.
const LEAST_ELEMENTS: i64 = 10_000_000;

/// A dot by its dims.
#[derive(Clone)]
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
    reduce(&mut program, found);
    Cow::Owned(program)
}

/// Runs the pass on the module, as XLA for GPUs does.
pub fn run(program: &mut Program, context: &mut Context<'_>) -> Result<()> {
    context.progress("dot-strength-reduction", 0, 1)?;
    let found = dots(program, |dot, _, _| dot.is_reduced_on_gpus());
    reduce(program, found);
    Ok(())
}

/// The dots that `is_one` says, which depends on their signatures.
fn dots(program: &Program, is_one: impl Fn(&Dot, &Program, OpId) -> bool) -> Vec<(OpId, Dot)> {
    let mut ops = program.ops_of(&[OpKind::DotGeneral]);
    ops.sort_unstable();
    let mut known: BySignature<Option<Dot>> = BySignature::new(program);
    let dot = |op: OpId| {
        let id = program.signature(op).get()?;
        let find = || Dot::of(program, op).filter(|dot| is_one(dot, program, op));
        Some((op, known.of(id, find).clone()?))
    };
    ops.into_iter().filter_map(dot).collect()
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

/// Replaces `dots` by multiplications, and sums if they contract more than one element.
fn reduce(program: &mut Program, dots: Vec<(OpId, Dot)>) {
    let first = program.num_op_ids();
    let mut emit = Emitter::new(program, Devices::of(Purpose::Count));
    for (op, dot) in dots {
        emit.go_before(op);
        let value =
            if dot.is_outer() { outer(&mut emit, op, &dot) } else { sum(&mut emit, op, &dot) };
        let result = emit.program.result(op, 0);
        emit.program.replace_all_uses(result, value);
        emit.program.erase_op(op);
    }
    for made in (first..program.num_op_ids()).map(OpId::from_index) {
        program.sign_op(made);
    }
}

/// The product of the operands of `op`, which contracts at most one element, both broadcast to the shape of the result.
fn outer(emit: &mut Emitter<'_>, op: OpId, dot: &Dot) -> ValueId {
    let ty = emit.type_of(emit.program.result(op, 0));
    let operands = [0, 1].map(|side| {
        let [batching, _, free] = dot.dims_of(emit.program, op, side);
        let value = emit.program.operand(op, side);
        let value = formed(emit, op, value, &[&batching[..], &free].concat());
        let first = dot.batch.len() + if side == 0 { 0 } else { dot.free[0].len() };
        let places = (0..dot.batch.len()).chain(first..first + free.len());
        emit.broadcast(value, &numbers(places), ty)
    });
    emit.elementwise("stablehlo.multiply", &operands)
}

/// The sum over the contracting dims of the larger operand of `op` times the other one, which has contracting and batch dims alone
/// and is broadcast along the dims of the larger one. These stay where they are: a transpose of the result is small.
fn sum(emit: &mut Emitter<'_>, op: OpId, dot: &Dot) -> ValueId {
    let [rows, columns] = dot.free.each_ref().map(|dims| elements(dims));
    let (matrix, vector) = if rows > columns { (0, 1) } else { (1, 0) };
    let mut own = dot.dims_of(emit.program, op, matrix);
    let all: Vec<usize> = (0..own.iter().map(Vec::len).sum()).collect();
    let [mut value, other] = [matrix, vector].map(|side| emit.program.operand(op, side));
    // A transposed matrix is read as it is stored.
    if let Some((stored, order)) = untransposed(emit.program, value) {
        value = stored;
        own = own.map(|dims| dims.into_iter().map(|dim| order[dim]).collect());
    }
    let [batching, contracting, free] = own;
    let value = formed(emit, op, value, &all);
    // The dims of the vector in the order of those of the matrix that they belong to.
    let [own_batching, own_contracting, _] = dot.dims_of(emit.program, op, vector);
    let places = batching.iter().zip(&own_batching);
    let mut places: Vec<_> = places.chain(contracting.iter().zip(&own_contracting)).collect();
    places.sort_unstable();
    let (places, own): (Vec<usize>, Vec<usize>) = places.into_iter().unzip();
    let other = formed(emit, op, other, &own);
    let whole = emit.type_of(value);
    let other = emit.broadcast(other, &numbers(places), whole);
    let product = emit.elementwise("stablehlo.multiply", &[value, other]);
    let summed = summed(emit, product, &contracting);
    // What is left has the dims of the matrix in their order.
    let left: Vec<usize> = all.into_iter().filter(|dim| !contracting.contains(dim)).collect();
    let order = batching.iter().chain(&free).filter_map(|dim| left.iter().position(|it| it == dim));
    let value = emit.transpose(summed, &order.collect::<Vec<_>>());
    let result = emit.program.result(op, 0);
    let (shape, ty) = (emit.shape(result), emit.type_of(result));
    let value = emit.reshape(value, &shape);
    converted(emit, value, ty)
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
fn formed(emit: &mut Emitter<'_>, op: OpId, value: ValueId, kept: &[usize]) -> ValueId {
    let shape = emit.shape(value);
    let like = emit.type_of(emit.program.result(op, 0));
    let like = emit.like(&shape, like);
    let value = converted(emit, value, like);
    let mut sorted = kept.to_vec();
    sorted.sort_unstable();
    let sizes: Vec<i64> = sorted.iter().map(|&dim| shape[dim]).collect();
    let value = emit.reshape(value, &sizes);
    let order = kept.iter().filter_map(|dim| sorted.iter().position(|it| it == dim));
    emit.transpose(value, &order.collect::<Vec<_>>())
}

/// `dims` as the numbers of an attribute.
fn numbers(dims: impl IntoIterator<Item = usize>) -> Vec<i64> {
    dims.into_iter().map(|dim| dim as i64).collect()
}

/// `value` with the elements of `ty`, which has its shape.
fn converted(emit: &mut Emitter<'_>, value: ValueId, ty: TypeId) -> ValueId {
    if emit.type_of(value) == ty {
        return value;
    }
    emit.op("stablehlo.convert", &[value], ty, &[])
}

/// The sum of `value` along `contracting`; half precision is added up as `f32`.
fn summed(emit: &mut Emitter<'_>, value: ValueId, contracting: &[usize]) -> ValueId {
    let all = emit.shape(value);
    let kept = (0..all.len()).filter(|dim| !contracting.contains(dim));
    let shape: Vec<i64> = kept.map(|dim| all[dim]).collect();
    let mut own = emit.type_of(value);
    if matches!(emit.element(own), "bf16" | "f16") {
        own = emit.program.tensor_type_of(&all, "f32");
    }
    let value = converted(emit, value, own);
    let zero = zero(emit.element(own));
    let scalar = emit.like(&[], own);
    let zero = emit.splat(zero, scalar);
    let mut along = contracting.to_vec();
    along.sort_unstable();
    let ty = emit.like(&shape, own);
    let attrs = [("dimensions", int_array(&numbers(along)))];
    let made = emit.op_with_results("stablehlo.reduce", &[value, zero], &[ty], &attrs);
    Reducer::Add.add_body(emit, made, own);
    emit.program.result(made, 0)
}
