//! Dead code: finds and erases ops that have no side effects and whose results nothing uses.

use super::{Op, OpKind, OpTraits, Program};
use crate::bitset::BitSet;
use crate::index::{Id, OpId, ValueId};

/// Which unused ops without side effects are erased.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unused {
    /// All of them.
    All,
    /// All but collectives.
    WithoutCollectives,
}

impl Program {
    /// The ops in the program without used results, in the order of their ids.
    pub fn unused_ops(&self) -> impl Iterator<Item = OpId> + '_ {
        let is_unused = |row: &Op| {
            let results = row.first_result.index()..;
            row.parent.is_some()
                && !row.is_erased
                && results
                    .take(row.num_results as usize)
                    .all(|value| self.values[ValueId::from_index(value)].first_use.is_none())
        };
        let rows = self.ops.ids().zip(self.ops.iter());
        rows.filter(move |(_, row)| is_unused(row)).map(|(op, _)| op)
    }
    /// Erases ops that have no side effects and whose results are not used.
    pub fn erase_unused(&mut self, unused: Unused) {
        let ops: Vec<OpId> = self.pre_order(self.module_op()).collect();
        // Ops with side effects, and the ops that enclose them.
        let mut has_effects = BitSet::new(self.num_op_ids());
        // Users come before what they use, and ops before those around them.
        for &op in ops.iter().rev() {
            let around = self.parent_op(op);
            let is_kept = self.op_results(op).any(|result| self.has_uses(result))
                || self.has_traits(op, OpTraits::TERMINATOR);
            // Functions are kept, whatever is in them.
            if is_kept && around.is_some_and(|around| self.kind(around) == OpKind::Func) {
                continue;
            }
            if has_effects.contains(op) || !is_free_of_effects(self, op, unused) {
                if let Some(around) = around {
                    has_effects.insert(around);
                }
            } else if !is_kept {
                self.erase_op(op);
            }
        }
    }
}

/// Whether `op`, apart from ops inside it, has no side effects, is not a symbol, and does not
/// affect propagation.
fn is_free_of_effects(program: &Program, op: OpId, unused: Unused) -> bool {
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
            let name = program.op_name(op);
            let is_kept = unused == Unused::WithoutCollectives && COLLECTIVES.contains(&name);
            is_known && !is_kept && !EFFECTS.contains(&name)
        }
        _ => true,
    }
}

/// Ops of kind `Other` with side effects; XLA treats `rng` as one of these.
const EFFECTS: [&str; 8] = [
    "func.call_indirect",
    "stablehlo.async_done",
    "stablehlo.async_start",
    "stablehlo.infeed",
    "stablehlo.outfeed",
    "stablehlo.recv",
    "stablehlo.rng",
    "stablehlo.send",
];

/// Collectives.
const COLLECTIVES: [&str; 7] = [
    "stablehlo.all_gather",
    "stablehlo.all_reduce",
    "stablehlo.all_to_all",
    "stablehlo.collective_broadcast",
    "stablehlo.collective_permute",
    "stablehlo.collective_reduce",
    "stablehlo.reduce_scatter",
];
