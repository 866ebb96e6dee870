//! Plans of reshards that were searched for, and decisions about ops, which lowerings share. They depend on nothing but what
//! they are known by.

use super::super::lower::shared_decisions::SharedDecisions;
use super::super::placement::{PlacementId, Placements};
use super::search::Plan;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Placements, the plans between them for tensors of some shapes, and decisions by them.
#[derive(Debug, Default)]
pub struct KnownPlans {
    /// The placements.
    pub placements: Placements,
    /// The plan from one placement to another, by shape.
    pub plans: FxHashMap<(PlacementId, PlacementId, Vec<i64>), Arc<Plan>>,
    /// How ops are computed on shards.
    pub(in crate::spmd) decisions: SharedDecisions,
}

impl KnownPlans {
    /// Whether they are few enough to be kept for other programs.
    pub fn is_small(&self) -> bool {
        self.placements.len() <= MAX_PLACEMENTS && self.plans.len() <= MAX_PLANS
    }
}

/// The most placements that are kept: each lowering copies them.
const MAX_PLACEMENTS: usize = 1 << 10;

/// The most plans that are kept.
const MAX_PLANS: usize = 1 << 14;
