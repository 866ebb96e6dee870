//! Windows of an op: reductions of windows, on those that shards need; selections of windows that do not overlap, on
//! shards of whole windows.

use super::super::ways::{Ability, Way};
use super::geometry::{ints, padding};
use super::scan::pairs_attr;
use super::work::ByRule;
use super::{Held, Lowering};
use crate::index::{FactorId, Id, OpId};
use crate::ir::{int_array, OpKind, Program};
use crate::rule::OpShardingRule;

/// Whether `op` is a `select_and_scatter`.
fn is_selection(program: &Program, op: OpId) -> bool {
    program.kind(op) == OpKind::SelectAndScatter
}

/// Gives operand, source and result of a `select_and_scatter` one factor, that of the windows, for each dim that its windows
/// partition: those that neither overlap nor leave elements out, without padding.
pub(super) fn part_windows(
    program: &Program,
    op: OpId,
    rule: &mut OpShardingRule,
    shapes: &[Vec<i64>],
) {
    let ([operand, source, ..], true) = (shapes, is_selection(program, op)) else { return };
    let (sizes, strides) =
        (ints(program, op, "window_dimensions"), ints(program, op, "window_strides"));
    let edges = padding(program, op, operand.len());
    for dim in 0..operand.len() {
        let size = sizes.get(dim).copied().unwrap_or(1);
        let is_partition = strides.get(dim).copied().unwrap_or(1) == size
            && edges.get(dim) == Some(&[0, 0])
            && source[dim].checked_mul(size) == Some(operand[dim]);
        if !is_partition || size == 1 {
            continue;
        }
        rule.factor_sizes.push(source[dim]);
        let windows = FactorId::from_index(rule.factor_sizes.len() - 1);
        let tensors = rule.operands[..2].iter_mut().chain(rule.results.first_mut());
        for tensor in tensors {
            if let Some(place) = tensor.dims.get_mut(dim) {
                *place = vec![windows];
            }
        }
    }
}

/// Refines the abilities along the factors of [`part_windows`]: each shard has as many windows.
pub(super) fn refine(program: &Program, work: &ByRule, abilities: &mut [Ability]) {
    if !is_selection(program, work.op) {
        return;
    }
    let (operand, source) = (&work.rule.operands[0], &work.rule.operands[1]);
    for (dim, other) in operand.dims.iter().zip(&source.dims) {
        let [factor] = dim[..] else { continue };
        if dim == other && abilities[factor.index()] == Ability::Whole {
            abilities[factor.index()] = Ability::Parts;
        }
    }
}

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
