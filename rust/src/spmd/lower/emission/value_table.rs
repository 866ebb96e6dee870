//! The table from source values to the shards that devices hold.

use crate::index::{Id, TypeId, ValueId};
use crate::ir::{Type, ValueDef};
use crate::spmd::emit::zero;
use crate::spmd::lower::{LocalValue, Lowering};
use crate::spmd::placement::PlacementId;
use crate::spmd::reducer::Reducer;

impl Lowering<'_, '_, '_> {
    /// The local value of `value`, a value of the source program.
    pub fn held(&mut self, value: ValueId) -> LocalValue {
        if let Some(held) = self.held.get(value.index()).copied().flatten() {
            return held;
        }
        let global = self.emit.program.type_of(value);
        let rank = self.emit.program.types()[global].rank().unwrap_or(0);
        let placement = self.placements.replicated(rank);
        LocalValue { value, global, placement, reducer: Reducer::Add, is_zero_padded: false }
    }
    /// The type of `value` in the source program.
    pub fn global_type(&self, value: ValueId) -> TypeId {
        let held = self.held.get(value.index()).copied().flatten();
        held.map_or_else(|| self.emit.program.type_of(value), |held| held.global)
    }
    /// Records the local value of `value`.
    pub fn set_held(&mut self, value: ValueId, held: LocalValue) {
        if self.held.len() <= value.index() {
            self.held.resize(value.index() + 1, None);
        }
        self.held[value.index()] = Some(held);
    }
    /// Gives `value` the local type of `placement`, and records it as its own local value.
    pub fn keep(&mut self, value: ValueId, placement: PlacementId) -> LocalValue {
        let global = self.emit.program.type_of(value);
        let local = self.local_type(global, placement);
        if local != global {
            self.emit.program.set_type(value, local);
            let op = match self.emit.program.def(value) {
                ValueDef::Result(op) => op,
                ValueDef::Arg(block) => self.emit.program.block_parent_op(block),
            };
            self.retyped.push(op);
        }
        let held =
            LocalValue { value, global, placement, reducer: Reducer::Add, is_zero_padded: false };
        self.set_held(value, held);
        held
    }
    /// The shard of a tensor without elements, of type `global` with the placement `placement`.
    pub fn empty(&mut self, global: TypeId, placement: PlacementId) -> LocalValue {
        let local = self.local_type(global, placement);
        let zero = zero(self.emit.element(global));
        let zero = self.emit.scalar(zero, global);
        let value = self.emit.broadcast(zero, &[], local);
        LocalValue { value, global, placement, reducer: Reducer::Add, is_zero_padded: true }
    }
    /// Whether `ty` is of tensors whose dims all have a size.
    pub(in crate::spmd::lower) fn has_shape(&self, ty: TypeId) -> bool {
        matches!(&self.emit.program.types()[ty],
            Type::RankedTensor { shape, .. } if shape.iter().all(Option::is_some))
    }
    /// Whether tensors of type `ty` have no elements.
    pub fn is_empty(&self, ty: TypeId) -> bool {
        match &self.emit.program.types()[ty] {
            Type::RankedTensor { shape, .. } => {
                shape.contains(&Some(0)) && shape.iter().all(Option::is_some)
            }
            _ => false,
        }
    }
}
