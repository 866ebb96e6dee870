//! Removes ops that nothing uses, as XLA does before it hands a program to Shardy.
//!
//! A constraint or a manual computation among them would shard what it reads otherwise. What a loop carries stays even
//! if nobody reads it.
//!
//! Source: XLA's `HloDCE`, and `HasSideEffect` of its ops.

use crate::bitset::BitSet;
use crate::index::OpId;
use crate::ir::{OpKind, OpTraits, Program};

/// Removes the ops of `program` whose results nobody uses, and which have no side effects.
pub fn run(program: &mut Program) {
    let ops: Vec<OpId> = program.pre_order(program.module_op()).collect();
    // Ops that more than compute results, and those around them.
    let mut has_effects = BitSet::new(program.num_op_ids());
    // Users come before what they use, and ops before those around them.
    for &op in ops.iter().rev() {
        if has_effects.contains(op) || !is_free_of_effects(program, op) {
            if let Some(around) = program.parent_op(op) {
                has_effects.insert(around);
            }
            continue;
        }
        let is_used = program.op_results(op).any(|result| program.has_uses(result));
        if !is_used && !program.has_traits(op, OpTraits::TERMINATOR) {
            program.erase_op(op);
        }
    }
}

/// Whether `op`, without what is inside it, is no symbol or mark for propagation, and has no effect besides its results.
fn is_free_of_effects(program: &Program, op: OpId) -> bool {
    match program.kind(op) {
        OpKind::Module
        | OpKind::Func
        | OpKind::Mesh
        | OpKind::Call
        | OpKind::Composite
        | OpKind::ShardingGroup
        | OpKind::DataFlowEdge
        | OpKind::FuncDataFlowEdge => false,
        OpKind::CustomCall => {
            program.attr(op, "has_side_effect").is_none_or(|value| value.trim() != "true")
        }
        OpKind::Other => {
            let is_known = program.traits(op).is_some();
            is_known && !EFFECTS.contains(&program.op_name(op))
        }
        _ => true,
    }
}

/// Ops that do more than to compute their results. XLA counts collectives and `rng` as such.
const EFFECTS: [&str; 15] = [
    "func.call_indirect",
    "stablehlo.all_gather",
    "stablehlo.all_reduce",
    "stablehlo.all_to_all",
    "stablehlo.async_done",
    "stablehlo.async_start",
    "stablehlo.collective_broadcast",
    "stablehlo.collective_permute",
    "stablehlo.collective_reduce",
    "stablehlo.infeed",
    "stablehlo.outfeed",
    "stablehlo.recv",
    "stablehlo.reduce_scatter",
    "stablehlo.rng",
    "stablehlo.send",
];
