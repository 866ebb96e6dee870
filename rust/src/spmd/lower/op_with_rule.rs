//! An op that is lowered by its sharding rule: the rule, its tensors, and whether it can be partitioned along each factor.

use super::LocalValue;
use crate::index::{OpId, TypeId};
use crate::op_sharding_rule::OpShardingRule;
use crate::spmd::lower::choice::decision_cache::{Decision, Key, Origin};
use crate::spmd::placement::PlacementId;
use crate::spmd::strategy::Ability;

/// An op that is lowered by its rule.
pub(super) struct OpWithRule<'a> {
    pub op: OpId,
    pub rule: &'a OpShardingRule,
    /// The local values of its operands.
    pub operands: &'a [LocalValue],
    /// The types of results in the source program, and their target placements.
    pub results: &'a [(TypeId, PlacementId)],
    /// The shapes of operands, then results.
    pub shapes: &'a [Vec<i64>],
    /// Properties of the op besides its attributes and its tensors: for a dynamic slice the clamped start of each dim, or -1 if it
    /// is not constant; for a dynamic update slice, under the policy `xla`, the starts; for a concatenation of slices the start and
    /// length of each, and 1 if they are of one tensor; for a scan whether it is elementwise; for other ops with regions their
    /// reducers.
    pub facts: &'a [i64],
    pub abilities: &'a [Ability],
}

/// The local values of the operands of an op, and the targets of its results.
#[derive(Default)]
pub(super) struct Tensors {
    pub operands: Vec<LocalValue>,
    /// The types of results in the source program, and their target placements.
    pub results: Vec<(TypeId, PlacementId)>,
    /// The placements of the shardings of results, if the targets of some differ; see
    /// [`crate::spmd::lower::choice::user_placement`].
    pub own: Vec<PlacementId>,
    /// See [`OpWithRule::facts`].
    pub facts: Vec<i64>,
    /// The values that operands are broadcasts of.
    pub origins: Vec<Origin>,
}

impl Tensors {
    pub(super) fn placements(&self) -> impl Iterator<Item = PlacementId> + '_ {
        let held = self.operands.iter().map(|held| held.placement);
        held.chain(self.results.iter().map(|result| result.1))
    }
    /// Whether `key` has these placements, facts and origins.
    pub(super) fn are_of(&self, key: &Key) -> bool {
        key.placements.iter().copied().eq(self.placements().chain(self.own.iter().copied()))
            && key.facts == self.facts
            && key.origins == self.origins
    }
    pub(super) fn types(&self) -> impl Iterator<Item = TypeId> + '_ {
        let held = self.operands.iter().map(|held| held.global);
        held.chain(self.results.iter().map(|result| result.0))
    }
}

impl<'a> OpWithRule<'a> {
    /// `op` with these tensors, and what was decided about it.
    pub(super) fn of(decision: &'a Decision, op: OpId, tensors: &'a Tensors) -> Self {
        Self::with(decision, op, (&tensors.operands, &tensors.results, &tensors.facts))
    }
    /// `op` with these operands, results and facts, and what was decided about it.
    pub(super) fn with(
        decision: &'a Decision,
        op: OpId,
        (operands, results, facts): (&'a [LocalValue], &'a [(TypeId, PlacementId)], &'a [i64]),
    ) -> Self {
        let Decision { rule, shapes, abilities, .. } = decision;
        Self { op, rule, operands, results, shapes, facts, abilities }
    }
}
