//! A cache of decisions: how an op is computed on shards is decided once for all ops with the same key. The layers of
//! a model repeat, so that all but the first of them take a look-up.
//!
//! The key has the signature, the rule, the placements of operands and the targets of results, and the properties that
//! are in neither attributes nor types: the [`facts`](Key::facts). Ops without a signature, or with a rule of their
//! own, are not cached.

use super::super::digits::Digit;
use super::super::outcome::OutcomeKind;
use super::super::placement::PlacementId;
use super::super::ways::{Ability, Way};
use crate::index::{RuleId, SignatureId, TypeId};
use crate::rule::OpShardingRule;
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
    pub way: Way,
    /// The placement of each result after the op.
    pub results: Vec<PlacementId>,
    /// The outcome that is reported, with the reason.
    pub outcome: (OutcomeKind, Arc<str>),
}

/// The key of a decision.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Key {
    pub signature: SignatureId,
    pub rule: RuleId,
    /// The placements of operands, then the targets of results, then those of the shardings of results where some differ.
    pub placements: Vec<PlacementId>,
    /// Of a concatenation, which fetches slices from their operands, the types of these, then of results.
    pub types: Vec<TypeId>,
    /// The digits of devices that are not manual, in manual computations.
    pub free_digits: Vec<Digit>,
    pub facts: Vec<i64>,
    /// What operands are broadcasts of.
    pub origins: Vec<Origin>,
}

/// The facts about an operand of an op that is a broadcast which costs depend on: its number, the placement and global type
/// of what is broadcast, and the dims.
pub(super) type Origin = (usize, PlacementId, TypeId, Rc<[i64]>);

/// A cache of decisions.
#[derive(Default)]
pub(super) struct Decisions {
    pub known: FxHashMap<Key, Arc<Decision>>,
    /// The key of the current op; a field to reuse its memory.
    pub key: Key,
}
