//! An op at hand: its rule, its tensors, and what it can do along each factor.

use super::super::placement::PlacementId;
use super::super::ways::Ability;
use super::decisions::Decision;
use super::Held;
use crate::index::{OpId, TypeId};
use crate::rule::OpShardingRule;

/// An op that is lowered by its rule.
pub(super) struct ByRule<'a> {
    pub op: OpId,
    pub rule: &'a OpShardingRule,
    /// What devices hold of its operands.
    pub operands: &'a [Held],
    /// The types of results in the source program, and how they are to lie.
    pub results: &'a [(TypeId, PlacementId)],
    /// The shapes of operands, then results.
    pub shapes: &'a [Vec<i64>],
    /// What the op depends on beside its attributes and its tensors: for a dynamic slice the start of each dim,
    /// within bounds, or -1 where it is no constant; for a concatenation of parts the start and the length of each;
    /// for other ops with regions how these reduce.
    pub facts: &'a [i64],
    pub abilities: &'a [Ability],
}

/// What devices hold of the tensors of an op, and want of them.
pub(super) struct Tensors {
    pub operands: Vec<Held>,
    /// The types of results in the source program, and how they are to lie.
    pub results: Vec<(TypeId, PlacementId)>,
    /// See [`ByRule::facts`].
    pub facts: Vec<i64>,
}

impl Tensors {
    pub(super) fn placements(&self) -> impl Iterator<Item = PlacementId> + '_ {
        let held = self.operands.iter().map(|held| held.placement);
        held.chain(self.results.iter().map(|result| result.1))
    }
    pub(super) fn types(&self) -> impl Iterator<Item = TypeId> + '_ {
        let held = self.operands.iter().map(|held| held.global);
        held.chain(self.results.iter().map(|result| result.0))
    }
}

impl<'a> ByRule<'a> {
    /// `op`, which has these tensors, and of which this is decided.
    pub(super) fn of(decision: &'a Decision, op: OpId, tensors: &'a Tensors) -> Self {
        Self {
            op,
            rule: &decision.rule,
            operands: &tensors.operands,
            results: &tensors.results,
            shapes: &decision.shapes,
            facts: &tensors.facts,
            abilities: &decision.abilities,
        }
    }
}
