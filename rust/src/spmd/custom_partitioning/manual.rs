//! Builds the manual computations that replace calls.

use crate::index::{BlockId, MeshId, OpId, ShardingId, StrId, TypeId, ValueId};
use crate::ir::{NewOp, OpKind, Payload, Program};

/// The axes of `mesh` that are not manual around `call`.
pub(super) fn free_axes(program: &mut Program, call: OpId, mesh: MeshId) -> Vec<StrId> {
    let manual = program.manual_axes_around_op(call);
    let names: Vec<String> =
        program.mesh(mesh).axes.iter().map(|axis| axis.name.to_string()).collect();
    let axes: Vec<StrId> = names.iter().map(|name| program.intern(name)).collect();
    axes.into_iter().filter(|axis| !manual.contains(axis)).collect()
}

/// Builds a manual computation before `call`, over the axes of `mesh` that are not manual there; the arguments of its body have the
/// types `args`.
pub(super) fn build(
    program: &mut Program,
    call: OpId,
    mesh: MeshId,
    args: &[TypeId],
) -> (OpId, BlockId) {
    let operands: Vec<ValueId> = program.operands(call).collect();
    let types: Vec<TypeId> =
        program.op_results(call).map(|result| program.type_of(result)).collect();
    let axes = free_axes(program, call, mesh);
    let new = NewOp::of_kind(OpKind::ManualComputation, &operands, &types)
        .payload(Payload::ManualComputation(axes))
        .regions(1);
    let at = program.before(call);
    let new = program.build(new, at);
    let block = program.add_block(program.region(new, 0), args);
    (new, block)
}

/// Sets the shardings of `new`, a manual computation, and replaces the results of `call` by its results, resharded to the shardings
/// of the call.
pub(super) fn replace(
    program: &mut Program,
    (call, new, block): (OpId, OpId, BlockId),
    mesh: MeshId,
    operands: &[ShardingId],
    results: &[ShardingId],
) {
    let args: Vec<ValueId> = program.block_args(block).collect();
    for (arg, &sharding) in args.into_iter().zip(operands) {
        program.set_sharding(arg, sharding);
    }
    let computed: Vec<ValueId> = program.op_results(new).collect();
    let replaced: Vec<ValueId> = program.op_results(call).collect();
    for ((&result, value), &sharding) in replaced.iter().zip(computed).zip(results) {
        program.set_sharding(value, sharding);
        let wanted = match program.sharding(result) {
            own if own.is_some() => own,
            _ => program.replicated(mesh, program.type_of(result), true),
        };
        let value = if is_same(program, wanted, sharding) {
            value
        } else {
            let at = program.before(call);
            let reshard = program.build_unary(OpKind::Reshard, value, wanted, at);
            program.result(reshard, 0)
        };
        if replaced.len() == 1 {
            program.copy_name(result, value);
            name_computed(program, block, result);
        }
        program.replace_all_uses(result, value);
    }
    program.erase_op(call);
}

/// Gives the value that `block` returns the name of `result`, if an op in `block` defines it.
fn name_computed(program: &mut Program, block: BlockId, result: ValueId) {
    let Some(end) = program.last_op(block).get() else { return };
    let value = program.operand(end, 0);
    let is_inside = program.defining_op(value).is_some_and(|op| program.num_results(op) == 1);
    if is_inside {
        program.copy_name(result, value);
    }
}

fn is_same(program: &Program, one: ShardingId, other: ShardingId) -> bool {
    let (one, other) = (&program.shardings()[one], &program.shardings()[other]);
    one.unreduced == other.unreduced && one.shards_alike(Some(other))
}
