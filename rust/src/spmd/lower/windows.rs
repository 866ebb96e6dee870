//! Windows of an op: reductions of windows, on those that shards need.

use super::super::ways::Way;
use super::geometry::{ints, padding};
use super::scan::pairs_attr;
use super::work::ByRule;
use super::{Held, Lowering};
use crate::ir::int_array;

impl Lowering<'_, '_, '_> {
    /// Reduces the windows of each shard. What is fetched has padding and dilation already.
    pub(super) fn reduce_windows_locally(
        &mut self,
        work: &ByRule,
        way: &Way,
        mut operands: Vec<Held>,
    ) {
        if let Some(scan) = self.scan(work, way) {
            return self.scan_locally(work, way, &scan, operands[0]);
        }
        let moves = self.moves(work, way);
        if moves.is_empty() {
            return self.in_place(work, way, &operands);
        }
        let inits: Vec<_> = operands.iter().map(|held| held.value).collect();
        let num_inputs = operands.len() / 2;
        self.move_operands(way, &moves, &mut operands, |index| Some(inits[num_inputs + index]));
        let rank = work.shapes[0].len();
        let mut edges = padding(self.emit.program, work.op, rank);
        let mut dilations = ints(self.emit.program, work.op, "base_dilations");
        dilations.resize(rank, 1);
        let mut strides = ints(self.emit.program, work.op, "window_strides");
        strides.resize(rank, 1);
        for step in &moves {
            edges[step.dim] = [0, 0];
            dilations[step.dim] = 1;
            if step.thinned.is_some() {
                strides[step.dim] = 1;
            }
        }
        self.emit.program.set_attr(work.op, "window_strides", &int_array(&strides));
        self.emit.program.set_attr(work.op, "padding", &pairs_attr(&edges));
        self.emit.program.set_attr(work.op, "base_dilations", &int_array(&dilations));
        self.in_place(work, way, &operands);
    }
}
