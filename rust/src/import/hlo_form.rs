//! Rewrites ops to the forms that they have when XLA hands a program to Shardy.
//!
//! XLA converts a program to HLO and back before propagation. Then a broadcast that only adds dims
//! of size one has become a reshape; one that expands dims of size one has become a broadcast that
//! keeps them, a reshape that drops them, and another broadcast; and a constant operand of a
//! commutative op has become the last operand. Shardings propagate through reshapes in an earlier
//! op-priority step than through broadcasts, so the result may differ from that for the ops in the
//! text.
//!
//! Source: `XlaBuilder::BroadcastInDim` and `AddBroadcastSequence`; the canonicalization of MLIR.

use crate::index::{OpId, ValueId};
use crate::inlining::call_inliner::Originals;
use crate::ir::{OpKind, OpTraits, Program};
use crate::mlir::op_attribute;
use crate::spmd::devices::Devices;
use crate::spmd::emit::Emitter;

/// Commutative ops.
const COMMUTATIVE: [&str; 7] = [
    "stablehlo.add",
    "stablehlo.and",
    "stablehlo.maximum",
    "stablehlo.minimum",
    "stablehlo.multiply",
    "stablehlo.or",
    "stablehlo.xor",
];

/// Rewrites the ops of the program, and records the originals of new ops in `originals`.
pub fn run(program: &mut Program, originals: &mut Originals) {
    let ops: Vec<OpId> = program.pre_order(program.module_op()).collect();
    for op in ops {
        if program.kind(op) == OpKind::BroadcastInDim {
            rewrite_broadcast(program, originals, op);
        } else if COMMUTATIVE.contains(&program.op_name(op)) && program.num_operands(op) == 2 {
            let (left, right) = (program.operand(op, 0), program.operand(op, 1));
            if is_splat(program, left) && !is_splat(program, right) {
                program.set_operands(op, &[right, left]);
            }
        }
    }
}

/// Whether all elements of `value` are equal constants.
pub(super) fn is_splat(program: &Program, value: ValueId) -> bool {
    let is_constant = |op: OpId| program.has_traits(op, OpTraits::CONSTANT_LIKE);
    let Some(op) = program.defining_op(value) else { return false };
    if program.kind(op) != OpKind::BroadcastInDim {
        return program.kind(op) == OpKind::Constant && is_constant(op);
    }
    let operand = program.operand(op, 0);
    let has_no_dims =
        program.value_type(operand).static_shape().is_some_and(|dims| dims.is_empty());
    has_no_dims && program.defining_op(operand).is_some_and(is_constant)
}

/// Replaces `op`, a broadcast, if it adds or expands dims of size one.
fn rewrite_broadcast(program: &mut Program, originals: &mut Originals, op: OpId) {
    let (input, old) = (program.operand(op, 0), program.result(op, 0));
    let from = program.value_type(input).static_shape();
    let Some((from, to)) = from.zip(program.value_type(old).static_shape()) else { return };
    let dims = op_attribute(program, op, "broadcast_dimensions").and_then(|value| value.as_ints());
    let Some(dims) = dims.filter(|dims| dims.len() == from.len()) else { return };
    let ty = program.type_of(old);
    let is_expanded = |place: usize| from[place] != to[dims[place] as usize];
    let is_reshape = from.iter().product::<i64>() == to.iter().product::<i64>();
    if from.is_empty() || (!is_reshape && !(0..from.len()).any(is_expanded)) {
        return;
    }
    if is_reshape && (from == to || !dims.is_sorted()) {
        return;
    }
    let before = (program.num_op_ids(), program.num_value_ids());
    let mut emit = Emitter::new(program, Devices::default());
    emit.go_before(op);
    let new = if is_reshape {
        emit.reshape(input, &to)
    } else {
        let mut kept_shape = to.clone();
        for (&dim, &size) in dims.iter().zip(&from) {
            kept_shape[dim as usize] = size;
        }
        let kept_type = emit.like(&kept_shape, ty);
        let kept = emit.broadcast(input, &dims, kept_type);
        let left: Vec<i64> =
            (0..to.len()).filter(|&dim| kept_shape[dim] == to[dim]).map(|dim| dim as i64).collect();
        let squeezed: Vec<i64> = left.iter().map(|&dim| to[dim as usize]).collect();
        let squeezed = emit.reshape(kept, &squeezed);
        emit.broadcast(squeezed, &left, ty)
    };
    originals.note_made(program, before, op);
    program.copy_name(old, new);
    program.set_sharding(new, program.sharding(old));
    program.replace_all_uses(old, new);
    program.erase_op(op);
}
