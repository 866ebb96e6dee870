//! Sinks reshards through broadcasts: if that sends less, the operand of a broadcast is resharded, and broadcast again. A local
//! value that is a slice of a larger shard counts as a broadcast of that along no dim, so that the larger shard need not be
//! gathered again.

use crate::index::OpId;
use crate::ir::OpKind;
use crate::spmd::lower::choice::decision_cache::Origin;
use crate::spmd::lower::constants::broadcast_table::Broadcast;
use crate::spmd::lower::{LocalValue, Lowering};
use crate::spmd::placement::{Placement, PlacementId};
use crate::spmd::policy::Policy;
use crate::spmd::results::Results;
use std::rc::Rc;

impl Lowering<'_, '_, '_> {
    /// Records the operand of `op` under its result, if `op` is a broadcast.
    pub(in crate::spmd::lower) fn note_broadcast(&mut self, op: OpId, operand: Option<LocalValue>) {
        let program = &*self.emit.program;
        if program.kind(op) != OpKind::BroadcastInDim {
            return;
        }
        let Some(operand) = operand else { return };
        // XLA's partitioner broadcasts numbers again, and gathers other broadcasts.
        let is_number = || self.placements[operand.placement].dims.is_empty();
        let is_kept = match self.how.policy {
            Policy::Xla => is_number() || self.how.has_free_reshards,
            _ => self.how.results != Results::AsSharded,
        };
        if !is_kept {
            return;
        }
        let signature = program.signature(op);
        let dims = match self.broadcast_dims.get(&signature) {
            Some(known) => Rc::clone(known),
            None => self.ints(op, "broadcast_dimensions").into(),
        };
        if signature.is_some() {
            self.broadcast_dims.insert(signature, Rc::clone(&dims));
        }
        let result = self.held(program.result(op, 0));
        let new = match self.broadcasts.get(&operand.shard()) {
            // Of what the operand is a broadcast of itself.
            Some(known) => Broadcast {
                operand: known.operand,
                dims: known.dims.iter().map(|&dim| dims[dim as usize]).collect(),
            },
            None => Broadcast { operand, dims },
        };
        self.broadcasts.insert(result.shard(), new);
    }
    /// Records `number`, a scalar, as the operand of `broadcast`.
    pub(in crate::spmd::lower) fn note_broadcast_of(
        &mut self,
        number: LocalValue,
        broadcast: LocalValue,
    ) {
        self.broadcasts
            .insert(broadcast.shard(), Broadcast { operand: number, dims: Rc::from([]) });
    }
    /// Records `held`, the larger shard, as the origin of `slice`.
    pub(in crate::spmd::lower) fn note_slice(&mut self, held: LocalValue, slice: LocalValue) {
        let is_kept = self.how.policy == Policy::FewestBytes || self.how.has_free_reshards;
        if !is_kept || slice.shard() == held.shard() {
            return;
        }
        let known = self.broadcasts.get(&held.shard()).cloned();
        let new = known.unwrap_or_else(|| {
            let rank = self.placements[held.placement].dims.len();
            Broadcast { operand: held, dims: (0..rank as i64).collect() }
        });
        if slice.shard() != new.operand.shard() {
            self.broadcasts.insert(slice.shard(), new);
        }
    }
    /// The origins of those of `operands` that are broadcasts.
    pub(in crate::spmd::lower) fn origins(&self, operands: &[LocalValue]) -> Vec<Origin> {
        if !operands.iter().any(|held| self.broadcasts.has(held.value)) {
            return Vec::new();
        }
        let origin = |(index, held): (usize, &LocalValue)| {
            let Broadcast { operand, dims } = self.broadcasts.get(&held.shard())?;
            Some((index, operand.placement, operand.global, Rc::clone(dims)))
        };
        operands.iter().enumerate().filter_map(origin).collect()
    }
    /// Whether `origins` are those of `operands`.
    pub(in crate::spmd::lower) fn are_origins(
        &self,
        origins: &[Origin],
        operands: &[LocalValue],
    ) -> bool {
        let mut left = origins.iter();
        let are_next = operands.iter().enumerate().all(|(index, held)| {
            let Some(Broadcast { operand, dims }) = self.broadcasts.get(&held.shard()) else {
                return true;
            };
            left.next().is_some_and(|&(at, placement, ty, ref own)| {
                (at, placement, ty) == (index, operand.placement, operand.global) && own == dims
            })
        });
        are_next && left.next().is_none()
    }
    /// The operand of which `held` is a broadcast, and the placement of it from which it can be broadcast to `target`.
    fn origin_at(
        &mut self,
        held: LocalValue,
        target: PlacementId,
    ) -> Option<(Broadcast, PlacementId)> {
        let known = self.broadcasts.get(&held.shard())?.clone();
        let wanted = &self.placements[target];
        if !wanted.partial.is_empty() {
            return None;
        }
        let (from, to) = (self.shape_of(known.operand.global)?, self.shape_of(held.global)?);
        let dims = known.dims.iter().zip(&from).map(|(&dim, &size)| {
            let dim = dim as usize;
            if to[dim] == size {
                wanted.dims[dim].clone()
            } else {
                Vec::new()
            }
        });
        let placement =
            Placement { order: wanted.order, dims: dims.collect(), partial: Vec::new() };
        let placement = self.placements.intern(placement.merged());
        Some((known, placement))
    }
    /// Elements that a device sends to broadcast `held` again with placement `target`; `None` if it is no broadcast.
    pub(in crate::spmd::lower) fn rebroadcast_elements(
        &mut self,
        held: LocalValue,
        target: PlacementId,
    ) -> Option<i64> {
        let (known, placement) = self.origin_at(held, target)?;
        Some(self.reshard_elements(known.operand, placement))
    }
    /// Broadcasts `held` again, with placement `target`.
    pub(in crate::spmd::lower) fn rebroadcast(
        &mut self,
        held: LocalValue,
        target: PlacementId,
    ) -> Option<LocalValue> {
        let (known, placement) = self.origin_at(held, target)?;
        let operand = self.reshard(known.operand, placement);
        let local = self.local_type(held.global, target);
        let is_slice = known.operand.global == held.global
            && known.dims.iter().enumerate().all(|(dim, &to)| dim as i64 == to);
        let value = if is_slice {
            operand.value
        } else {
            self.emit.broadcast(operand.value, &known.dims, local)
        };
        let new = LocalValue { value, placement: target, is_zero_padded: false, ..held };
        // No value is a part of itself.
        if new.shard() != known.operand.shard() {
            self.broadcasts.insert(new.shard(), known);
        }
        Some(new)
    }
}
