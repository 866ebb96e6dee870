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
    /// What else was decided by, see [`crate::spmd::lower::op_with_rule::OpWithRule::facts`].
    pub facts: Box<[i64]>,
    /// The values that operands are broadcasts of.
    pub origins: Box<[Origin]>,
    /// The placement of the sharding of its only result, and the type in the source program and of a shard.
    pub result: (PlacementId, TypeId, TypeId),
    pub decision: Arc<Decision>,
    /// Whether operands are resharded.
    pub moves: bool,
    /// Whether the result is resharded, or reduced.
    pub ends: bool,
    /// How terms are reduced, if it is a reduction of which the result is terms.
    pub reduces: Option<Reducer>,
    /// The next lowered op of this signature.
    pub next: Option<u32>,
}

/// The lowered ops, by signature.
#[derive(Default)]
pub(in crate::spmd::lower) struct Alike {
    pub known: Vec<KnownOp>,
    /// The ops that were lowered as it says, each with the place of what is remembered, that which is remembered first.
    pub ops: Vec<(u32, OpId)>,
    /// By signature, what was remembered last.
    pub last: IdVec<SignatureId, Option<u32>>,
}

/// The most that is remembered of ops with one signature.
const MOST: usize = 8;

impl Alike {
    /// The first op of each kind of those that are alike, but for erased ones; `NONE` if all are erased.
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
    /// Gives ops the signatures of those that they are like, `firsts`, which are updated.
    pub(in crate::spmd::lower) fn sign(&self, firsts: &[OpId], program: &mut Program) {
        for &(place, op) in &self.ops {
            if !program.is_erased(op) {
                program.update_types_like(firsts[place as usize], op);
            }
        }
    }
    /// Remembers `known` of `op`, which has this signature.
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
