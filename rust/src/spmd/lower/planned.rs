//! Plans of reshards, as the lowering of one program keeps them.

use super::super::placement::PlacementId;
use super::super::reshard::Plan;
use std::rc::Rc;
use std::sync::Arc;

/// The plan of a reshard.
pub(super) struct Planned {
    pub plan: Arc<Plan>,
    /// The placements before, between and after its steps, once they were asked for.
    pub places: Option<Rc<[PlacementId]>>,
}
