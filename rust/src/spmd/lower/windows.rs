//! Windows of an op: reductions of windows, on those that shards need; selections of windows that do not overlap, on
//! shards of whole windows.

use super::super::ways::{Ability, Way};
use super::geometry::{array_of, window_dims};
use super::scan::pairs_attr;
use super::work::ByRule;
use super::{Held, Lowering};
use crate::index::{FactorId, Id, OpId};
use crate::ir::{OpKind, Program};
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
    for (dim, window) in window_dims(program, op, operand.len()).into_iter().enumerate() {
        let Some(size) = window.size else { continue };
        let is_partition = window.stride == size
            && window.padding == [0, 0]
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
        let mut windows = window_dims(self.emit.program, work.op, rank);
        for step in &moves {
            let window = &mut windows[step.dim];
            (window.padding, window.base_dilation) = ([0, 0], 1);
            if step.thinned.is_some() {
                window.stride = 1;
            }
        }
        let attrs = [
            ("window_strides", array_of(&windows, |window| window.stride)),
            (
                "padding",
                pairs_attr(&windows.iter().map(|window| window.padding).collect::<Vec<_>>()),
            ),
            ("base_dilations", array_of(&windows, |window| window.base_dilation)),
        ];
        for (name, text) in attrs {
            self.emit.program.set_attr(work.op, name, &text);
        }
        self.in_place(work, way, &operands);
    }
}
