//! Removes unused inputs of manual computations, and manual computations that have no effect.

use super::driver::Driver;
use crate::index::{BlockId, OpId, ShardingId, StrId, ValueId};
use crate::ir::{OpKind, Payload, Place, Program};
use rustc_hash::FxHashMap;

fn body(program: &Program, op: OpId) -> Option<BlockId> {
    program.region_entry(program.op_regions(op).next()?).get()
}

/// Removes inputs whose arguments have no uses.
pub fn drop_unused_inputs(driver: &mut Driver, op: OpId) -> bool {
    let program = &mut *driver.program;
    let Some(block) = body(program, op) else { return false };
    let is_unused: Vec<bool> =
        program.block_args(block).map(|arg| program.newest_use(arg).is_none()).collect();
    if !is_unused.contains(&true) || is_unused.len() != program.num_operands(op) {
        return false;
    }
    program.erase_operands(op, &is_unused);
    program.erase_block_args(block, &is_unused);
    true
}

/// Erases a manual computation without inputs, outputs and ops; inlines the body if the manual axes
/// have size 1.
pub fn drop_redundant(driver: &mut Driver, op: OpId) -> bool {
    let program = &mut *driver.program;
    let Some(block) = body(program, op) else { return false };
    let has_values = program.num_operands(op) + program.num_results(op) > 0;
    let first = program.first_op(block);
    let is_empty = first.get().is_some_and(|first| program.kind(first) == OpKind::SdyReturn);
    if is_empty && !has_values {
        driver.erase(op);
        return true;
    }
    if (has_values && !has_one_device(program, op, block)) || !is_inlinable(program, op) {
        return false;
    }
    // Inlined ops are visited only from the next iteration on.
    let inside: Vec<OpId> = program.pre_order(op).skip(1).collect();
    for inner in inside {
        driver.forget(inner);
    }
    inline(driver.program, op, block);
    driver.erase(op);
    true
}

/// Whether the product of the sizes of the manual axes is 1.
fn has_one_device(program: &Program, op: OpId, block: BlockId) -> bool {
    let Some(Payload::ManualComputation(manual)) = program.payload(op) else { return false };
    let values = program.block_args(block).chain(program.op_results(op));
    let shardings: Vec<ShardingId> = values.map(|value| program.sharding(value)).collect();
    let meshes = shardings.into_iter().filter_map(|sharding| program.mesh_of(sharding).get());
    let Some(mesh) = meshes.map(|mesh| program.mesh(mesh)).find(|mesh| !mesh.axes.is_empty())
    else {
        return manual.is_empty();
    };
    let size =
        |&name: &StrId| mesh.axis_by_name(program.str(name)).map_or(1, |axis| mesh.axis_size(axis));
    manual.iter().map(size).product::<i64>() == 1
}

/// Dialects whose ops MLIR can inline and inline into; in jaxlib, `func` is not one of them.
const INLINABLE: [&str; 5] = ["sdy.", "stablehlo.", "chlo.", "arith.", "tensor."];

/// Whether MLIR can inline all ops inside `op` into the region around `op`.
fn is_inlinable(program: &Program, op: OpId) -> bool {
    let is_known = |op| INLINABLE.iter().any(|dialect| program.op_name(op).starts_with(dialect));
    program.parent_op(op).is_some_and(is_known) && program.pre_order(op).skip(1).all(is_known)
}

/// Moves the ops of `block`, the body of `op`, before `op`, and replaces its results by the
/// returned values.
fn inline(program: &mut Program, op: OpId, block: BlockId) {
    let args: FxHashMap<ValueId, ValueId> =
        program.block_args(block).zip(program.operands(op)).collect();
    let all: Vec<OpId> = program.pre_order(op).skip(1).collect();
    for inner in all {
        // As in MLIR, uses are ordered as if the ops were copied.
        for slot in program.op_uses(inner) {
            let value = program.used_value(slot);
            program.set_operand(slot, args.get(&value).copied().unwrap_or(value));
        }
        forget_names(program, inner);
    }
    let ops: Vec<OpId> = program.block_ops(block).collect();
    for inner in ops {
        if program.kind(inner) != OpKind::SdyReturn {
            program.move_op(inner, Place::Before(op));
            continue;
        }
        let values: Vec<ValueId> = program.operands(inner).collect();
        for (result, value) in program.op_results(op).zip(values) {
            program.replace_all_uses(result, value);
        }
        program.erase_op(inner);
    }
}

/// Removes the names of values that `op` defines, since they may be taken in the region that it is
/// moved to.
fn forget_names(program: &mut Program, op: OpId) {
    let mut values: Vec<ValueId> = program.op_results(op).collect();
    for region in program.op_regions(op) {
        for block in program.region_blocks(region) {
            values.extend(program.block_args(block));
        }
    }
    for value in values {
        program.forget_name(value);
    }
}
