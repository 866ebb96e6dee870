//! The plans of reshards that one lowering has made, by the two placements.

use crate::index::TypeId;
use crate::spmd::op_copies::Made;
use crate::spmd::placement::PlacementId;
use crate::spmd::reducer::Reducer;
use crate::spmd::reshard::Plan;
use std::rc::Rc;
use std::sync::Arc;

/// The key of a plan: the placements before and after, and the global type.
pub(in crate::spmd::lower) type PlanOf = (PlacementId, PlacementId, TypeId);

/// The plan of a reshard.
pub(in crate::spmd::lower) struct Planned {
    pub plan: Arc<Plan>,
    /// The placements before, between and after its steps, computed at the first request.
    pub places: Option<Rc<[PlacementId]>>,
    /// For each step the ops that were built, if they can be copied, with the type and reducer of the value.
    pub made: Vec<Option<(TypeId, Reducer, Made)>>,
}
