//! A cache of reshard plans and of strategies that lowerings share. Entries depend only on their keys.

use super::super::digits::Digit;
use super::super::placement::{PlacementId, Placements};
use super::search::Plan;
use super::steps::Abilities;
use crate::spmd::lower::choice::shared_decision_cache::SharedDecisions;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The key of a plan.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PlanKey {
    /// The placement of the tensor.
    pub from: PlacementId,
    /// The target placement.
    pub to: PlacementId,
    /// The global shape.
    pub shape: Vec<i64>,
    /// The kinds of steps that the plan may take.
    pub abilities: Abilities,
    /// The digits of all devices under the policy `xla`, whose plans depend on replicated digits, too; else empty.
    pub devices: Vec<Digit>,
}

/// Placements, plans between them, and decisions about ops.
#[derive(Debug, Default)]
pub struct PlanCache {
    /// The placements.
    pub placements: Placements,
    /// The plans from one placement to another.
    pub plans: FxHashMap<PlanKey, Arc<Plan>>,
    /// How ops are computed on shards.
    pub(in crate::spmd) decisions: SharedDecisions,
}

impl PlanCache {
    /// Whether it is small enough to be kept for other programs.
    pub fn is_small(&self) -> bool {
        self.placements.len() <= MAX_PLACEMENTS && self.plans.len() <= MAX_PLANS
    }
}

/// The most placements that are kept: each lowering copies them.
const MAX_PLACEMENTS: usize = 1 << 10;

/// The most plans that are kept.
const MAX_PLANS: usize = 1 << 14;
