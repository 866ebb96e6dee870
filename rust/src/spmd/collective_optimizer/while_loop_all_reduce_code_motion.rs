//! `while-loop-all-reduce-code-motion`: moves all-reduces whose results a loop only collects behind the loop.
//!
//! A loop that adds `all_reduce(x)` to what it carries, as accumulated gradients do, adds `x` to zeros instead; behind the loop
//! the sum is reduced once, and added to the initial value. A loop that writes `all_reduce(x)` to another slice of what it carries
//! in each trip writes `x`, and all slices are reduced behind it, if they are small. What is carried may have no other use in the
//! loop.
//!
//! Source: XLA's `WhileLoopAllReduceCodeMotion`, without the loops that select what they add.

use super::super::devices::Devices;
use super::super::emit::{zero, Emitter};
use super::super::reducer::Reducer;
use super::{is_formatting, participants, Names};
use crate::context::Context;
use crate::error::Result;
use crate::index::{BlockId, OpId, TypeId, ValueId};
use crate::ir::{OpKind, Program, Type, ValueDef};
use crate::stablehlo::trips::{counts_trips, trip_count};

const SUM: &str = "stablehlo.all_reduce";

/// The most bytes of slices that are reduced together.
const MAX_BYTES: u64 = 10240;

/// What a loop does with the result of an all-reduce.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Collected {
    /// It adds it to what it carries.
    Added,
    /// It writes it to another slice of what it carries in each trip.
    Written,
}

/// Runs the pass on the module.
pub fn run(program: &mut Program, context: &mut Context<'_>) -> Result<()> {
    context.progress("while-loop-all-reduce-code-motion", 0, 1)?;
    let sums = Names::new(program, &[SUM]);
    if sums.ids.is_empty() {
        return Ok(());
    }
    // Inner loops first, so that an all-reduce may leave several.
    let mut loops = program.ops_of(&[OpKind::While]);
    loops.reverse();
    for op in loops {
        let Some(body) = program.region_entry(program.region(op, 1)).get() else { continue };
        let ops: Vec<OpId> =
            program.block_ops(body).filter(|&inner| sums.contain(program, inner)).collect();
        for all_reduce in ops {
            if let Some((index, how)) = collected_in(program, op, body, all_reduce) {
                sink(program, (op, index), all_reduce, how);
            }
        }
    }
    Ok(())
}

/// The index of the value that the loop `op` carries in which it only collects the results of `all_reduce`.
fn collected_in(
    program: &Program,
    op: OpId,
    body: BlockId,
    all_reduce: OpId,
) -> Option<(usize, Collected)> {
    let reducer = Reducer::of_region(program, all_reduce)?;
    if program.num_results(all_reduce) != 1 || program.num_operands(all_reduce) != 1 {
        return None;
    }
    let (value, user) = formatted_to(program, program.result(all_reduce, 0))?;
    let (how, carried) = match program.op_name(user) {
        "stablehlo.add" if reducer == Reducer::Add => {
            let carried = program.operands(user).find_map(|value| origin(program, body, value))?;
            (Collected::Added, carried)
        }
        "stablehlo.dynamic_update_slice" if writes_each_slice(program, op, user, value) => {
            (Collected::Written, origin(program, body, program.operand(user, 0))?)
        }
        _ => return None,
    };
    let (last, end) = formatted_to(program, program.result(user, 0))?;
    let index = program.block_args(body).position(|argument| argument == carried)?;
    let is_returned = end == program.last_op(body)
        && program.operand(end, index) == last
        && program.type_of(last) == program.type_of(carried);
    let condition = program.region_entry(program.region(op, 0)).get()?;
    let is_kept = program.has_one_use(carried)
        && !program.has_uses(program.block_arg(condition, index))
        && program.type_of(program.operand(op, index)) == program.type_of(carried);
    (is_returned && is_kept).then_some((index, how))
}

