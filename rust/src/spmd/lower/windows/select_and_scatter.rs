//! `select_and_scatter` on shards. If windows partition a dim, each is computed where its elements are. Otherwise each shard
//! fetches the elements of all windows that overlap it, computes these windows, and keeps its own elements of the result:
//!
//! ```text
//! elements   0 1 2 | 3 4 5 | 6 7 8      windows of 3, stride 2: 0-2, 2-4, 4-6, 6-8
//! shard 1          2 3 4 5 6            fetches 2 and 6, for the windows from 2 and from 4 on
//! ```

use crate::index::{FactorId, Id, OpId};
use crate::ir::{OpKind, Program, Type};
use crate::op_sharding_rule::OpShardingRule;
use crate::spmd::lower::op_with_rule::OpWithRule;
use crate::spmd::lower::windows::elements_needed::window_dims;
use crate::spmd::lower::windows::halo_exchange::Move;
use crate::spmd::lower::{LocalValue, Lowering};
use crate::spmd::movement::{Fetch, Rounds, Windows};
use crate::spmd::reducer::Reducer;
use crate::spmd::strategy::{Ability, Strategy};
use crate::stablehlo::windows::WindowDim;

/// Whether `op` is a `select_and_scatter`.
fn is_selection(program: &Program, op: OpId) -> bool {
    program.kind(op) == OpKind::SelectAndScatter
}

/// Whether `windows` windows of `size` cover `elements` elements without overlaps and gaps.
fn is_partition(window: &WindowDim, size: i64, elements: i64, windows: i64) -> bool {
    window.stride == size && windows.checked_mul(size) == Some(elements)
}

/// Gives the operand, source and result of a `select_and_scatter` one factor for each dim with unpadded windows of more than one
/// element: that of the windows if they partition the dim, else that of its elements.
pub(in crate::spmd::lower) fn part_windows(
    program: &Program,
    op: OpId,
    rule: &mut OpShardingRule,
    shapes: &[Vec<i64>],
) {
    let ([operand, source, ..], true) = (shapes, is_selection(program, op)) else { return };
    for (dim, window) in window_dims(program, op, operand.len()).into_iter().enumerate() {
        let Some(size) = window.size.filter(|&size| size > 1) else { continue };
        if window.padding != [0, 0] {
            continue;
        }
        let is_partition = is_partition(&window, size, operand[dim], source[dim]);
        rule.factor_sizes.push(if is_partition { source[dim] } else { operand[dim] });
        let shared = FactorId::from_index(rule.factor_sizes.len() - 1);
        let tensors = rule.operands[..2].iter_mut().chain(rule.results.first_mut());
        for tensor in tensors {
            if let Some(place) = tensor.dims.get_mut(dim) {
                *place = vec![shared];
            }
        }
    }
}

/// `rule`, of a `select_and_scatter` whose windows partition a dim, changed so that shards have equally many elements of the
/// operand instead of equally many windows; `None` if windows partition no dim.
pub(in crate::spmd::lower) fn by_elements(
    rule: &OpShardingRule,
    shapes: &[Vec<i64>],
) -> Option<OpShardingRule> {
    let mut new = rule.clone();
    for (dim, own) in rule.operands[0].dims.iter().enumerate() {
        let (elements, windows) = (shapes[0][dim], shapes[1][dim]);
        if let &[factor] = &own[..] {
            let size = &mut new.factor_sizes[factor.index()];
            if *own == rule.operands[1].dims[dim] && *size == windows && windows < elements {
                *size = elements;
            }
        }
    }
    (new.factor_sizes != rule.factor_sizes).then_some(new)
}

/// The reducer of `work`, and the text of its identity.
fn reducer_of(program: &Program, work: &OpWithRule) -> Option<(Reducer, String)> {
    let Type::RankedTensor { element, .. } = &program.types()[work.results[0].0] else {
        return None;
    };
    let reducer = Reducer::of_selection(program, work.op)?;
    Some((reducer, reducer.identity(program.str(element.text))?))
}

