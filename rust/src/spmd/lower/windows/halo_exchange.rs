//! Halo exchange of an op: the elements that a device fetches from other shards, dim by dim.

use crate::index::{FactorId, Id, OpId, ValueId};
use crate::ir::OpKind;
use crate::spmd::digits::{total_size, Digit};
use crate::spmd::lower::op_with_rule::OpWithRule;
use crate::spmd::lower::windows::convolution::is_spatial;
use crate::spmd::lower::windows::elements_needed::{Geometries, Geometry};
use crate::spmd::lower::windows::shared_windows::{Taken, Thinned};
use crate::spmd::lower::{LocalValue, Lowering};
use crate::spmd::movement::{Fetch, Rounds, Windows};
use crate::spmd::policy::Policy;
use crate::spmd::strategy::{Ability, Strategy};
use crate::stablehlo::windows::WindowDim;

/// The elements that are fetched along one dim of an operand.
pub(in crate::spmd::lower) struct Move {
    pub operand: usize,
    pub dim: usize,
    pub digits: Vec<Digit>,
    /// The strided slice of its own shard that a device takes before it sends.
    pub thinned: Option<Thinned>,
    pub windows: Windows,
}

impl Lowering<'_, '_, '_> {
    /// The moves of `work` under `strategy`.
    pub(in crate::spmd::lower) fn moves(
        &self,
        work: &OpWithRule,
        strategy: &Strategy,
    ) -> Vec<Move> {
        let mut moves = self.moves_of_selection(work, strategy);
        if !moves.is_empty() {
            return moves;
        }
        // A reversal whose operand is in another order of devices.
        if strategy.operands.first().is_some_and(|&operand| {
            let (own, wanted) = (&self.placements[operand], &self.placements[strategy.results[0]]);
            own.order != wanted.order && !own.is_replicated()
        }) {
            return moves;
        }
        let mut geometries = None;
        for (operand, mapping) in work.rule.operands.iter().enumerate() {
            for (dim, factors) in mapping.dims.iter().enumerate() {
                let [factor] = factors[..] else { continue };
                let digits = &strategy.factors[factor.index()];
                if digits.is_empty() || !self.is_fetched(work, operand, factor) {
                    continue;
                }
                let geometries =
                    geometries.get_or_insert_with(|| Geometries::of(self.emit.program, work));
                let Some(geometry) = geometries.along(dim) else { continue };
                let Some((total, shard)) = self.sharded_with(work, strategy, factor) else {
                    continue;
                };
                let shards = (total, total_size(digits), shard);
                let elements = work.shapes[operand][dim];
                let mut step = Move::new(operand, dim, digits.clone(), &geometry, elements, shards);
                step.windows.dilates = matches!(
                    self.emit.program.kind(work.op),
                    OpKind::Convolution | OpKind::ReduceWindow
                );
                moves.push(step);
            }
        }
        moves
    }
    /// Whether `operand` is fetched along `factor`. A convolution whose result is partial along a spatial dim fetches the elements
    /// that its part of the kernel needs.
    fn is_fetched(&self, work: &OpWithRule, operand: usize, factor: FactorId) -> bool {
        match work.abilities[factor.index()] {
            Ability::Moved => true,
            Ability::Terms => operand == 0 && is_spatial(self.emit.program, work, factor),
            _ => false,
        }
    }
    /// The size of the dim that an operand is fetched for, and of its shard: a dim of the result, or of the kernel of a
    /// convolution.
    fn sharded_with(
        &self,
        work: &OpWithRule,
        strategy: &Strategy,
        factor: FactorId,
    ) -> Option<(i64, i64)> {
        let result = work.operands.len();
        let placements = || strategy.operands.iter().chain(&strategy.results);
        [result, 1].into_iter().find_map(|tensor| {
            let mapping = work.rule.tensors().nth(tensor)?;
            let dim = mapping.dims.iter().position(|dim| dim.contains(&factor))?;
            let shape = &work.shapes[tensor];
            let local = self.placements[*placements().nth(tensor)?].local_shape(shape);
            Some((shape[dim], local[dim]))
        })
    }
    /// Bits that a device sends to compute `work` under `strategy`, besides reshards of operands, and the dims.
    pub(in crate::spmd::lower) fn fetched(
        &self,
        work: &OpWithRule,
        strategy: &Strategy,
    ) -> (i64, Vec<String>) {
        if let Some((bits, dim)) = self.bits_of_parts(work, strategy) {
            return (bits, vec![format!("operands along dim {dim}")]);
        }
        if let Some(scan) = self.scan(work, strategy) {
            let place = format!("totals of shards along dim {}", scan.dim);
            return (self.bits_of_scan(work, strategy, &scan), vec![place]);
        }
        if !Self::joined_digits(work, strategy).is_empty() {
            let is_reduce = self.emit.program.kind(work.op) == OpKind::Reduce;
            let what =
                if is_reduce { "what shards are reduced to" } else { "the largest of shards" };
            return (self.bits_joined(work, strategy), vec![what.to_owned()]);
        }
        if let Some(fetched) = self.bits_of_intervals(work, strategy) {
            return fetched;
        }
        let moves = self.moves(work, strategy);
        let place = |step: &Move| format!("operand {} along dim {}", step.operand, step.dim);
        (self.bits_moved(work, strategy, &moves), moves.iter().map(place).collect())
    }
    /// How pieces that are fetched for `op` are sorted into rounds. For a reverse XLA's partitioner permutes whole shards, which is
    /// no halo exchange.
    pub(in crate::spmd::lower) fn rounds(&self, op: OpId) -> Rounds {
        let is_reverse = self.emit.program.op_name(op) == "stablehlo.reverse";
        if self.how.policy == Policy::Xla && !is_reverse {
            Rounds::AsXla
        } else {
            Rounds::Fewest
        }
    }
    /// Bits that a device sends for `moves`.
    fn bits_moved(&self, work: &OpWithRule, strategy: &Strategy, moves: &[Move]) -> i64 {
        let mut shapes: Vec<Option<Vec<i64>>> = vec![None; work.operands.len()];
        let mut bits = 0i64;
        let rounds = self.rounds(work.op);
        for step in moves {
            let shape = shapes[step.operand].get_or_insert_with(|| {
                self.placements[strategy.operands[step.operand]]
                    .local_shape(&work.shapes[step.operand])
            });
            if let Some(Thinned { stride, .. }) = step.thinned {
                shape[step.dim] /= stride;
            }
            let others = shape.iter().enumerate().filter(|&(dim, _)| dim != step.dim);
            let others = others.fold(1i64, |product, (_, &size)| product.saturating_mul(size));
            let sent = step.windows.schedule(shape[step.dim], rounds).sent();
            shape[step.dim] = step.windows.num_taken();
            let width = self.bits(work.operands[step.operand].global);
            bits = bits.saturating_add(sent.saturating_mul(others).saturating_mul(width));
        }
        bits
    }
    /// Performs `moves`: operands are replaced by their windows. Positions without elements have the operand's `fill`.
    pub(in crate::spmd::lower) fn move_operands(
        &mut self,
        op: OpId,
        strategy: &Strategy,
        moves: &[Move],
        operands: &mut [LocalValue],
        fill: impl Fn(usize) -> Option<ValueId>,
    ) {
        let rounds = self.rounds(op);
        for step in moves {
            let (value, fill) = (operands[step.operand].value, fill(step.operand));
            let key = Taken {
                windows: step.windows.clone(),
                thinned: step.thinned,
                digits: (strategy.order, step.digits.clone()),
                dim: step.dim,
                rounds,
                types: (self.emit.type_of(value), fill.map(|fill| self.emit.type_of(fill))),
            };
            if let Some(made) = self.taken.get(&key) {
                let (inputs, collectives) = ((value, fill), &mut self.collectives);
                if let Some(copied) = self.emit.copy_ops(made, inputs, collectives) {
                    operands[step.operand].value = copied;
                    continue;
                }
            }
            let start = self.emit.start();
            let mut fetch = Fetch {
                emit: &mut self.emit,
                collectives: &mut self.collectives,
                order: strategy.order,
                digits: &step.digits,
                dim: step.dim,
                rounds,
            };
            let own = match step.thinned {
                Some(thinned) => fetch.thin(value, thinned.phase, thinned.stride),
                None => value,
            };
            let window = step.windows.take(&mut fetch, own, fill);
            operands[step.operand].value = window;
            if let Some(made) = self.emit.made(start, (value, fill), window) {
                self.sign(start);
                self.taken.insert(key, made);
            }
        }
    }
}

