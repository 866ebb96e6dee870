//! Plans of reshards, as the lowering of one program keeps them.

use super::super::placement::PlacementId;
use super::super::reducer::Reducer;
use super::super::repeat::Made;
use super::super::reshard::Plan;
use crate::index::TypeId;
use std::rc::Rc;
use std::sync::Arc;

/// What a plan is for: the placements before and after, and the type in the source program.
pub(super) type PlanOf = (PlacementId, PlacementId, TypeId);

/// The plan of a reshard.
pub(super) struct Planned {
    pub plan: Arc<Plan>,
    /// The placements before, between and after its steps, once they were asked for.
    pub places: Option<Rc<[PlacementId]>>,
    /// The ops of each step, as far as they can be copied, for a value of this type whose terms are reduced so.
    pub made: Vec<Option<(TypeId, Reducer, Made)>>,
}
