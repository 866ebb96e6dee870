//! A cache of reshard plans and of strategies that lowerings share. Its entries depend on nothing but their keys.

use super::super::digits::Digit;
use super::super::placement::{PlacementId, Placements};
use super::search::Plan;
use super::steps::Abilities;
use crate::spmd::lower::choice::shared_decision_cache::SharedDecisions;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The key of a plan: all that it depends on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PlanKey {
    /// The placement that the tensor has.
    pub from: PlacementId,
    /// The placement that it gets.
    pub to: PlacementId,
    /// Its shape.
    pub shape: Vec<i64>,
    /// The kinds of steps that the plan may take.
    pub abilities: Abilities,
    /// The digits of devices where XLA's partitioner decides, which looks at those that are replicated, too; else none.
    pub devices: Vec<Digit>,
}

/// Placements, the plans between them for tensors of some shapes, and decisions by them.
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
    /// Whether they are few enough to be kept for other programs.
    pub fn is_small(&self) -> bool {
        self.placements.len() <= MAX_PLACEMENTS && self.plans.len() <= MAX_PLANS
    }
}

/// The most placements that are kept: each lowering copies them.
const MAX_PLACEMENTS: usize = 1 << 10;

/// The most plans that are kept.
const MAX_PLANS: usize = 1 << 14;
