//! Simplifies broadcasts, reshapes, transposes and reductions.
//!
//! Source: `HandleBroadcast`, `HandleReshape`, `HandleTranspose` and `HandleReduce` of XLA's `AlgebraicSimplifier`.

use crate::compilers::xla_cpu::passes::algebraic_simplifier::AlgebraicSimplifier;
use crate::index::{OpId, ValueId};
use crate::inlining::call_inliner::Originals;
use crate::ir::{int_array, ConstantValue, OpKind, Program};
use crate::mlir::op_attribute;
use crate::spmd::devices::Devices;
use crate::spmd::emit::Emitter;
use crate::spmd::reducer::Reducer;
use crate::stablehlo::dims::DotDims;

/// Simplifies the ops of the program, and records the originals of new ops in `originals`.
pub fn run(program: &mut Program, originals: &mut Originals) {
    let simplifier = AlgebraicSimplifier::new(program);
    let ops: Vec<OpId> = program.pre_order(program.module_op()).collect();
    for op in ops {
        if program.is_erased(op)
            || program.num_results(op) != 1
            || program.sharding(program.result(op, 0)).is_some()
        {
            continue;
        }
        let known = (program.num_op_ids(), program.num_value_ids());
        let made = match program.kind(op) {
            OpKind::BroadcastInDim => broadcast(program, op),
            OpKind::Reshape => reshape(program, op),
            OpKind::Transpose => transpose(program, op),
            OpKind::Reduce => reduce(program, op),
            _ => simplifier.same_as(program, op),
        };
        if let Some(made) = made {
            originals.note_made(program, known, op);
            program.replace_all_uses(program.result(op, 0), made);
            program.erase_op(op);
        }
    }
}

fn shape(program: &Program, value: ValueId) -> Option<Vec<i64>> {
    program.value_type(value).static_shape()
}

fn broadcast_dims(program: &Program, op: OpId) -> Option<Vec<i64>> {
    op_attribute(program, op, "broadcast_dimensions")?.as_ints()
}

/// The op of `kind` that defines `value` and has no sharding of its own.
fn made_by(program: &Program, value: ValueId, kind: OpKind) -> Option<OpId> {
    let op = program.defining_op(value)?;
    (program.kind(op) == kind && program.sharding(value).is_none()).then_some(op)
}

/// For each dim of `from` that is not of size one its dim of `to`, if these differ by dims of size one only.
fn kept_dims(from: &[i64], to: &[i64]) -> Option<Vec<Option<usize>>> {
    let mut places = (0..to.len()).filter(|&dim| to[dim] != 1);
    let kept: Option<Vec<Option<usize>>> = from
        .iter()
        .map(|&size| match size {
            1 => Some(None),
            _ => places.next().filter(|&place| to[place] == size).map(Some),
        })
        .collect();
    kept.filter(|_| places.next().is_none())
}

/// What a broadcast without new dims is of; and a broadcast of a value that was only reshaped by dims of size one, of that value.
fn broadcast(program: &mut Program, op: OpId) -> Option<ValueId> {
    let (input, result) = (program.operand(op, 0), program.result(op, 0));
    let (from, to) = (shape(program, input)?, shape(program, result)?);
    let dims = broadcast_dims(program, op)?;
    if from == to && dims.iter().zip(0..).all(|(&dim, at)| dim == at) {
        return Some(input);
    }
    let ty = program.type_of(result);
    if let Some(inner) = made_by(program, input, OpKind::BroadcastInDim) {
        let inner_dims = broadcast_dims(program, inner)?;
        let dims: Option<Vec<i64>> =
            inner_dims.iter().map(|&dim| dims.get(usize::try_from(dim).ok()?).copied()).collect();
        let (dims, input) = (dims?, program.operand(inner, 0));
        return Some(emitter(program, op).broadcast(input, &dims, ty));
    }
    if let Some(iota) =
        program.defining_op(input).filter(|&iota| program.op_name(iota) == "stablehlo.iota")
    {
        let dim = op_attribute(program, iota, "iota_dimension")?.as_int()?;
        let dim = dims.get(usize::try_from(dim).ok()?)?;
        let attrs = [("iota_dimension", format!("{dim} : i64"))];
        return Some(emitter(program, op).op("stablehlo.iota", &[], ty, &attrs));
    }
    let inner = made_by(program, input, OpKind::Reshape)?;
    let value = program.operand(inner, 0);
    let inner_shape = shape(program, value)?;
    // Each dim of the value must be one of the reshaped value.
    let kept = kept_dims(&inner_shape, &from)?;
    let dims: Option<Vec<i64>> =
        kept.into_iter().map(|place| place.and_then(|place| dims.get(place).copied())).collect();
    let dims = dims?;
    Some(emitter(program, op).broadcast(value, &dims, ty))
}

