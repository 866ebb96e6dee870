//! Folds a pad with the initial value into the padding of the `reduce_window` that reads it.
//!
//! JAX writes gradients of average pools in this form. After folding, a shard of the result fetches only elements of the unpadded
//! tensor; the interior padding is not sent.

use crate::index::{BlockId, OpId, ValueId};
use crate::ir::{int_array, joined, NewOp, OpKind, Place, Program, ValueMap};
use crate::mlir::op_attribute;

/// The replacement of `op`, a `reduce_window` whose operand is a pad without other uses, and the pad; `None` if the pad removes
/// elements, or its value is not the initial value.
pub(super) fn folded(program: &mut Program, op: OpId) -> Option<(ValueId, OpId)> {
    let [padded, initial] = program.operands(op).collect::<Vec<_>>()[..] else { return None };
    let pad = program.defining_op(padded).filter(|&pad| program.op_name(pad) == "stablehlo.pad")?;
    let is_only_use = program.users(padded).count() == 1;
    let (operand, fill) = (program.operand(pad, 0), program.operand(pad, 1));
    let rank = program.value_type(operand).static_shape()?.len();
    if !is_only_use || !are_equal(program, fill, initial) {
        return None;
    }
    let ints = |op, name, default: i64, count| -> Option<Vec<i64>> {
        let Some(value) = op_attribute(program, op, name) else {
            return Some(vec![default; count]);
        };
        let found = value.as_ints()?;
        let found = if found.len() == 1 { vec![found[0]; count] } else { found };
        (found.len() == count).then_some(found)
    };
    let [low, high, interior] = ["edge_padding_low", "edge_padding_high", "interior_padding"]
        .map(|name| ints(pad, name, 0, rank));
    let (low, high, interior) = (low?, high?, interior?);
    let dilations = ints(op, "base_dilations", 1, rank)?;
    let padding = ints(op, "padding", 0, rank * 2)?;
    let is_negative = |number: &i64| *number < 0;
    if low.iter().chain(&high).chain(&padding).any(is_negative) || dilations != vec![1; rank] {
        return None;
    }
    let rows: Vec<String> = (0..rank)
        .map(|dim| {
            let ends = [low[dim] + padding[2 * dim], high[dim] + padding[2 * dim + 1]];
            format!("[{}]", joined(&ends))
        })
        .collect();
    let padding = format!("dense<[{}]> : tensor<{rank}x2xi64>", rows.join(", "));
    let dilations: Vec<i64> = interior.iter().map(|count| count + 1).collect();
    let ty = program.type_of(program.result(op, 0));
    let new = NewOp::new("stablehlo.reduce_window", &[operand, initial], &[ty]).regions(1);
    let at = program.before(op);
    let new = program.build(new, at);
    program.copy_attrs(op, new);
    program.set_attr(new, "padding", &padding);
    program.set_attr(new, "base_dilations", &int_array(&dilations));
    copy_body(program, op, new)?;
    Some((program.result(new, 0), pad))
}

/// Copies the region of `from` to `to`.
fn copy_body(program: &mut Program, from: OpId, to: OpId) -> Option<BlockId> {
    let body = program.region_entry(program.op_regions(from).next()?).get()?;
    let args: Vec<ValueId> = program.block_args(body).collect();
    let types: Vec<_> = args.iter().map(|&arg| program.type_of(arg)).collect();
    let block = program.add_block(program.region(to, 0), &types);
    let mut map = ValueMap::default();
    for (index, arg) in args.into_iter().enumerate() {
        map.insert(arg, program.block_arg(block, index));
    }
    let ops: Vec<OpId> = program.block_ops(body).collect();
    for op in ops {
        let clone = program.clone_op(op, &mut map, true);
        program.insert_op(clone, Place::End(block));
    }
    Some(block)
}

/// Whether two scalars are the same value, or equal constants, which JAX may broadcast to scalars.
fn are_equal(program: &Program, a: ValueId, b: ValueId) -> bool {
    let constant = |value| {
        let mut op = program.defining_op(value)?;
        while program.kind(op) == OpKind::BroadcastInDim {
            op = program.defining_op(program.operand(op, 0))?;
        }
        let is_constant = matches!(program.kind(op), OpKind::Constant | OpKind::SdyConstant);
        is_constant.then(|| program.constant_text(op).trim())
    };
    a == b || constant(a).is_some_and(|text| constant(b) == Some(text))
}
