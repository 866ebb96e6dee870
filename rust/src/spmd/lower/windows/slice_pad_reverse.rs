//! Slices, pads and reversals, which move elements along dims, computed on the windows of shards.

use crate::index::Id;
use crate::mesh::Mesh;
use crate::spmd::digits::{total_size, Digit};
use crate::spmd::lower::op_with_rule::OpWithRule;
use crate::spmd::lower::{LocalValue, Lowering};
use crate::spmd::strategy::{FactorDigits, Strategy};

/// The most devices for which another order is created.
const MAX_REVERSED: i64 = 1 << 14;

impl Lowering<'_, '_, '_> {
    /// Slices the window of each shard. Sharded dims that are taken in full are not sliced.
    pub(in crate::spmd::lower) fn slice_locally(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        mut operands: Vec<LocalValue>,
    ) {
        let [mut starts, mut limits, mut strides] =
            ["start_indices", "limit_indices", "strides"].map(|name| self.ints(work.op, name));
        let moves = self.moves(work, strategy);
        self.move_operands(work.op, strategy, &moves, &mut operands, |_| None);
        let local = self.emit.shape(operands[0].value);
        for (dim, digits) in self.placements[strategy.operands[0]].dims.iter().enumerate() {
            if !digits.is_empty() {
                (starts[dim], limits[dim]) = (0, local[dim]);
            }
        }
        for step in moves.iter().filter(|step| step.thinned.is_some()) {
            strides[step.dim] = 1;
        }
        let value = self.emit.strided_slice(operands[0].value, &starts, &limits, &strides);
        self.replace(work, strategy, &[value]);
    }
    /// Pads the window of each shard. Along dims that are fetched, windows are already padded.
    pub(in crate::spmd::lower) fn pad_locally(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        mut operands: Vec<LocalValue>,
    ) {
        let mut edges = ["edge_padding_low", "edge_padding_high", "interior_padding"]
            .map(|name| self.ints(work.op, name));
        let moves = self.moves(work, strategy);
        let fill = operands[1].value;
        self.move_operands(work.op, strategy, &moves, &mut operands, |_| Some(fill));
        for step in &moves {
            for list in &mut edges {
                list[step.dim] = 0;
            }
        }
        let [low, high, interior] = &edges;
        let value = self.emit.pad_between(operands[0].value, Some(fill), [low, high, interior]);
        self.replace(work, strategy, &[value]);
    }
    /// The order of devices in which the operand of `work`, a reverse, has to be if its result is in `order`, so that each device
    /// reverses its own shard: digits of reversed dims count backwards. `None` for other ops, if shards have padding, and if the
    /// order is fixed otherwise.
    pub(in crate::spmd::lower) fn reversed_order(
        &mut self,
        work: &OpWithRule,
        order: u32,
        digits: &FactorDigits,
    ) -> Option<u32> {
        let is_reverse = self.emit.program.op_name_id(work.op) == self.reverse;
        if !is_reverse || !self.is_free() || self.emit.devices.are_unlisted() {
            return None;
        }
        let mut reversed: Vec<Digit> = Vec::new();
        for dim in self.ints(work.op, "dimensions") {
            let dim = usize::try_from(dim).ok()?;
            let [factor] = work.rule.operands[0].dims.get(dim)?[..] else { return None };
            let own = &digits[factor.index()];
            if work.shapes[0][dim] % total_size(own) != 0 {
                return None;
            }
            reversed.extend(own);
        }
        if reversed.is_empty() {
            return None;
        }
        let mesh = self.reversed_mesh(order, &reversed)?;
        self.emit.devices.order_of(&mesh).ok()
    }
    /// The mesh with the devices of `order`, where `digits` count backwards; `None` if there are too many.
    pub(in crate::spmd::lower) fn reversed_mesh(
        &self,
        order: u32,
        digits: &[Digit],
    ) -> Option<Mesh> {
        let mesh = self.emit.devices.mesh(order)?;
        if mesh.device_count() > MAX_REVERSED {
            return None;
        }
        let other = |position: i64| {
            let turned = digits.iter().map(|digit| {
                let value = digit.value(position);
                (digit.size - 1 - 2 * value) * digit.stride
            });
            mesh.device_at_position(position + turned.sum::<i64>())
        };
        let ids = (0..mesh.device_count()).map(other).collect();
        Some(Mesh::new(mesh.axes.clone(), ids))
    }
    /// Reverses the window of each shard.
    pub(in crate::spmd::lower) fn reverse_locally(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        mut operands: Vec<LocalValue>,
    ) {
        let moves = self.moves(work, strategy);
        self.move_operands(work.op, strategy, &moves, &mut operands, |_| None);
        self.in_place(work, strategy, &operands);
    }
}
