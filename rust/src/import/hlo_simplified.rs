//! Simplifies data-movement ops, as XLA does before it hands a program to Shardy.
//!
//! MLIR canonicalizes each function on the way to HLO: a slice of a concatenation becomes a slice
//! of the operands that it needs; chains of reshapes, transposes, broadcasts or concatenations
//! become one op; and a transpose that only moves dims of size one becomes a reshape. So halves
//! that are concatenated and split again are neither sharded nor communicated.
//!
//! Calls are not inlined yet at that point, so ops of different functions are not combined.
//!
//! Source: the canonicalization patterns of `xla/mlir_hlo/mhlo/IR/hlo_ops.cc`.

use crate::index::{OpId, ValueId};
use crate::inlining::call_inliner::Originals;
use crate::ir::{int_array, OpKind, Program};
use crate::mlir::op_attribute;
use crate::spmd::devices::Devices;
use crate::spmd::emit::Emitter;

/// Simplifies the ops of the program, and records the originals of new ops in `originals`.
pub fn run(program: &mut Program, originals: &mut Originals) {
    let ops: Vec<OpId> = program.pre_order(program.module_op()).collect();
    for op in ops {
        let known = (program.num_op_ids(), program.num_value_ids());
        let made = match program.kind(op) {
            OpKind::Slice => sliced(program, originals, op),
            _ if is_reshape(program, op) => reshaped(program, originals, op),
            OpKind::Transpose => transposed(program, originals, op),
            OpKind::BroadcastInDim => broadcast(program, originals, op),
            OpKind::Concatenate => concatenated(program, originals, op),
            _ => None,
        };
        let Some(made) = made else { continue };
        originals.note_made(program, known, op);
        let operands: Vec<ValueId> = program.operands(op).collect();
        program.replace_all_uses(program.result(op, 0), made);
        program.erase_op(op);
        for operand in operands {
            erase_if_unused(program, operand);
        }
    }
}

/// Erases the data-movement op that defines `value`, and its operands, if they are unused.
fn erase_if_unused(program: &mut Program, value: ValueId) {
    let Some(op) = program.defining_op(value).filter(|_| !program.has_uses(value)) else { return };
    let moves = [
        OpKind::Slice,
        OpKind::Reshape,
        OpKind::Transpose,
        OpKind::BroadcastInDim,
        OpKind::Concatenate,
    ];
    if moves.contains(&program.kind(op)) {
        let operands: Vec<ValueId> = program.operands(op).collect();
        program.erase_op(op);
        for operand in operands {
            erase_if_unused(program, operand);
        }
    }
}

/// The op that defines operand number `index` of `op`, if it `is_wanted` and in the same function,
/// and neither has a sharding of its own.
fn before(
    program: &Program,
    originals: &Originals,
    op: OpId,
    number: usize,
    is_wanted: impl Fn(OpId) -> bool,
) -> Option<OpId> {
    let value = program.operand(op, number);
    let other = program.defining_op(value).filter(|&other| is_wanted(other))?;
    let func = |op: OpId| program.function_of(program.top_level_op(originals.op(op)));
    let is_free = |value: ValueId| program.sharding(value).is_none();
    (is_free(value) && is_free(program.result(op, 0)) && func(op) == func(other)).then_some(other)
}

/// Whether `op` is a reshape, or a broadcast equivalent to one.
fn is_reshape(program: &Program, op: OpId) -> bool {
    match program.kind(op) {
        OpKind::Reshape => true,
        OpKind::BroadcastInDim => {
            let shapes =
                shape(program, program.operand(op, 0)).zip(shape(program, program.result(op, 0)));
            let dims = ints(program, op, "broadcast_dimensions");
            let count = |shape: Vec<i64>| shape.iter().product::<i64>();
            shapes.is_some_and(|(from, to)| !from.is_empty() && count(from) == count(to))
                && dims.is_some_and(|dims| dims.is_sorted())
        }
        _ => false,
    }
}

/// Whether `op` is a broadcast that is not equivalent to a reshape.
fn is_broadcast(program: &Program, op: OpId) -> bool {
    program.kind(op) == OpKind::BroadcastInDim && !is_reshape(program, op)
}

fn ints(program: &Program, op: OpId, name: &str) -> Option<Vec<i64>> {
    op_attribute(program, op, name).and_then(|value| value.as_ints())
}

fn shape(program: &Program, value: ValueId) -> Option<Vec<i64>> {
    program.value_type(value).static_shape()
}

fn emitter(program: &mut Program, op: OpId) -> Emitter<'_> {
    let mut emit = Emitter::new(program, Devices::default());
    emit.go_before(op);
    emit
}

