//! Rematerializes small values that depend on no argument, such as indices computed from an `iota`: instead of sending their
//! shards, each device computes the whole value.
//!
//! An op all of whose operands are such values is copied before it is lowered. The copy keeps the global types, and the shards of
//! its results count as slices of it; see [`super::broadcasts`]. Unused copies are erased at the end.

use crate::error::Result;
use crate::index::{Id, OpId, ValueId};
use crate::ir::{ConstantValue, OpKind, OpTraits, Place, ValueMap};
use crate::spmd::lower::constants::broadcast_table::Broadcast;
use crate::spmd::lower::{LocalValue, Lowering, LoweringKind, Reducer};

/// The most elements of a tensor that each device computes whole.
const MAX_ELEMENTS: i64 = 1 << 20;

impl Lowering<'_, '_, '_> {
    /// Lowers `op`, and records its results if they depend on no argument.
    pub(in crate::spmd::lower) fn lower_and_note(&mut self, op: OpId) -> Result<()> {
        if !self.is_unvarying(op) {
            return self.lower_op(op);
        }
        let copy = self.copied_whole(op);
        self.lower_op(op)?;
        self.note_unvarying(op, copy);
        Ok(())
    }
    /// Whether `op` computes small values, from operands that depend on no argument.
    fn is_unvarying(&mut self, op: OpId) -> bool {
        if !self.is_free() || self.emit.devices.are_unlisted() {
            return false;
        }
        let program = &*self.emit.program;
        let kind = program.kind(op);
        let is_candidate = match LoweringKind::of(kind) {
            LoweringKind::Constant | LoweringKind::Iota => true,
            LoweringKind::Reshard => {
                is_plain_reshard(kind) && self.is_known_whole(program.operand(op, 0))
            }
            LoweringKind::OpWithRule => {
                let is_computed = program.has_traits(op, OpTraits::PURE)
                    || matches!(
                        kind,
                        OpKind::Reduce | OpKind::ReduceWindow | OpKind::Scatter | OpKind::Sort
                    );
                is_computed
                    && program.num_operands(op) > 0
                    && program.operands(op).all(|value| self.is_known_whole(value))
            }
            _ => false,
        };
        is_candidate && self.emit.program.op_results(op).all(|value| self.is_small(value))
    }
    fn is_known_whole(&self, value: ValueId) -> bool {
        self.unvarying.whole.contains_key(&value)
    }
    fn is_small(&self, value: ValueId) -> bool {
        let shape = self.shape_of(self.emit.program.type_of(value));
        shape.is_some_and(|shape| {
            shape.iter().fold(1i64, |all, &size| all.saturating_mul(size)) <= MAX_ELEMENTS
        })
    }
    /// A copy of `op` on whole operands, right before it; `None` if `op` itself is not sharded.
    fn copied_whole(&mut self, op: OpId) -> Option<OpId> {
        let program = &*self.emit.program;
        // The elements of others are in the program once, and sliced.
        let is_splat = !matches!(program.constant_value(op), ConstantValue::Text(_));
        let kind = program.kind(op);
        let is_constant = LoweringKind::of(kind) == LoweringKind::Constant;
        if (is_constant && !is_splat) || is_plain_reshard(kind) {
            return None;
        }
        let operands: Vec<ValueId> = program.operands(op).collect();
        let results: Vec<ValueId> = program.op_results(op).collect();
        let are_whole = results.iter().all(|&value| {
            let target = self.target(value);
            self.placements[target].is_replicated()
        });
        let is_whole = |&value: &ValueId| {
            self.unvarying.whole.get(&value).is_some_and(|&it| it == self.held_value(value))
        };
        if are_whole && operands.iter().all(is_whole) {
            return None;
        }
        let mut map = ValueMap::default();
        for operand in operands {
            map.insert(operand, *self.unvarying.whole.get(&operand)?);
        }
        let copy = self.emit.program.clone_op(op, &mut map, false);
        self.emit.program.insert_op(copy, Place::Before(op));
        if kind == OpKind::SdyConstant {
            self.emit.program.rename_ops(&[copy], "stablehlo.constant");
        }
        self.unvarying.copies.push(copy);
        Some(copy)
    }
    fn held_value(&self, value: ValueId) -> ValueId {
        self.held.get(value.index()).copied().flatten().map_or(value, |held| held.value)
    }
    /// Records the results of `op`; `copy` computes them whole.
    fn note_unvarying(&mut self, op: OpId, copy: Option<OpId>) {
        let resharded = is_plain_reshard(self.emit.program.kind(op)).then(|| {
            let operand = self.emit.program.operand(op, 0);
            self.unvarying.whole.get(&operand).copied()
        });
        for index in 0..self.emit.program.num_results(op) {
            let result = self.emit.program.result(op, index);
            let Some(held) = self.held.get(result.index()).copied().flatten() else { continue };
            if self.placements[held.placement].is_replicated() {
                self.unvarying.whole.insert(result, held.value);
                continue;
            }
            let is_constant =
                LoweringKind::of(self.emit.program.kind(op)) == LoweringKind::Constant;
            let value = match (copy, resharded.flatten()) {
                (Some(copy), _) => self.emit.program.result(copy, index),
                (None, Some(whole)) => whole,
                (None, None) if is_constant => result,
                (None, None) => continue,
            };
            self.unvarying.whole.insert(result, value);
            if !self.broadcasts.contains(&held.shard()) {
                let rank = self.placements[held.placement].dims.len();
                let (placement, reducer) = (self.placements.replicated(rank), Reducer::Add);
                let whole = LocalValue { value, placement, reducer, is_zero_padded: false, ..held };
                let dims = (0..rank as i64).collect();
                self.broadcasts.insert(held.shard(), Broadcast { operand: whole, dims });
            }
        }
    }
    /// Erases the unused copies of ops.
    pub(in crate::spmd::lower) fn drop_copies(&mut self) {
        for copy in std::mem::take(&mut self.unvarying.copies).into_iter().rev() {
            let program = &mut *self.emit.program;
            if !program.op_results(copy).any(|result| program.has_uses(result)) {
                program.erase_op(copy);
            }
        }
    }
}

/// Whether ops of `kind` only change the sharding of their operand.
const fn is_plain_reshard(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::Reshard
            | OpKind::ShardingConstraint
            | OpKind::AllGather
            | OpKind::AllSlice
            | OpKind::AllToAll
            | OpKind::CollectivePermute
    )
}
