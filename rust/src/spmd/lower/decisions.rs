//! Decisions that were made: how an op is computed on shards is worked out once for all ops that are alike. Layers of
//! a model repeat, so that all but the first of them cost a look-up.
//!
//! Two ops are alike if they have the same signature and rule, if devices hold their operands alike and want their
//! results alike, and if what neither attributes nor types say of them is the same: their [`facts`](Key::facts). An op
//! without a signature, or with a rule of its own, is like no other.

use super::super::outcome::OutcomeKind;
use super::super::placement::PlacementId;
use super::super::ways::{Ability, Way};
use crate::index::{RuleId, SignatureId, TypeId};
use crate::rule::OpShardingRule;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use std::sync::Arc;

/// What is decided of an op.
pub(super) struct Decision {
    pub rule: OpShardingRule,
    /// The shapes of operands, then results.
    pub shapes: Vec<Vec<i64>>,
    pub abilities: Vec<Ability>,
    pub way: Way,
    /// What is said of the op, and why.
    pub outcome: (OutcomeKind, Arc<str>),
}

/// What a decision depends on.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Key {
    pub signature: SignatureId,
    pub rule: RuleId,
    /// Of operands as they are held, then of results as they are wanted.
    pub placements: Vec<PlacementId>,
    /// Of operands, then results.
    pub types: Vec<TypeId>,
    pub facts: Vec<i64>,
}

/// What was decided before.
#[derive(Default)]
pub(super) struct Decisions {
    pub known: FxHashMap<Key, Rc<Decision>>,
    /// The key of the op at hand; kept for its memory.
    pub key: Key,
}