/// Replaces a slice of a concatenation by one of the operands that it needs.
fn sliced(program: &mut Program, originals: &Originals, op: OpId) -> Option<ValueId> {
    let whole = before(program, originals, op, 0, |op| program.kind(op) == OpKind::Concatenate)?;
    let [mut starts, mut limits, strides] =
        ["start_indices", "limit_indices", "strides"].map(|name| ints(program, op, name));
    let (starts, limits, strides) = (starts.as_mut()?, limits.as_mut()?, strides?);
    let dim = op_attribute(program, whole, "dimension")?.as_int()? as usize;
    let (from, to) = (*starts.get(dim)?, *limits.get(dim)?);
    let (mut place, mut first, mut needed) = (0, None, Vec::new());
    let operands: Vec<ValueId> = program.operands(whole).collect();
    for &operand in &operands {
        let end = place + *shape(program, operand)?.get(dim)?;
        if end > from && place < to {
            first.get_or_insert(place);
            needed.push(operand);
        }
        place = end;
    }
    let is_shared = needed.len() > 1 && !program.has_one_use(program.result(whole, 0));
    if needed.len() == operands.len() || is_shared {
        return None;
    }
    let first = first?;
    starts[dim] -= first;
    limits[dim] -= first;
    let mut emit = emitter(program, op);
    let part = match needed[..] {
        [part] => part,
        _ => emit.concatenate(&needed, dim),
    };
    Some(emit.strided_slice(part, starts, limits, &strides))
}

/// Combines a reshape with the reshape of its operand.
fn reshaped(program: &mut Program, originals: &Originals, op: OpId) -> Option<ValueId> {
    let to = shape(program, program.result(op, 0))?;
    let other = before(program, originals, op, 0, |op| is_reshape(program, op))?;
    let input = program.operand(other, 0);
    shape(program, input)?;
    Some(emitter(program, op).reshape(input, &to))
}

/// Combines a transpose with the transpose or broadcast of its operand; a transpose that only moves
/// dims of size one becomes a reshape.
fn transposed(program: &mut Program, originals: &Originals, op: OpId) -> Option<ValueId> {
    let order = ints(program, op, "permutation")?;
    let ty = program.type_of(program.result(op, 0));
    let to = shape(program, program.result(op, 0))?;
    if let Some(other) =
        before(program, originals, op, 0, |op| program.kind(op) == OpKind::Transpose)
    {
        let inner = ints(program, other, "permutation")?;
        let order: Option<Vec<i64>> =
            order.iter().map(|&dim| inner.get(dim as usize).copied()).collect();
        let (order, input) = (order?, program.operand(other, 0));
        if order.is_sorted() {
            return Some(input);
        }
        let attrs = [("permutation", int_array(&order))];
        return Some(emitter(program, op).op("stablehlo.transpose", &[input], ty, &attrs));
    }
    if let Some(other) = before(program, originals, op, 0, |op| is_broadcast(program, op)) {
        let dims = ints(program, other, "broadcast_dimensions")?;
        let place = |dim: &i64| Some(order.iter().position(|other| other == dim)? as i64);
        let dims: Option<Vec<i64>> = dims.iter().map(place).collect();
        let (dims, input) = (dims?, program.operand(other, 0));
        return Some(emitter(program, op).broadcast(input, &dims, ty));
    }
    let moved: Vec<i64> =
        order.iter().zip(&to).filter(|(_, &size)| size != 1).map(|(&dim, _)| dim).collect();
    let is_free = program.sharding(program.result(op, 0)).is_none();
    (moved.is_sorted() && is_free).then(|| {
        let input = program.operand(op, 0);
        emitter(program, op).reshape(input, &to)
    })
}

/// Combines a broadcast with the broadcast of its operand.
fn broadcast(program: &mut Program, originals: &Originals, op: OpId) -> Option<ValueId> {
    let other = before(program, originals, op, 0, |op| is_broadcast(program, op))?;
    let (input, result) = (program.operand(other, 0), program.result(op, 0));
    let [inner, outer] = [other, op].map(|op| ints(program, op, "broadcast_dimensions"));
    let (inner, outer) = (inner?, outer?);
    let dims: Option<Vec<i64>> =
        inner.iter().map(|&dim| outer.get(dim as usize).copied()).collect();
    let (dims, ty) = (dims?, program.type_of(result));
    Some(emitter(program, op).broadcast(input, &dims, ty))
}

/// Combines a concatenation with those of its operands along the same dim that have no other users.
fn concatenated(program: &mut Program, originals: &Originals, op: OpId) -> Option<ValueId> {
    let dim = op_attribute(program, op, "dimension")?.as_int()?;
    let mut operands = Vec::new();
    for number in 0..program.num_operands(op) {
        let value = program.operand(op, number);
        let inner =
            before(program, originals, op, number, |op| program.kind(op) == OpKind::Concatenate)
                .filter(|_| program.has_one_use(value))
                .filter(|&inner| {
                    op_attribute(program, inner, "dimension").and_then(|dim| dim.as_int())
                        == Some(dim)
                });
        match inner {
            Some(inner) => operands.extend(program.operands(inner)),
            None => operands.push(value),
        }
    }
    (operands.len() > program.num_operands(op))
        .then(|| emitter(program, op).concatenate(&operands, dim as usize))
}