/// Refines the abilities along the factors of [`part_windows`]: if windows partition a dim, all shards have equally many; otherwise
/// windows after the last one, which the last shard may have, scatter the identity of the reducer.
pub(in crate::spmd::lower) fn refine(
    program: &Program,
    work: &OpWithRule,
    abilities: &mut [Ability],
) {
    if !is_selection(program, work.op) {
        return;
    }
    let (operand, source) = (&work.rule.operands[0], &work.rule.operands[1]);
    let all = window_dims(program, work.op, work.shapes[0].len());
    for (dim, (own, window)) in operand.dims.iter().zip(&all).enumerate() {
        let (&[factor], Some(size)) = (&own[..], window.size) else { continue };
        if *own != source.dims[dim] || abilities[factor.index()] != Ability::Whole {
            continue;
        }
        let (elements, windows) = (work.shapes[0][dim], work.shapes[1][dim]);
        let has_whole_windows = work.rule.factor_sizes[factor.index()] == windows;
        if has_whole_windows && is_partition(window, size, elements, windows) {
            abilities[factor.index()] = Ability::Parts;
        } else if windows > 0 && reducer_of(program, work).is_some() {
            abilities[factor.index()] = Ability::Moved;
        }
    }
}

/// The windows along a dim that overlap each shard.
struct Touching {
    dim: usize,
    /// The number of elements of a shard.
    shard: i64,
    size: i64,
    stride: i64,
    /// The first window of each shard.
    firsts: Vec<i64>,
    /// The number of windows for each shard.
    count: i64,
}

impl Touching {
    /// Those among `windows`, for `count` shards of `shard` elements. A shard that none overlaps has the nearest one.
    fn of(
        dim: usize,
        (window, windows): (&WindowDim, i64),
        (count, shard): (i64, i64),
    ) -> Option<Self> {
        let (size, stride) = (window.size?, window.stride);
        let first = |number: i64| {
            let first = -(size - 1 - number * shard).div_euclid(stride);
            first.clamp(0, windows - 1)
        };
        let last = |number: i64| ((number + 1) * shard - 1).div_euclid(stride).min(windows - 1);
        let firsts = (0..count).map(first).collect();
        let count = (0..count).map(|number| last(number) - first(number) + 1).max()?.max(1);
        Some(Self { dim, shard, size, stride, firsts, count })
    }
    /// The number of elements that its windows span.
    fn span(&self) -> i64 {
        (self.count - 1) * self.stride + self.size
    }
    /// For each shard the offset of its own elements in its windows.
    fn leads(&self) -> impl Iterator<Item = i64> + '_ {
        let numbered = (0..).zip(&self.firsts);
        numbered.map(|(number, first)| number * self.shard - first * self.stride)
    }
}

