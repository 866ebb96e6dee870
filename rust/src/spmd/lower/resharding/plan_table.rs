//! The plans of reshards that one lowering has made, by the two placements.

use crate::index::TypeId;
use crate::spmd::op_copies::Made;
use crate::spmd::placement::PlacementId;
use crate::spmd::reducer::Reducer;
use crate::spmd::reshard::Plan;
use std::rc::Rc;
use std::sync::Arc;

/// What a plan is for: the placements before and after, and the type in the source program.
pub(in crate::spmd::lower) type PlanOf = (PlacementId, PlacementId, TypeId);

/// The plan of a reshard.
pub(in crate::spmd::lower) struct Planned {
    pub plan: Arc<Plan>,
    /// The placements before, between and after its steps, once they were asked for.
    pub places: Option<Rc<[PlacementId]>>,
    /// The ops of each step, as far as they can be copied, for a value of this type whose terms are reduced so.
    pub made: Vec<Option<(TypeId, Reducer, Made)>>,
}
