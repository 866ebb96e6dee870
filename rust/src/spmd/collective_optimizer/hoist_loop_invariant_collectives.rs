//! `hoist-loop-invariant-collectives`: moves collectives with loop-invariant operands out of loops.
//!
//! Values that a `stablehlo.while` carries unchanged are loop-invariant, and so are values from outside. The ops that
//! a collective depends on move with it. Its result stays in memory while the loop runs, so the bytes of hoisted
//! results are limited for each loop. Inner loops are processed first, so that a collective may leave several.

use super::{Names, CHEAP, COLLECTIVES};
use crate::context::Context;
use crate::error::Result;
use crate::index::{BlockId, OpId, ValueId};
use crate::ir::{OpKind, Place, Program, Type, ValueDef};
use rustc_hash::{FxHashMap, FxHashSet};

/// The default limit of bytes of hoisted results for each loop.
pub const MAX_BYTES: i64 = 1 << 30;

/// Runs the pass on the module, with at most `max_bytes` of hoisted results for each loop.
pub fn run(program: &mut Program, context: &mut Context<'_>, max_bytes: i64) -> Result<()> {
    context.progress("hoist-loop-invariant-collectives", 0, 1)?;
    let mut loops = program.ops_of(&[OpKind::While]);
    loops.reverse();
    for op in loops {
        let Some(body) = program.region_entry(program.region(op, 1)).get() else { continue };
        let initial = invariant_arguments(program, op, body);
        let mut left = max_bytes;
        for inner in invariant_ops(program, body, &initial, &mut left) {
            for slot in program.op_uses(inner) {
                if let Some(&outside) = initial.get(&program.used_value(slot)) {
                    program.set_operand(slot, outside);
                }
            }
            program.move_op(inner, Place::Before(op));
        }
    }
    Ok(())
}

/// The arguments of `body` that it returns unchanged, with their initial values.
fn invariant_arguments(program: &Program, op: OpId, body: BlockId) -> FxHashMap<ValueId, ValueId> {
    let end = program.last_op(body);
    let arguments = program.block_args(body).zip(program.operands(end)).zip(program.operands(op));
    let invariant = arguments.filter(|((argument, returned), _)| argument == returned);
    invariant.map(|((argument, _), initial)| (argument, initial)).collect()
}

/// The loop-invariant collectives directly in `body`, and the ops they depend on, in program order.
fn invariant_ops(
    program: &Program,
    body: BlockId,
    initial: &FxHashMap<ValueId, ValueId>,
    left: &mut i64,
) -> Vec<OpId> {
    let mut invariant: FxHashSet<OpId> = FxHashSet::default();
    let mut wanted: FxHashSet<OpId> = FxHashSet::default();
    let is_invariant = |invariant: &FxHashSet<OpId>, value: ValueId| match program.def(value) {
        ValueDef::Arg(block) => block != body || initial.contains_key(&value),
        ValueDef::Result(op) => program.parent_block(op) != body || invariant.contains(&op),
    };
    let ops: Vec<OpId> = program.block_ops(body).collect();
    let (collectives, cheap) = (Names::new(program, &COLLECTIVES), Names::new(program, &CHEAP));
    for &op in &ops {
        let is_collective = collectives.contain(program, op);
        let may_move =
            is_collective || (cheap.contain(program, op) && program.num_regions(op) == 0);
        if !may_move || !program.operands(op).all(|value| is_invariant(&invariant, value)) {
            continue;
        }
        if is_collective {
            let bytes = result_bytes(program, op);
            if bytes > *left {
                continue;
            }
            *left -= bytes;
            wanted.insert(op);
        }
        invariant.insert(op);
    }
    for &op in ops.iter().rev() {
        if wanted.contains(&op) {
            let needed = program.operands(op).filter_map(|value| program.defining_op(value));
            wanted.extend(needed.filter(|needed| invariant.contains(needed)));
        }
    }
    ops.into_iter().filter(|op| wanted.contains(op)).collect()
}

/// Bytes of the results of `op`; the largest number if they are not known.
fn result_bytes(program: &Program, op: OpId) -> i64 {
    let bytes = |value: ValueId| {
        let Type::RankedTensor { element, .. } = program.value_type(value) else { return i64::MAX };
        let shape = program.value_type(value).static_shape();
        let bits = element.bits.map(i64::from);
        let (Some(shape), Some(bits)) = (shape, bits) else { return i64::MAX };
        shape.iter().fold(bits, |bits, &size| bits.saturating_mul(size)).saturating_add(7) / 8
    };
    program.op_results(op).map(bytes).fold(0, i64::saturating_add)
}