impl Lowering<'_, '_, '_> {
    /// The windows that the shards of `work`, a `select_and_scatter`, compute under `strategy`, by dim.
    fn touching(&self, work: &OpWithRule, strategy: &Strategy) -> Vec<Touching> {
        if !is_selection(self.emit.program, work.op) {
            return Vec::new();
        }
        let shape = &work.shapes[0];
        let local = self.placements[strategy.operands[0]].local_shape(shape);
        let windows = window_dims(self.emit.program, work.op, shape.len());
        let dims = work.rule.operands[0].dims.iter().zip(&windows).enumerate();
        let found = dims.filter_map(|(dim, (factors, window))| {
            let &[factor] = &factors[..] else { return None };
            let is_moved = work.abilities[factor.index()] == Ability::Moved;
            let digits = &strategy.factors[factor.index()];
            if !is_moved || digits.is_empty() {
                return None;
            }
            let count = self.placements[strategy.operands[0]].num_shards(dim);
            Touching::of(dim, (window, work.shapes[1][dim]), (count, local[dim]))
        });
        found.collect()
    }
    /// The elements of the operand and the source that shards of `work`, a `select_and_scatter`, fetch under `strategy`.
    pub(in crate::spmd::lower) fn moves_of_selection(
        &self,
        work: &OpWithRule,
        strategy: &Strategy,
    ) -> Vec<Move> {
        let mut moves = Vec::new();
        for touching in self.touching(work, strategy) {
            let Touching { dim, stride, .. } = touching;
            let starts = touching.firsts.iter().map(|first| first * stride).collect();
            let lists = [(starts, touching.span()), (touching.firsts, touching.count)];
            for (operand, (starts, size)) in lists.into_iter().enumerate() {
                let elements = work.shapes[operand][dim];
                let windows = Windows::of_elements(elements, starts, size, elements);
                let digits = self.placements[strategy.operands[operand]].dims[dim].clone();
                moves.push(Move { operand, dim, digits, thinned: None, windows });
            }
        }
        moves
    }
    /// Selects and scatters in the windows of each shard.
    pub(in crate::spmd::lower) fn select_locally(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        mut operands: Vec<LocalValue>,
    ) {
        let touching = self.touching(work, strategy);
        let reducer = reducer_of(self.emit.program, work).filter(|_| !touching.is_empty());
        let Some((_, identity)) = reducer else { return self.in_place(work, strategy, &operands) };
        let moves = self.moves_of_selection(work, strategy);
        let (global, target) = work.results[0];
        let identity = self.emit.scalar(&identity, global);
        self.move_operands(work.op, strategy, &moves, &mut operands, |index| {
            (index == 1).then_some(identity)
        });
        self.set_operands(work.op, operands.iter().map(|held| held.value));
        let result = self.emit.program.result(work.op, 0);
        let shape = self.emit.shape(operands[0].value);
        let ty = self.emit.like(&shape, global);
        self.emit.program.set_type(result, ty);
        self.emit.go_after(work.op);
        let mut value = result;
        for windows in &touching {
            let mut fetch = Fetch {
                emit: &mut self.emit,
                collectives: &mut self.collectives,
                order: strategy.order,
                digits: &self.placements[strategy.operands[0]].dims[windows.dim],
                dim: windows.dim,
                rounds: Rounds::Fewest,
            };
            let low = windows.leads().map(|lead| -lead).max().unwrap_or(0).max(0);
            let end = windows.leads().map(|lead| lead + windows.shard).max().unwrap_or(0);
            let edges = [low, (end - windows.span()).max(0)];
            let [low_edge, high_edge] = edges.map(|count| fetch.along(count, shape.len()));
            let init = Some(operands[2].value);
            let padded = fetch.emit.pad(value, init, &low_edge, &high_edge);
            let starts: Vec<Option<i64>> = windows.leads().map(|lead| Some(lead + low)).collect();
            let start = fetch.per_shard(&starts);
            value = fetch.cut(padded, start, windows.shard);
        }
        let placement = strategy.results[0];
        let held =
            LocalValue { value, global, placement, reducer: Reducer::Add, is_zero_padded: false };
        let new = self.reshard(held, target);
        self.set_held(result, new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touching((size, stride): (i64, i64), windows: i64, shards: (i64, i64)) -> Touching {
        let window = WindowDim {
            size: Some(size),
            stride,
            padding: [0, 0],
            base_dilation: 1,
            window_dilation: 1,
            is_reversed: false,
        };
        Touching::of(0, (&window, windows), shards).unwrap()
    }

    #[test]
    fn shards_have_all_windows_that_touch_them() {
        let all = touching((3, 2), 4, (3, 3));
        assert_eq!((&all.firsts[..], all.count, all.span()), (&[0, 1, 2][..], 2, 5));
        assert_eq!(all.leads().collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn shards_between_windows_are_cut_from_what_is_around() {
        // Windows of 2 at 0, 7 and 14; shards of 3.
        let all = touching((2, 7), 3, (6, 3));
        assert_eq!((&all.firsts[..], all.count), (&[0, 1, 1, 2, 2, 2][..], 1));
        assert_eq!(all.leads().collect::<Vec<_>>(), [0, -4, -1, -5, -2, 1]);
    }
}
