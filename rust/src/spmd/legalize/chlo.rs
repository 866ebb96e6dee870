//! CHLO ops whose operands are broadcast to the shape of the result, and `constant_like`.

use super::build;
use super::sums::splat;
use crate::index::{OpId, ValueId};
use crate::ir::{int_array, NewOp, Program, OPS};
use crate::mlir::op_attribute;

const PREFIX: &str = "chlo.broadcast_";

/// The ops that broadcast their operands.
pub(super) fn broadcasting_names() -> impl Iterator<Item = &'static str> {
    OPS.iter().map(|info| info.name).filter(|name| is_broadcasting(name))
}

/// Whether ops called `name` broadcast their operands.
pub(super) fn is_broadcasting(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// `chlo.broadcast_*`: each operand is broadcast, then the op is elementwise. Operand dims map to the last dims of the result, or
/// to `broadcast_dimensions`.
pub(super) fn broadcasting(program: &mut Program, op: OpId) -> Option<ValueId> {
    let bare = program.op_name(op).strip_prefix(PREFIX)?.to_owned();
    let dialect = match &*bare {
        "next_after" | "polygamma" | "zeta" => "chlo",
        _ => "stablehlo",
    };
    let result = program.result(op, 0);
    let (ty, sharding) = (program.type_of(result), program.sharding(result));
    let shape = program.value_type(result).static_shape()?;
    let given = op_attribute(program, op, "broadcast_dimensions").and_then(|dims| dims.as_ints());
    let operands: Vec<ValueId> = program.operands(op).collect();
    let mut broadcast = Vec::with_capacity(operands.len());
    for operand in operands {
        let own = program.value_type(operand).static_shape()?;
        if own == shape {
            broadcast.push(operand);
            continue;
        }
        let (rank, all) = (own.len() as i64, shape.len() as i64);
        let dims = match &given {
            Some(dims) if dims.len() == own.len() => dims.clone(),
            _ => (all - rank..all).collect(),
        };
        let attrs = [("broadcast_dimensions", int_array(&dims))];
        let like = program.type_of(operand);
        let like = program.tensor_type(&shape, like);
        let value = build(program, op, "stablehlo.broadcast_in_dim", &[operand], like, &attrs);
        program.set_sharding(value, sharding);
        broadcast.push(value);
    }
    let name = format!("{dialect}.{bare}");
    let mut new = NewOp::new(&name, &broadcast, &[ty]);
    for attr in ["comparison_direction", "compare_type"] {
        if let Some(text) = program.attr(op, attr) {
            new = new.attr(attr, text.replacen("#chlo<", "#stablehlo<", 1));
        }
    }
    let at = program.before(op);
    Some(program.build_value(new, at))
}

/// `chlo.constant_like`: a constant with the shape of the operand.
pub(super) fn constant_like(program: &mut Program, op: OpId) -> Option<ValueId> {
    let ty = program.type_of(program.result(op, 0));
    program.value_type(program.result(op, 0)).static_shape()?;
    let text = program.attr(op, "value")?;
    let element = text.split(" : ").next()?.trim().to_owned();
    Some(splat(program, op, ty, &element))
}
