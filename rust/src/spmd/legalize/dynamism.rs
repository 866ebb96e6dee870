//! Legalizes dynamic ops, whose sizes are operands, where the type of the result is static.
//!
//! Operands that only repeat the static result type are ignored; others have to be constants.

use super::build;
use crate::index::{OpId, ValueId};
use crate::ir::{int_array, int_attr, joined, Program};
use crate::mlir::op_attribute;
use crate::stablehlo::constant_ints;

/// `dynamic_broadcast_in_dim`.
pub(super) fn broadcast_in_dim(program: &mut Program, op: OpId) -> Option<ValueId> {
    let dims = op_attribute(program, op, "broadcast_dimensions")?.as_ints()?;
    let attrs = [("broadcast_dimensions", int_array(&dims))];
    statically(program, op, "stablehlo.broadcast_in_dim", 1, &attrs)
}

/// `dynamic_iota`.
pub(super) fn iota(program: &mut Program, op: OpId) -> Option<ValueId> {
    let dim = op_attribute(program, op, "iota_dimension")?.as_int()?;
    statically(program, op, "stablehlo.iota", 0, &[("iota_dimension", int_attr(dim))])
}

/// `dynamic_reshape`.
pub(super) fn reshape(program: &mut Program, op: OpId) -> Option<ValueId> {
    statically(program, op, "stablehlo.reshape", 1, &[])
}

/// `dynamic_pad`, by constants.
pub(super) fn pad(program: &mut Program, op: OpId) -> Option<ValueId> {
    let ints = |operand| Some(int_array(&constant_ints(program, op, operand)?));
    let attrs = [
        ("edge_padding_low", ints(2)?),
        ("edge_padding_high", ints(3)?),
        ("interior_padding", ints(4)?),
    ];
    statically(program, op, "stablehlo.pad", 2, &attrs)
}

/// `real_dynamic_slice`, by constants.
pub(super) fn slice(program: &mut Program, op: OpId) -> Option<ValueId> {
    let ints = |operand| Some(int_array(&constant_ints(program, op, operand)?));
    let attrs = [("start_indices", ints(1)?), ("limit_indices", ints(2)?), ("strides", ints(3)?)];
    statically(program, op, "stablehlo.slice", 1, &attrs)
}

/// `dynamic_gather`, of slices of constant sizes.
pub(super) fn gather(program: &mut Program, op: OpId) -> Option<ValueId> {
    let sizes = constant_ints(program, op, 2)?;
    let new = statically(program, op, "stablehlo.gather", 2, &[])?;
    let gather = program.defining_op(new)?;
    program.copy_attrs(op, gather);
    program.set_attr(gather, "slice_sizes", &int_array(&sizes));
    Some(new)
}

/// `dynamic_conv`, with constant padding.
pub(super) fn convolution(program: &mut Program, op: OpId) -> Option<ValueId> {
    let padding = constant_ints(program, op, 2)?;
    let rows = padding.chunks(2).map(|pair| format!("[{}]", joined(pair)));
    let rows: Vec<String> = rows.collect();
    let text = format!("dense<[{}]> : tensor<{}x2xi64>", rows.join(", "), rows.len());
    let new = statically(program, op, "stablehlo.convolution", 2, &[])?;
    let convolution = program.defining_op(new)?;
    program.copy_attrs(op, convolution);
    program.set_attr(convolution, "padding", &text);
    Some(new)
}

/// `get_dimension_size`: the global size of the dim.
pub(super) fn get_dimension_size(program: &mut Program, op: OpId) -> Option<ValueId> {
    let size = dim_size(program, op)?;
    let ty = program.type_of(program.result(op, 0));
    let value = format!("dense<{size}> : {}", program.type_text(ty));
    Some(build(program, op, "stablehlo.constant", &[], ty, &[("value", value)]))
}

/// `set_dimension_size` to the size that the dim already has.
pub(super) fn set_dimension_size(program: &mut Program, op: OpId) -> Option<ValueId> {
    let (operand, result) = (program.operand(op, 0), program.result(op, 0));
    let is_same = program.type_of(operand) == program.type_of(result)
        && constant_ints(program, op, 1)? == [dim_size(program, op)?];
    if is_same {
        statically(program, op, "stablehlo.reshape", 1, &[])
    } else {
        None
    }
}

/// The size of the dim that `op` names.
fn dim_size(program: &Program, op: OpId) -> Option<i64> {
    let dim = op_attribute(program, op, "dimension")?.as_int()?;
    let shape = program.value_type(program.operand(op, 0)).static_shape()?;
    shape.get(usize::try_from(dim).ok()?).copied()
}

/// An op called `name` with the first `count` operands of `op` and the type of its result, if that is static.
fn statically(
    program: &mut Program,
    op: OpId,
    name: &str,
    count: usize,
    attrs: &[(&str, String)],
) -> Option<ValueId> {
    let result = program.result(op, 0);
    program.value_type(result).static_shape()?;
    let operands: Vec<ValueId> = program.operands(op).take(count).collect();
    let ty = program.type_of(result);
    Some(build(program, op, name, &operands, ty, attrs))
}
