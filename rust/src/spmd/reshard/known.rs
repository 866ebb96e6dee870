//! Plans of reshards that were searched for, which lowerings of the same program share.

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
