//! Masks the padding of a tensor: sets it to zero, or to another value.

use crate::index::{OpId, ShardingId, TypeId, ValueId};
use crate::ir::{int_array, int_attr, InsertPoint, NewOp, OpKind, Program};
use crate::shardy::Change;

/// `value` with zeros outside the shape of `old` along `dims`; new ops are inserted before `op`.
pub fn with_zeros(
    program: &mut Program,
    op: OpId,
    value: ValueId,
    old: TypeId,
    dims: &[usize],
) -> ValueId {
    let ty = program.type_of(value);
    if ty == old {
        return value;
    }
    // Shardy does not mask `stablehlo.dot`, so the form of the mask is free.
    let is_masked_by_shardy = program.kind(op) != OpKind::Dot;
    let comes_first = is_masked_by_shardy && program.shardy().has(Change::ShardedMasks);
    let zero = comes_first.then(|| program.build_zero(ty, program.before(op)));
    with_padding(program, op, (value, old), zero, |dim| dims.contains(&dim))
}

/// `value` with `padding`, a scalar, or zeros outside the shape of `old` along dims that are
/// `masked`.
pub fn with_padding(
    program: &mut Program,
    op: OpId,
    (value, old): (ValueId, TypeId),
    padding: Option<ValueId>,
    masked: impl Fn(usize) -> bool,
) -> ValueId {
    let ty = program.type_of(value);
    let shapes = (program.types()[ty].static_shape(), program.types()[old].static_shape());
    let (Some(shape), Some(old_shape)) = shapes else { return value };
    let at = program.before(op);
    let is_sharded = program.shardy().has(Change::ShardedMasks);
    let sharding = if is_sharded { program.sharding_of(value) } else { ShardingId::NONE };
    let mut mask: Option<ValueId> = None;
    for (dim, (&size, &old_size)) in shape.iter().zip(&old_shape).enumerate() {
        if size == old_size || !masked(dim) {
            continue;
        }
        let is_inside = is_below(program, &shape, (dim, old_size), sharding, at);
        mask = Some(match mask {
            Some(mask) => {
                let ty = program.type_of(mask);
                let and = NewOp::new("stablehlo.and", &[mask, is_inside], &[ty]);
                program.build_value(and.sharding(sharding), at)
            }
            None => is_inside,
        });
    }
    let Some(mask) = mask else { return value };
    let padding = padding.unwrap_or_else(|| program.build_zero(ty, at));
    let splat = program.build_value(splat(padding, ty).sharding(sharding), at);
    let select = NewOp::new("stablehlo.select", &[mask, value, splat], &[ty]);
    program.build_value(select.sharding(sharding), at)
}

/// A tensor of type `ty` whose elements are all `scalar`.
fn splat(scalar: ValueId, ty: TypeId) -> NewOp<'static> {
    NewOp::of_kind(OpKind::BroadcastInDim, &[scalar], &[ty])
        .attr("broadcast_dimensions", int_array(&[]))
}

/// A mask of this shape: whether the index along `dim` is below `limit`.
fn is_below(
    program: &mut Program,
    shape: &[i64],
    (dim, limit): (usize, i64),
    sharding: ShardingId,
    at: InsertPoint,
) -> ValueId {
    let scalar = program.tensor_type_of(&[], "i32");
    let ty = program.tensor_type_of(shape, "i32");
    let iota = NewOp::of_kind(OpKind::Iota, &[], &[ty]).sharding(sharding);
    let iota = program.build_value(iota.attr("iota_dimension", int_attr(dim as i64)), at);
    let limit = NewOp::of_kind(OpKind::Constant, &[], &[scalar])
        .attr("value", format!("dense<{limit}> : tensor<i32>"));
    let limit = program.build_value(limit, at);
    let limits = program.build_value(splat(limit, ty).sharding(sharding), at);
    let ty = program.tensor_type_of(shape, "i1");
    let compare = NewOp::new("stablehlo.compare", &[iota, limits], &[ty])
        .attr("comparison_direction", "#stablehlo<comparison_direction LT>");
    program.build_value(compare.sharding(sharding), at)
}
