//! The table of lowered ops, by signature and placements, that [`super::repeated_ops`] fills and reads.

use crate::index::{Id, IdVec, OpId, RuleId, SignatureId, TypeId};
use crate::ir::Program;
use crate::spmd::lower::choice::decision_cache::{Decision, Origin};
use crate::spmd::placement::PlacementId;
use crate::spmd::reducer::Reducer;
use std::sync::Arc;

/// A lowered op, with everything that its lowering depended on.
pub(in crate::spmd::lower) struct KnownOp {
    pub rule: RuleId,
    /// The placements and the local types of its operands.
    pub operands: Box<[(PlacementId, TypeId)]>,
    /// Other inputs of the decision, see [`crate::spmd::lower::op_with_rule::OpWithRule::facts`].
    pub facts: Box<[i64]>,
    /// The values that operands are broadcasts of.
    pub origins: Box<[Origin]>,
    /// The placement that the sharding of its only result gives, and the global and local type of the result.
    pub result: (PlacementId, TypeId, TypeId),
    pub decision: Arc<Decision>,
    /// Whether operands are resharded.
    pub moves: bool,
    /// Whether the result is resharded, or reduced.
    pub ends: bool,
    /// How the result is reduced, if it is partial.
    pub reduces: Option<Reducer>,
    /// The next lowered op of this signature.
    pub next: Option<u32>,
}

/// The lowered ops, by signature.
#[derive(Default)]
pub(in crate::spmd::lower) struct Alike {
    pub known: Vec<KnownOp>,
    /// The ops that were lowered by an entry, each with the index of that; the op that made the entry first.
    pub ops: Vec<(u32, OpId)>,
    /// By signature, the entry that was added last.
    pub last: IdVec<SignatureId, Option<u32>>,
}

/// The most entries of one signature.
const MOST: usize = 8;

impl Alike {
    /// For each entry its first op that is not erased; `NONE` if all are.
    pub(in crate::spmd::lower) fn firsts(&self, program: &Program) -> Vec<OpId> {
        let mut firsts = vec![OpId::NONE; self.known.len()];
        for &(place, op) in &self.ops {
            let first = &mut firsts[place as usize];
            if first.is_none() && !program.is_erased(op) {
                *first = op;
            }
        }
        firsts
    }
    /// Gives ops the signature of the first op of their entry, `firsts`, whose own are updated.
    pub(in crate::spmd::lower) fn sign(&self, firsts: &[OpId], program: &mut Program) {
        for &(place, op) in &self.ops {
            if !program.is_erased(op) {
                program.update_types_like(firsts[place as usize], op);
            }
        }
    }
    /// Adds the entry `known` for `op`, which has this signature.
    pub(in crate::spmd::lower) fn add(
        &mut self,
        op: OpId,
        signature: SignatureId,
        mut known: KnownOp,
    ) {
        while self.last.len() <= signature.index() {
            self.last.push(None);
        }
        let place = self.known.len() as u32;
        self.ops.push((place, op));
        known.next = self.last[signature].replace(place);
        let (mut at, mut count) = (known.next, 1);
        self.known.push(known);
        while let Some(place) = at {
            count += 1;
            let known = &mut self.known[place as usize];
            if count == MOST {
                known.next = None;
            }
            at = known.next;
        }
    }
}
