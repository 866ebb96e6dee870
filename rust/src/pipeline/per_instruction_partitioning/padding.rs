//! Pads operands so that they divide evenly into shards, and slices results back to their original
//! size.

use crate::export::pad_for_divisibility::padded_for_all;
use crate::index::{OpId, ShardingId, TypeId, ValueId};
use crate::ir::{InsertPoint, OpKind, Program};
use crate::mlir::op_attribute;

/// The type of a value of an op, and the type of the value that replaces it outside of the manual
/// computation.
#[derive(Clone, Copy)]
pub(super) struct Types {
    pub(super) own: TypeId,
    pub(super) padded: TypeId,
}

/// The types of `values` of `op`, padded so that they divide evenly into shards. The operand and
/// the result of a reshard have one type, which both shardings divide evenly; `others` are the
/// shardings of the other side.
pub(super) fn padded_types(
    program: &mut Program,
    op: OpId,
    values: &[ValueId],
    shardings: &[ShardingId],
    others: &[ShardingId],
) -> Vec<Types> {
    let is_reshard = program.kind(op) == OpKind::Reshard;
    let mut types = Vec::with_capacity(values.len());
    for (index, &value) in values.iter().enumerate() {
        let own = program.type_of(value);
        let all = if is_reshard {
            &[shardings[index], others[index]][..]
        } else {
            &shardings[index..=index]
        };
        let padded = padded_for_all(program, own, all);
        types.push(Types { own, padded });
    }
    types
}

/// `value`, an operand of `op`, padded: the value that it is a slice of, if that has the padded
/// type, or else padded with zeros.
pub(super) fn padded_value(
    program: &mut Program,
    op: OpId,
    value: ValueId,
    types: Types,
    sharding: ShardingId,
) -> ValueId {
    if types.own == types.padded {
        return value;
    }
    if let Some(whole) =
        cut_from(program, value).filter(|&whole| program.type_of(whole) == types.padded)
    {
        return whole;
    }
    let at = program.before(op);
    let zero = program.build_zero(types.own, at);
    pad(program, value, zero, types.padded, sharding, at)
}

/// The value of which `value` is a slice that starts at 0 in each dim.
fn cut_from(program: &Program, value: ValueId) -> Option<ValueId> {
    let slice = program.defining_op(value).filter(|&op| program.kind(op) == OpKind::Slice)?;
    let has_only = |name, number| {
        let numbers = op_attribute(program, slice, name)?.as_ints()?;
        Some(numbers.iter().all(|&n| n == number))
    };
    let is_start = has_only("start_indices", 0)? && has_only("strides", 1)?;
    is_start.then(|| program.operand(slice, 0))
}

/// `value` padded with `zero` at the end of each dim to the type `ty`.
pub(super) fn pad(
    program: &mut Program,
    value: ValueId,
    zero: ValueId,
    ty: TypeId,
    sharding: ShardingId,
    at: InsertPoint,
) -> ValueId {
    let shape = program.types()[ty].static_shape().unwrap_or_default();
    program.build_pad(value, zero, &shape, sharding, at)
}

/// The slice of `value` from 0 with type `ty`; `value` itself if it has that type.
pub(super) fn cut(
    program: &mut Program,
    value: ValueId,
    ty: TypeId,
    sharding: ShardingId,
    at: InsertPoint,
) -> ValueId {
    if program.type_of(value) == ty {
        return value;
    }
    let shape = program.types()[ty].static_shape().unwrap_or_default();
    program.build_slice(value, &vec![0; shape.len()], &shape, sharding, at)
}
