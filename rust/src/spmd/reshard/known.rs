//! Plans of reshards that were searched for, which lowerings share. A plan depends on nothing but what it is known by.

use super::super::placement::{PlacementId, Placements};
use super::search::Plan;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Placements, and the plans between them for tensors of some shapes.
#[derive(Debug, Default)]
pub struct KnownPlans {
    /// The placements.
    pub placements: Placements,
    /// The plan from one placement to another, by shape.
    pub plans: FxHashMap<(PlacementId, PlacementId, Vec<i64>), Arc<Plan>>,
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
