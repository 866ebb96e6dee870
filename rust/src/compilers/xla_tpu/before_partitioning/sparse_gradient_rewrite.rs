//! Replaces scatters of one element along a dim by selections, as XLA for TPUs does before it propagates shardings.
//!
//! The gradient of a loss that takes the logarithm of one class in each row scatters one element into each row. XLA for TPUs compares
//! the index of each row with the numbers along the row instead, and selects the updated element where they are equal. A scatter is
//! sharded like its updates, and a selection like its operands, so shardings may differ.
//!
//! Source: what the pass `sparse-gradient-rewrite` of XLA's compiler for TPUs makes of scatters, read off its dumps. It rewrites those
//! without window dims whose operand has one inserted dim and otherwise batching dims, and whose indices have, besides the batching
//! dims, one dim of size one.

use crate::index::{OpId, ValueId};
use crate::inlining::call_inliner::Originals;
use crate::ir::{OpKind, Program};
use crate::mlir::op_attribute;
use crate::spmd::devices::Devices;
use crate::spmd::emit::Emitter;
use crate::spmd::reducer::Reducer;
use crate::stablehlo::dims::{IndexingDims, SCATTER};

/// Rewrites the scatters of the program, and records the originals of new ops in `originals`.
pub fn run(program: &mut Program, originals: &mut Originals) {
    for op in program.ops_of(&[OpKind::Scatter]) {
        let Some((dim, combine)) = one_element(program, op) else { continue };
        let before = (program.num_op_ids(), program.num_value_ids());
        let (old, new) = (program.result(op, 0), selected(program, op, dim, &combine));
        originals.note_made(program, before, op);
        program.copy_name(old, new);
        program.set_sharding(new, program.sharding(old));
        program.replace_all_uses(old, new);
        program.erase_op(op);
    }
}

/// How an element and its update are combined.
enum Combine {
    /// The update replaces the element.
    Update,
    /// They are reduced.
    By(Reducer),
}

/// The inserted dim of `op`, if it scatters one element along it, and how it combines them.
fn one_element(program: &Program, op: OpId) -> Option<(usize, Combine)> {
    if program.num_results(op) != 1 || program.num_operands(op) != 3 {
        return None;
    }
    let numbers = op_attribute(program, op, SCATTER.attribute)?;
    let dims: IndexingDims = IndexingDims::read(&numbers, &SCATTER)?;
    let [operand, indices, updates] =
        [0, 1, 2].map(|number| program.value_type(program.operand(op, number)).static_shape());
    let (operand, indices, updates) = (operand?, indices?, updates?);
    let &[inserted] = &dims.collapsed[..] else { return None };
    let is_whole = dims.window.is_empty() && dims.input_batching.len() + 1 == operand.len();
    let is_one = updates.len() == operand.len()
        && updates.iter().enumerate().all(|(dim, &size)| {
            size == if dim == inserted { 1 } else { *operand.get(dim).unwrap_or(&0) }
        });
    let is_in_order = dims.input_batching == dims.indices_batching
        && dims.index_vector == updates.len()
        && indices.get(updates.len()).is_none_or(|&size| size == 1);
    (is_whole && is_one && is_in_order).then_some((inserted, combined(program, op)?))
}

/// How `op`, a scatter, combines an element with an update.
fn combined(program: &Program, op: OpId) -> Option<Combine> {
    let block = program.region_entry(program.op_regions(op).next()?).get()?;
    let update = program.block_args(block).nth(1)?;
    if program.operands(program.last_op(block)).eq([update]) {
        return Some(Combine::Update);
    }
    Some(Combine::By(Reducer::of_region(program, op)?))
}

/// The selection that computes what `op` scatters along `dim`.
fn selected(program: &mut Program, op: OpId, dim: usize, combine: &Combine) -> ValueId {
    let [operand, indices, updates] = [0, 1, 2].map(|number| program.operand(op, number));
    let (ty, index_type) = (program.type_of(operand), program.type_of(indices));
    let mut emit = Emitter::new(program, Devices::default());
    emit.go_before(op);
    let shape = emit.shape(operand);
    let others: Vec<usize> = (0..shape.len()).filter(|&other| other != dim).collect();
    let rows: Vec<i64> = others.iter().map(|&other| shape[other]).collect();
    let dims: Vec<i64> = others.iter().map(|&other| other as i64).collect();
    let index_type = emit.like(&shape, index_type);
    let index = emit.reshape(indices, &rows);
    let index = emit.broadcast(index, &dims, index_type);
    let attrs = [("iota_dimension", format!("{dim} : i64"))];
    let number = emit.op("stablehlo.iota", &[], index_type, &attrs);
    let is_updated = emit.compare("EQ", index, number);
    let update = emit.reshape(updates, &rows);
    let mut update = emit.broadcast(update, &dims, ty);
    if let Combine::By(reducer) = combine {
        update = emit.elementwise(reducer.op_name(), &[operand, update]);
    }
    emit.select(is_updated, update, operand)
}