/// Whether `write`, in the body of the loop `op`, writes `update` to another slice in each trip, all of them together to the whole
/// array, of few bytes.
fn writes_each_slice(program: &Program, op: OpId, write: OpId, update: ValueId) -> bool {
    let (Some(trips), true) = (trip_count(program, op), program.operand(write, 1) == update) else {
        return false;
    };
    let shape_of = |index| program.value_type(program.operand(write, index)).static_shape();
    let (Some(whole), Some(slice)) = (shape_of(0), shape_of(1)) else { return false };
    let Type::RankedTensor { element, .. } = program.value_type(update) else { return false };
    let bytes = u64::from(element.bits.unwrap_or(u32::MAX)).div_ceil(8);
    let size = |bytes: u64, &dim: &i64| bytes.saturating_mul(u64::try_from(dim).unwrap_or(0));
    let mut cut = (0..whole.len()).filter(|&dim| whole[dim] != slice[dim]);
    let (Some(dim), None) = (cut.next(), cut.next()) else { return false };
    whole.iter().fold(bytes, size) <= MAX_BYTES
        && slice[dim] == 1
        && u64::try_from(whole[dim]) == Ok(trips)
        && counts_trips(program, op, program.operand(write, 2 + dim), trips)
}

/// Whether `op` only changes the form or the type of its first operand.
fn changes_form(program: &Program, op: OpId) -> bool {
    program.op_name(op) == "stablehlo.convert" || is_formatting(program, op)
}

/// The value that `value` becomes by formatting ops, each the only use of the one before, and the op that uses it otherwise.
fn formatted_to(program: &Program, mut value: ValueId) -> Option<(ValueId, OpId)> {
    loop {
        if !program.has_one_use(value) {
            return None;
        }
        let user = program.users(value).next()?;
        if !changes_form(program, user) {
            return Some((value, user));
        }
        value = program.result(user, 0);
    }
}

/// The argument of `body` that `value` is by formatting ops, each the only use of the one before.
fn origin(program: &Program, body: BlockId, mut value: ValueId) -> Option<ValueId> {
    loop {
        if !program.has_one_use(value) {
            return None;
        }
        match program.def(value) {
            ValueDef::Arg(block) => return (block == body).then_some(value),
            ValueDef::Result(op) if changes_form(program, op) => {
                value = program.operand(op, 0);
            }
            ValueDef::Result(_) => return None,
        }
    }
}

/// Moves `all_reduce` behind the loop `op`, which collects its results in the value that it carries at `index`.
fn sink(program: &mut Program, (op, index): (OpId, usize), all_reduce: OpId, how: Collected) {
    let Some(reducer) = Reducer::of_region(program, all_reduce) else { return };
    let (term, sum) = (program.operand(all_reduce, 0), program.result(all_reduce, 0));
    let own = program.type_of(term);
    let (initial, result) = (program.operand(op, index), program.result(op, index));
    let (attrs, cause) = (participants(program, all_reduce), program.cause(all_reduce));
    program.replace_all_uses(sum, term);
    program.erase_op(all_reduce);
    let users: Vec<OpId> = program.users(result).collect();
    let mut emit = Emitter::new(program, Devices::default());
    emit.go_after(op);
    let (shape, ty) = (emit.shape(result), emit.type_of(result));
    let reduced = emit.like(&shape, own);
    let partial = converted(&mut emit, result, reduced);
    let new = emit.op_with_results(SUM, &[partial], &[reduced], &attrs);
    reducer.add_body(&mut emit, new, reduced);
    if let Some(cause) = cause {
        emit.program.set_cause(new, cause);
    }
    let whole = emit.program.result(new, 0);
    let mut total = converted(&mut emit, whole, ty);
    if how == Collected::Added {
        total = emit.elementwise("stablehlo.add", &[initial, total]);
        emit.go_before(op);
        let element = zero(emit.element(ty));
        let zeros = emit.splat(element, ty);
        let slot = emit.program.op_uses(op).nth(index);
        if let Some(slot) = slot {
            emit.program.set_operand(slot, zeros);
        }
    }
    for user in users {
        let slots: Vec<_> = program.op_uses(user).collect();
        for slot in slots {
            if program.used_value(slot) == result {
                program.set_operand(slot, total);
            }
        }
    }
}

/// `value` with the type `to`.
fn converted(emit: &mut Emitter<'_>, value: ValueId, to: TypeId) -> ValueId {
    if emit.type_of(value) == to {
        return value;
    }
    emit.op("stablehlo.convert", &[value], to, &[])
}
