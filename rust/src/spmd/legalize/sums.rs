//! Sums along dims, and constants.

use super::super::emit;
use super::build;
use crate::index::{OpId, ShardingId, TypeId, ValueId};
use crate::ir::{int_array, InsertPoint, NewOp, Place, Program};

/// The sum of `value` along `dims`, inserted before `op`; the other dims keep their sharding.
pub(super) fn sum(program: &mut Program, op: OpId, value: ValueId, dims: &[usize]) -> ValueId {
    let (own, sharding) = (program.type_of(value), program.sharding(value));
    let shape = program.value_type(value).static_shape().unwrap_or_default();
    let kept: Vec<usize> = (0..shape.len()).filter(|dim| !dims.contains(dim)).collect();
    let shape: Vec<i64> = kept.iter().map(|&dim| shape[dim]).collect();
    let (ty, scalar) = (program.tensor_type(&shape, own), program.tensor_type(&[], own));
    let zero = splat(program, op, scalar, "0");
    let dims: Vec<i64> = dims.iter().map(|&dim| dim as i64).collect();
    let reduce = NewOp::new("stablehlo.reduce", &[value, zero], &[ty])
        .attr("dimensions", int_array(&dims))
        .regions(1);
    let at = program.before(op);
    let reduce = program.build(reduce, at);
    let block = program.add_block(program.region(reduce, 0), &[scalar, scalar]);
    let inside = InsertPoint::at(Place::End(block));
    let [a, b] = [0, 1].map(|index| program.block_arg(block, index));
    let added = program.build_value(NewOp::new("stablehlo.add", &[a, b], &[scalar]), inside);
    program.build(NewOp::new("stablehlo.return", &[added], &[]), inside);
    let sharding = with_dims(program, sharding, &kept);
    let result = program.result(reduce, 0);
    program.set_sharding(result, sharding);
    result
}

/// `sharding` restricted to the dims `kept`, in this order.
pub(super) fn with_dims(program: &mut Program, sharding: ShardingId, kept: &[usize]) -> ShardingId {
    let Some(mut own) = program.shardings().get(sharding).cloned() else { return sharding };
    let dims = std::mem::take(&mut own.dims);
    own.dims = kept.iter().filter_map(|&dim| dims.get(dim).cloned()).collect();
    program.intern_sharding(own)
}

/// A constant of type `ty` before `op`, all of whose elements are `element`, or zero if this is `"0"`.
pub(super) fn splat(program: &mut Program, op: OpId, ty: TypeId, element: &str) -> ValueId {
    let scalar = program.tensor_type(&[], ty);
    let text = program.type_text(scalar).to_string();
    let own = text.trim_start_matches("tensor<").trim_end_matches('>');
    let element = if element == "0" { emit::zero(own) } else { element };
    let value = format!("dense<{element}> : {}", program.type_text(ty));
    build(program, op, "stablehlo.constant", &[], ty, &[("value", value)])
}
