//! What is remembered of ops that keep their place, for others that are lowered like them; see [`super::alike`].

use super::super::outcome::OutcomeKind;
use super::super::placement::PlacementId;
use super::decisions::Origin;
use crate::index::{Id, IdVec, OpId, RuleId, SignatureId, TypeId};
use crate::ir::Program;
use std::sync::Arc;

/// What is remembered of an op.
pub(super) struct KnownOp {
    pub rule: RuleId,
    /// The placements and the local types of its operands.
    pub operands: Box<[(PlacementId, TypeId)]>,
    /// What operands are broadcasts of.
    pub origins: Box<[Origin]>,
    /// The placement of its only result, and the type in the source program and of a shard.
    pub result: (PlacementId, TypeId, TypeId),
    pub outcome: (OutcomeKind, Arc<str>),
    /// The ops that were lowered so, that which is remembered first.
    pub ops: Vec<OpId>,
    /// Another one of this signature.
    pub next: Option<u32>,
}

/// What is remembered of ops.
#[derive(Default)]
pub(super) struct Alike {
    pub known: Vec<KnownOp>,
    /// By signature, what was remembered last.
    pub last: IdVec<SignatureId, Option<u32>>,
}

/// The most that is remembered of ops with one signature.
const MOST: usize = 8;

impl Alike {
    /// One op of each kind of those that are alike.
    pub(super) fn firsts<'a>(&'a self, program: &'a Program) -> impl Iterator<Item = OpId> + 'a {
        let kept = |op: &OpId| !program.is_erased(*op);
        self.known.iter().filter_map(move |known| known.ops.iter().copied().find(kept))
    }
    /// Gives ops the signatures of those that they are like, which are updated.
    pub(super) fn sign(&self, program: &mut Program) {
        for known in &self.known {
            let kept = |op: &OpId| !program.is_erased(*op);
            let Some(first) = known.ops.iter().copied().find(kept) else { continue };
            program.update_types_like(first, &known.ops);
        }
    }
    pub(super) fn add(&mut self, signature: SignatureId, mut known: KnownOp) {
        while self.last.len() <= signature.index() {
            self.last.push(None);
        }
        let place = self.known.len() as u32;
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
