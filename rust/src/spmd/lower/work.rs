//! An op at hand: its rule, its tensors, and what it can do along each factor.

use super::super::placement::PlacementId;
use super::super::ways::Ability;
use super::Held;
use crate::index::{OpId, TypeId};
use crate::rule::OpShardingRule;
use std::rc::Rc;

/// An op that is lowered by its rule.
pub(super) struct ByRule {
    pub op: OpId,
    pub rule: Rc<OpShardingRule>,
    /// What devices hold of its operands.
    pub operands: Vec<Held>,
    /// The types of results in the source program, and how they are to lie.
    pub results: Vec<(TypeId, PlacementId)>,
    /// The shapes of operands, then results.
    pub shapes: Vec<Vec<i64>>,
    /// What the op depends on beside its attributes and its tensors: for a dynamic slice the start of each dim,
    /// within bounds, or -1 where it is no constant; for a concatenation of parts the start and the length of each.
    pub facts: Vec<i64>,
    pub abilities: Vec<Ability>,
}
