//! A cache of strategies within a program: a strategy is chosen once for all ops of the same signature and placements. The layers
//! of a model repeat, so that all but the first only look it up.
//!
//! The key has the signature, the rule, the placements of operands and the targets of results, and the properties that
//! are in neither attributes nor types: the [`facts`](Key::facts). Ops without a signature, or with a rule of their
//! own, are not cached.

use crate::index::{Id, RuleId, SignatureId, TypeId, ValueId};
use crate::op_sharding_rule::OpShardingRule;
use crate::spmd::digits::Digit;
use crate::spmd::outcome::OutcomeKind;
use crate::spmd::placement::PlacementId;
use crate::spmd::reducer::Reducer;
use crate::spmd::strategy::{Ability, Strategy};
use rustc_hash::FxHashMap;
use std::rc::Rc;
use std::sync::Arc;

/// How an op is computed on shards.
#[derive(Clone, Debug)]
pub(in crate::spmd) struct Decision {
    pub rule: OpShardingRule,
    /// The shapes of operands, then results.
    pub shapes: Vec<Vec<i64>>,
    pub abilities: Vec<Ability>,
    pub strategy: Strategy,
    /// The placement of each result after the op.
    pub results: Vec<PlacementId>,
    /// The outcome that is reported, with the reason.
    pub outcome: (OutcomeKind, Arc<str>),
}

/// The key of a decision.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(in crate::spmd::lower) struct Key {
    pub signature: SignatureId,
    pub rule: RuleId,
    /// The placements of operands, the targets of results, and those of the shardings of results if some differ.
    pub placements: Vec<PlacementId>,
    /// For a concatenation that fetches from the operands of slices: the types of these, then of results.
    pub types: Vec<TypeId>,
    /// The digits of devices that are not manual, if the op is in a manual computation.
    pub free_digits: Vec<Digit>,
    pub facts: Vec<i64>,
    /// The operands that are broadcasts, with the values that are broadcast.
    pub origins: Vec<Origin>,
}

/// An operand that is a broadcast, as costs depend on it: its index, the placement and global type of the value that is broadcast,
/// and the dims.
pub(in crate::spmd::lower) type Origin = (usize, PlacementId, TypeId, Rc<[i64]>);

/// A cache of decisions.
#[derive(Default)]
pub(in crate::spmd::lower) struct Decisions {
    known: FxHashMap<Rc<Key>, Arc<Decision>>,
    /// By signature: the key and the decision that were looked up last. Neighbouring layers mostly agree.
    last: Vec<Option<(Rc<Key>, Arc<Decision>)>>,
    /// The key of the current op; a field to reuse its memory.
    pub key: Key,
    /// Whether a value, of a global type, is the identity of a reducer, cached.
    pub identities: FxHashMap<(Reducer, ValueId, TypeId), bool>,
}

impl Decisions {
    /// The decision for `signature` that was looked up last, if `is_for` holds for its key.
    pub fn last(
        &self,
        signature: SignatureId,
        is_for: impl FnOnce(&Key) -> bool,
    ) -> Option<Arc<Decision>> {
        let (key, decision) = self.last.get(signature.index())?.as_ref()?;
        is_for(key).then(|| Arc::clone(decision))
    }
    /// The decision for the current key.
    pub fn get(&mut self) -> Option<Arc<Decision>> {
        let (key, decision) = self.known.get_key_value(&self.key)?;
        let (key, decision) = (Rc::clone(key), Arc::clone(decision));
        self.set_last(key, &decision);
        Some(decision)
    }
    /// Adds the decision for `key`.
    pub fn add(&mut self, key: Key, decision: &Arc<Decision>) {
        let key = Rc::new(key);
        self.known.insert(Rc::clone(&key), Arc::clone(decision));
        self.set_last(key, decision);
    }
    fn set_last(&mut self, key: Rc<Key>, decision: &Arc<Decision>) {
        let at = key.signature.index();
        if self.last.len() <= at {
            self.last.resize(at + 1, None);
        }
        self.last[at] = Some((key, Arc::clone(decision)));
    }
}
