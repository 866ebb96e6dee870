//! Making the padding of a tensor zero.

use crate::index::{OpId, ShardingId, TypeId, ValueId};
use crate::ir::{Place, Program};
use crate::partition::stablehlo_ops::int_array;

/// `value` with zeros where `dims` go beyond the shape of the type `old`, by ops in front of `op`.
pub fn with_zeros(
    program: &mut Program,
    op: OpId,
    value: ValueId,
    old: TypeId,
    dims: &[i64],
) -> ValueId {
    let ty = program.values[value].ty;
    let shapes = (program.types[ty].static_shape(), program.types[old].static_shape());
    let (Some(shape), Some(old_shape)) = shapes else { return value };
    let at = (Place::Before(op), op);
    let mut mask: Option<ValueId> = None;
    for (dim, (&size, &old_size)) in shape.iter().zip(&old_shape).enumerate() {
        if size == old_size || !dims.contains(&(dim as i64)) {
            continue;
        }
        let is_inside = is_below(program, &shape, (dim, old_size), at);
        mask = Some(match mask {
            Some(mask) => {
                let ty = (program.values[mask].ty, ShardingId::NONE);
                program.create_stablehlo_op("stablehlo.and", &[mask, is_inside], ty, &[], at)
            }
            None => is_inside,
        });
    }
    let Some(mask) = mask else { return value };
    let zero = program.create_zero(ty, at);
    let ty = (ty, ShardingId::NONE);
    let dims = [("broadcast_dimensions", int_array(&[]))];
    let zeros = program.create_stablehlo_op("stablehlo.broadcast_in_dim", &[zero], ty, &dims, at);
    program.create_stablehlo_op("stablehlo.select", &[mask, value, zeros], ty, &[], at)
}

/// Whether the index along `dim` is below `limit`, for each element of a tensor of this shape.
fn is_below(
    program: &mut Program,
    shape: &[i64],
    (dim, limit): (usize, i64),
    at: (Place, OpId),
) -> ValueId {
    let none = ShardingId::NONE;
    let scalar = program.tensor_type_of(&[], "i32");
    let ty = program.tensor_type_of(shape, "i32");
    let number = [("iota_dimension", format!("{dim} : i64"))];
    let iota = program.create_stablehlo_op("stablehlo.iota", &[], (ty, none), &number, at);
    let value = [("value", format!("dense<{limit}> : tensor<i32>"))];
    let limit = program.create_stablehlo_op("stablehlo.constant", &[], (scalar, none), &value, at);
    let dims = [("broadcast_dimensions", int_array(&[]))];
    let limit =
        program.create_stablehlo_op("stablehlo.broadcast_in_dim", &[limit], (ty, none), &dims, at);
    let ty = program.tensor_type_of(shape, "i1");
    let direction = [("comparison_direction", "#stablehlo<comparison_direction LT>".to_owned())];
    program.create_stablehlo_op("stablehlo.compare", &[iota, limit], (ty, none), &direction, at)
}