impl Move {
    /// Removes from an op's `window` the padding and dilation that are already done.
    pub(in crate::spmd::lower) fn update(&self, window: &mut WindowDim) {
        if let Some(padding) = self.windows.left_to_op() {
            window.padding = padding;
        } else {
            (window.padding, window.base_dilation) = ([0, 0], 1);
        }
    }
    /// The windows of `geometry`. If a stride divides the size of shards, shards drop unused elements first.
    fn new(
        operand: usize,
        dim: usize,
        digits: Vec<Digit>,
        geometry: &Geometry,
        elements: i64,
        (total, count, shard): (i64, i64, i64),
    ) -> Self {
        let &Geometry { stride, low, .. } = geometry;
        let own = crate::layout::ceil_div(elements, count);
        let is_thin = stride > 1
            && geometry.reach == 1
            && geometry.dilation == 1
            && low <= 0
            && own % stride == 0;
        if !is_thin {
            let windows = geometry.windows(elements, (total, count, shard));
            return Self { operand, dim, digits, thinned: None, windows };
        }
        let phase = -low % stride;
        let thin = Geometry { stride: 1, low: -(-low / stride), ..*geometry };
        let left = crate::layout::ceil_div(elements - phase, stride);
        let windows = thin.windows(left, (total, count, shard));
        Self { operand, dim, digits, thinned: Some(Thinned { phase, stride }), windows }
    }
}
