//! From shardings of the source program to placements.

use crate::index::{ShardingId, TypeId, ValueId};
use crate::spmd::lower::Lowering;
use crate::spmd::placement::{Placement, PlacementId};

impl Lowering<'_, '_, '_> {
    /// Numbers the placement of each sharding; `orders` are the orders of their devices.
    pub(in crate::spmd::lower) fn number_placements(&mut self, orders: &[Option<u32>]) {
        let program = &*self.emit.program;
        for (id, order) in program.shardings().ids().zip(orders) {
            let sharding = &program.shardings()[id];
            let rank = sharding.dims.len();
            let placement = match order {
                Some(order) => Placement::of(sharding, program.mesh(sharding.mesh), *order),
                None => Placement::replicated(rank),
            };
            self.by_sharding.push((rank, self.placements.intern(placement)));
        }
    }
    /// The placement that `sharding` gives to a value of type `ty`.
    #[inline]
    pub fn placement_of(&mut self, sharding: ShardingId, ty: TypeId) -> PlacementId {
        let rank = self.emit.program.types()[ty].rank().unwrap_or(0);
        match self.by_sharding.get(sharding) {
            Some(&(own, placement)) if own == rank => placement,
            _ => self.placements.replicated(rank),
        }
    }
    /// The placement that the sharding of `value` gives it.
    #[inline]
    pub fn target(&mut self, value: ValueId) -> PlacementId {
        let (sharding, ty) = (self.emit.program.sharding(value), self.emit.program.type_of(value));
        self.placement_of(sharding, ty)
    }
}
