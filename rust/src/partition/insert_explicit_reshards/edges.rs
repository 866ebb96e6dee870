//! Reshards operands of data-flow ops and of calls, and values returned from regions and functions.

use super::unreduced::{add_unreduced_axes, reduce_for_use};
use crate::context::Context;
use crate::error::Result;
use crate::index::{OpId, ShardingId, UseId, ValueId};
use crate::ir::{InsertPoint, OpKind, Payload, Place, Program, SymbolTable, ValueDef};
use crate::sharding::TensorSharding;

/// Reshards the value of `slot` to `target` (`NONE` means replicated); if the full version is off,
/// only reduces its unreduced axes.
fn reshard_use(
    program: &mut Program,
    slot: UseId,
    target: ShardingId,
    place: Place,
    is_full: bool,
) -> Result<()> {
    let mut source = program.sharding_of(program.used_value(slot));
    if source.is_some() {
        source = reduce_for_use(program, slot, source, target, place)?;
    }
    if let Some(new) = add_unreduced_axes(program, slot, target, place)? {
        source = new;
    }
    if is_full && !program.are_equivalent(source, target) {
        let operand = program.used_value(slot);
        let target = match (target.get(), program.shardings().get(source)) {
            (None, Some(source)) => {
                let closed = TensorSharding::fully_replicated(source.mesh, source.dims.len(), true);
                program.intern_sharding(closed)
            }
            _ => target,
        };
        let at = InsertPoint { place, loc: program.value_loc(operand) };
        let reshard = program.build_unary(OpKind::Reshard, operand, target, at);
        program.set_cause(reshard, program.user(slot));
        program.set_operand(slot, program.result(reshard, 0));
    }
    Ok(())
}

/// Reshards the values that `func` returns to the shardings of its results.
pub fn reshard_returned(program: &mut Program, func_op: OpId, is_full: bool) -> Result<()> {
    let func = program.function_of(func_op);
    let Some(terminator) = program.region_terminator(func_op, 0).filter(|_| func.is_some()) else {
        return Ok(());
    };
    for (index, slot) in program.op_uses(terminator).enumerate() {
        let result = program.func_results(func).get(index);
        let target = result.map(|result| result.sharding).unwrap_or_default();
        reshard_use(program, slot, target, Place::Before(terminator), is_full)?;
    }
    Ok(())
}

/// Reshards the sources of every edge of `op` to the sharding of its owner; edges owned by results
/// come first. Returns false if `op` has no edges.
pub fn reshard_edges(
    program: &mut Program,
    context: &Context,
    op: OpId,
    is_full: bool,
) -> Result<bool> {
    let Some(spec) = context.rules.edges(program, op) else { return Ok(false) };
    let is_arg = |program: &Program, owner: ValueId| matches!(program.def(owner), ValueDef::Arg(_));
    let (args, results): (Vec<_>, Vec<_>) =
        spec.edges(program, op).into_iter().partition(|edge| is_arg(program, edge.owner));
    for edge in results.into_iter().chain(args) {
        let owner = edge.owner;
        let mut target = program.sharding(owner);
        let is_manual = program.kind(op) == OpKind::ManualComputation;
        if is_manual && !is_arg(program, owner) {
            target = program.inside_manual(op, target);
        }
        for slot in edge.sources {
            let place = program.place_after_value(program.used_value(slot));
            reshard_use(program, slot, target, place, is_full)?;
        }
    }
    Ok(true)
}

/// Reshards the operands of `call` to the shardings of the function's arguments.
pub fn reshard_call(
    program: &mut Program,
    symbols: &SymbolTable,
    call: OpId,
    is_full: bool,
) -> Result<()> {
    let func = match program.payload(call) {
        Some(Payload::Call(name)) => symbols.function(*name),
        _ => None,
    };
    let Some(func) = func else { return Ok(()) };
    let slots: Vec<UseId> = program.op_uses(call).collect();
    let mut targets = program.func_arg_shardings(func);
    if targets.is_empty() {
        let mut mesh = None;
        for &slot in &slots {
            let sharding = program.sharding_of(program.used_value(slot));
            let candidate = program.mesh_of(sharding).get();
            mesh = mesh.or(candidate.filter(|&mesh| !program.mesh(mesh).is_maximal()));
        }
        let Some(mesh) = mesh else { return Ok(()) };
        for &slot in &slots {
            let ty = program.type_of(program.used_value(slot));
            targets.push(program.replicated(mesh, ty, true));
        }
    }
    for (slot, target) in slots.into_iter().zip(targets) {
        let place = program.place_after_value(program.used_value(slot));
        reshard_use(program, slot, target, place, is_full)?;
    }
    Ok(())
}
