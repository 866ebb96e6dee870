//! The shard of a source value that each device holds: its local value and its placement.

use crate::index::{TypeId, ValueId};
use crate::spmd::placement::PlacementId;
use crate::spmd::reducer::Reducer;

/// The local value of a value of the source program.
#[derive(Clone, Copy, Debug)]
pub(in crate::spmd) struct LocalValue {
    /// The value in the per-device program.
    pub value: ValueId,
    /// The type in the source program.
    pub global: TypeId,
    /// Its placement.
    pub placement: PlacementId,
    /// How terms are reduced, where the placement has some.
    pub reducer: Reducer,
    /// Whether padding is known to be zero.
    pub is_zero_padded: bool,
}

/// A local value as the shard of a tensor of a type with a placement. One value may be the shards of two tensors: of a
/// tensor with one column on each device, and of the slice that takes the first of these columns.
pub(in crate::spmd) type Shard = (ValueId, TypeId, PlacementId);

impl LocalValue {
    /// The local value, and the tensor that it is a shard of.
    pub const fn shard(&self) -> Shard {
        (self.value, self.global, self.placement)
    }
}
