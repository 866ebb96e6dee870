//! `sdy-reshard-to-collectives`: turns every reshard into collectives.
//!
//! A reshard becomes at most one all-slice, one collective permute, some all-to-alls and one
//! all-gather; if axes do not divide each other, all of that twice. See [`state::State`].
//!
//! Source: Shardy's `reshard_to_collectives`.

mod align;
mod all_to_all;
mod permute;
mod slice;
mod state;

pub(super) use align::{align, sorted};

use super::conversion::fold_all;
use super::insert_explicit_reshards::tensors::behind_barriers;
use crate::context::Context;
use crate::error::{Code, Diagnostic, Result};
use crate::index::{OpId, ShardingId, ValueId};
use crate::ir::{OpKind, Program, ValueMap};
use crate::sharding::TensorSharding;
use crate::shardy::Change;
use rustc_hash::FxHashSet;
use state::State;

/// The collectives that the pass does not change.
const LEGAL: [OpKind; 4] =
    [OpKind::AllGather, OpKind::AllSlice, OpKind::AllToAll, OpKind::CollectivePermute];

/// Runs the pass on `func`.
pub fn run(
    program: &mut Program,
    _context: &mut Context,
    func: OpId,
    keep_redundant_reshards: bool,
) -> Result<()> {
    let mut legal: FxHashSet<OpId> = FxHashSet::default();
    let mut reshards = Vec::new();
    for op in program.pre_order(func) {
        match program.kind(op) {
            OpKind::Reshard => reshards.push(op),
            kind if LEGAL.contains(&kind) => {
                legal.insert(op);
            }
            _ => {}
        }
    }
    // As in MLIR's conversions, uses are replaced after everything is converted: meanwhile,
    // look-ups of the input of a reshard find the original reshard, and new ops use its
    // replacement.
    let mut replaced = ValueMap::default();
    let mut converted = Vec::new();
    for op in reshards {
        if is_kept(program, op, keep_redundant_reshards) {
            legal.insert(op);
            continue;
        }
        let new = convert(program, op, &replaced)?;
        // Through barriers it may be the result of a reshard that was replaced already.
        replaced.insert(program.result(op, 0), replaced.get(new).unwrap_or(new));
        converted.push(op);
    }
    fold_all(program, func, |_, op| legal.contains(&op));
    for &op in &converted {
        let result = program.result(op, 0);
        if let Some(new) = replaced.get(result) {
            program.replace_all_uses(result, new);
        }
    }
    for op in converted {
        program.erase_op(op);
    }
    Ok(())
}

/// Whether two shardings have meshes that differ at most in their device order.
fn are_on_similar_meshes(program: &Program, first: ShardingId, second: ShardingId) -> bool {
    let (first, second) = (program.mesh_of(first), program.mesh_of(second));
    if first == second {
        return true;
    }
    let (first, second) = (program.mesh(first), program.mesh(second));
    first.axes == second.axes && first.is_maximal() == second.is_maximal()
}

/// Whether reshard `op` is kept.
fn is_kept(program: &mut Program, op: OpId, keep_redundant: bool) -> bool {
    let input = program.sharding_of(behind_barriers(program, program.operand(op, 0)));
    let output = program.sharding(program.result(op, 0));
    if keep_redundant && program.are_equivalent(input, output) {
        return true;
    }
    let is_on_device = |sharding| program.is_on_single_device(sharding);
    if program.shardy().has(Change::SingleDeviceReshardsKept)
        && (is_on_device(input) || is_on_device(output))
    {
        return true;
    }
    !program.is_fully_replicated(output)
        && input.is_some()
        && !are_on_similar_meshes(program, input, output)
}

/// Makes the collectives for `op`; returns the value that replaces its result.
fn convert(program: &mut Program, op: OpId, replaced: &ValueMap) -> Result<ValueId> {
    let operand = program.operand(op, 0);
    let operand = replaced.get(operand).unwrap_or(operand);
    let input = behind_barriers(program, operand);
    let mut output = program.sharding(program.result(op, 0));
    let ty = program.type_of(input);
    let source = match program.sharding_of(input).get() {
        Some(source) => source,
        None => program.replicated(program.mesh_of(output), ty, false),
    };
    let rank = program.shardings()[source].dims.len();
    if rank != program.shardings()[output].dims.len() {
        let message = "a reshard changes the number of sharded dims";
        return Err(Diagnostic::new(Code::InvalidSharding, message).at_op(program, op).into());
    }
    if program.is_fully_replicated(output) {
        if program.is_fully_replicated(source) {
            return Ok(operand);
        }
        let closed = TensorSharding::fully_replicated(program.mesh_of(source), rank, true);
        output = program.intern_sharding(closed);
    }
    let mut state = State::new(program, op, input, source, output);
    state.insert_collectives();
    Ok(state.value)
}
