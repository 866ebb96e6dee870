//! Slices, pads and reversals, which move elements along dims, computed on the windows of shards.

use super::super::ways::Way;
use super::work::ByRule;
use super::{Held, Lowering};

impl Lowering<'_, '_, '_> {
    /// Slices the window of each shard. Sharded dims that are taken in full are not sliced.
    pub(super) fn slice_locally(&mut self, work: &ByRule, way: &Way, mut operands: Vec<Held>) {
        let [mut starts, mut limits, mut strides] =
            ["start_indices", "limit_indices", "strides"].map(|name| self.ints(work.op, name));
        let moves = self.moves(work, way);
        self.move_operands(work.op, way, &moves, &mut operands, |_| None);
        let local = self.emit.shape(operands[0].value);
        for (dim, digits) in self.placements[way.operands[0]].dims.iter().enumerate() {
            if !digits.is_empty() {
                (starts[dim], limits[dim]) = (0, local[dim]);
            }
        }
        for step in moves.iter().filter(|step| step.thinned.is_some()) {
            strides[step.dim] = 1;
        }
        let value = self.emit.strided_slice(operands[0].value, &starts, &limits, &strides);
        self.replace(work, way, &[value]);
    }
    /// Pads the window of each shard. Along dims that are fetched, windows are padded already.
    pub(super) fn pad_locally(&mut self, work: &ByRule, way: &Way, mut operands: Vec<Held>) {
        let mut edges = ["edge_padding_low", "edge_padding_high", "interior_padding"]
            .map(|name| self.ints(work.op, name));
        let moves = self.moves(work, way);
        let fill = operands[1].value;
        self.move_operands(work.op, way, &moves, &mut operands, |_| Some(fill));
        for step in &moves {
            for list in &mut edges {
                list[step.dim] = 0;
            }
        }
        let [low, high, interior] = &edges;
        let value = self.emit.pad_between(operands[0].value, Some(fill), [low, high, interior]);
        self.replace(work, way, &[value]);
    }
    /// Reverses the window of each shard.
    pub(super) fn reverse_locally(&mut self, work: &ByRule, way: &Way, mut operands: Vec<Held>) {
        let moves = self.moves(work, way);
        self.move_operands(work.op, way, &moves, &mut operands, |_| None);
        self.in_place(work, way, &operands);
    }
}