/// What a reshape to the same shape is of; a reshape of a reshape; and a reshape of a broadcast that only adds or drops dims of size one.
fn reshape(program: &mut Program, op: OpId) -> Option<ValueId> {
    let (input, result) = (program.operand(op, 0), program.result(op, 0));
    let (from, to) = (shape(program, input)?, shape(program, result)?);
    if from == to {
        return Some(input);
    }
    if let Some(inner) = made_by(program, input, OpKind::Reshape) {
        let value = program.operand(inner, 0);
        if shape(program, value)? == to {
            return Some(value);
        }
        return Some(emitter(program, op).reshape(value, &to));
    }
    let inner = made_by(program, input, OpKind::BroadcastInDim)?;
    let kept = kept_dims(&from, &to)?;
    let dims = broadcast_dims(program, inner)?;
    let dims: Option<Vec<i64>> = dims
        .iter()
        .map(|&dim| kept.get(usize::try_from(dim).ok()?).copied().flatten().map(|dim| dim as i64))
        .collect();
    let (dims, value, ty) = (dims?, program.operand(inner, 0), program.type_of(result));
    Some(emitter(program, op).broadcast(value, &dims, ty))
}

/// A reduction along dims of size one from the identity of its function, as a reshape.
fn reduce(program: &mut Program, op: OpId) -> Option<ValueId> {
    let (input, result) = (program.operand(op, 0), program.result(op, 0));
    let (from, to) = (shape(program, input)?, shape(program, result)?);
    let count = |shape: &[i64]| shape.iter().product::<i64>();
    let is_one = program.num_operands(op) == 2 && count(&from) == count(&to);
    (is_one && starts_from_identity(program, op)?).then(|| emitter(program, op).reshape(input, &to))
}

/// Whether `op`, a reduction of one operand, starts from a constant that changes nothing.
fn starts_from_identity(program: &mut Program, op: OpId) -> Option<bool> {
    let reducer = Reducer::of_region(program, op)?;
    let init = program.operand(op, 1);
    let made = program.defining_op(init).filter(|&made| program.kind(made) == OpKind::Constant)?;
    let ty = program.type_of(init);
    let element = emitter(program, op).element(ty).to_owned();
    let identity = format!("dense<{}>", reducer.identity(&element)?);
    Some(program.constant_value(made) == ConstantValue::parse(&identity))
}

/// What a transpose that keeps the order of dims is of; a transpose of a transpose; and, of a product that swaps what the two operands
/// contribute, the product of the swapped operands.
fn transpose(program: &mut Program, op: OpId) -> Option<ValueId> {
    let (input, result) = (program.operand(op, 0), program.result(op, 0));
    let order = permutation(program, op)?;
    let ty = program.type_of(result);
    if order.is_sorted() {
        return Some(input);
    }
    if let Some(inner) = made_by(program, input, OpKind::Transpose) {
        let inner_order = permutation(program, inner)?;
        let order: Option<Vec<i64>> =
            order.iter().map(|&dim| Some(*inner_order.get(dim)? as i64)).collect();
        let (attrs, value) = ([("permutation", int_array(&order?))], program.operand(inner, 0));
        return Some(emitter(program, op).op("stablehlo.transpose", &[value], ty, &attrs));
    }
    let product = made_by(program, input, OpKind::DotGeneral)?;
    if !program.has_one_use(input) {
        return None;
    }
    let dims = swapped(program, product, &order)?;
    let (lhs, rhs) = (program.operand(product, 0), program.operand(product, 1));
    let mut attrs = vec![("dot_dimension_numbers", dims.to_string())];
    // With one precision for both operands, the order does not matter.
    attrs.extend(
        program.attr(product, "precision_config").map(|it| ("precision_config", it.to_owned())),
    );
    let mut emit = Emitter::new(program, Devices::default());
    emit.go_before(product);
    Some(emit.op("stablehlo.dot_general", &[rhs, lhs], ty, &attrs))
}

fn permutation(program: &Program, op: OpId) -> Option<Vec<usize>> {
    let order = op_attribute(program, op, "permutation")?.as_ints()?;
    order.into_iter().map(|dim| usize::try_from(dim).ok()).collect()
}

/// The dims of `product` with swapped operands, if `order` puts those of the right operand before those of the left one, and keeps batch
/// dims first.
fn swapped(program: &Program, product: OpId, order: &[usize]) -> Option<DotDims> {
    let numbers = op_attribute(program, product, "dot_dimension_numbers")?;
    let dims: DotDims = DotDims::read(&numbers)?;
    let batch = dims.lhs_batching.len();
    let rank = shape(program, program.operand(product, 0))?.len();
    let lhs = rank.checked_sub(batch + dims.lhs_contracting.len())?;
    let rhs = order.len().checked_sub(batch + lhs)?;
    let wanted = (batch + lhs..batch + lhs + rhs).chain(batch..batch + lhs);
    let is_swap = order.iter().take(batch).all(|&dim| dim < batch)
        && order.iter().skip(batch).copied().eq(wanted);
    let reordered = |of: &[usize]| -> Option<_> {
        order.iter().take(batch).map(|&dim| of.get(dim).copied()).collect()
    };
    is_swap.then_some(())?;
    Some(DotDims {
        lhs_batching: reordered(&dims.rhs_batching)?,
        rhs_batching: reordered(&dims.lhs_batching)?,
        lhs_contracting: dims.rhs_contracting,
        rhs_contracting: dims.lhs_contracting,
    })
}

fn emitter(program: &mut Program, op: OpId) -> Emitter<'_> {
    let mut emit = Emitter::new(program, Devices::default());
    emit.go_before(op);
    emit
}
