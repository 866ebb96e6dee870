//! Reshapes that split or merge dims across shard boundaries. A group is a run of operand dims and a run of result dims with the
//! same elements. If only the major dim of a group is sharded, a shard is an interval of the group's elements in row-major order,
//! and each shard of the result fetches its interval.
//!
//! `8x3 -> 6x4` over 3 shards: operand shards have 3 rows, the intervals that start at 0, 9 and 18; result shards have 2 rows, the
//! intervals that start at 0, 8 and 16. The second shard fetches element 8, the third one 16 and 17.

use super::super::digits::{total_size, Digit};
use super::super::movement::{Fetch, Rounds, Windows};
use super::super::strategy::{Ability, Strategy};
use super::{LocalValue, Lowering};
use crate::index::{FactorId, Id};
use crate::ir::OpKind;
use crate::op_sharding_rule::{OpShardingRule, TensorMapping};
use crate::spmd::lower::op_with_rule::OpWithRule;
use std::ops::Range;

/// A run of operand dims and a run of result dims with the same elements.
struct Group {
    operand: Range<usize>,
    result: Range<usize>,
}

/// The interval that shards fetch in one group.
struct Interval {
    group: usize,
    digits: Vec<Digit>,
    windows: Windows,
}

/// The smallest groups of a reshape.
fn groups(operand: &[i64], result: &[i64]) -> Vec<Group> {
    let mut groups = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < operand.len() || j < result.len() {
        let (start, first) = (i, j);
        let (mut own, mut other) = (1i64, 1i64);
        loop {
            let takes_own = i < operand.len() && (own < other || i == start);
            let takes_other = j < result.len() && (other < own || j == first);
            if takes_own {
                own = own.saturating_mul(operand[i]);
                i += 1;
            } else if takes_other {
                other = other.saturating_mul(result[j]);
                j += 1;
            } else {
                break;
            }
        }
        groups.push(Group { operand: start..i, result: first..j });
    }
    groups
}

/// The first dim larger than one among `dims`: if it is sharded, shards are intervals of the group.
fn major(shape: &[i64], dims: &Range<usize>) -> Option<usize> {
    dims.clone().find(|&dim| shape[dim] > 1)
}

/// The number of elements of `dims`.
fn elements(shape: &[i64], dims: &Range<usize>) -> i64 {
    shape[dims.clone()].iter().product()
}

/// A sharding rule with one factor for the major dims of the operand and the result in each group, and the ability along each
/// factor. All other dims have to be replicated.
pub(super) fn by_intervals(operand: &[i64], result: &[i64]) -> (OpShardingRule, Vec<Ability>) {
    let mut sizes = Vec::new();
    let mut abilities = Vec::new();
    let mut factor = |size: i64, ability: Ability| {
        sizes.push(size);
        abilities.push(ability);
        vec![FactorId::from_index(sizes.len() - 1)]
    };
    let mut dims = [operand, result].map(|shape| vec![Vec::new(); shape.len()]);
    for group in groups(operand, result) {
        let majors = (major(operand, &group.operand), major(result, &group.result));
        if let (Some(own), Some(other)) = majors {
            let is_same = operand[own] == elements(operand, &group.operand)
                && result[other] == elements(result, &group.result);
            let shared =
                factor(operand[own], if is_same { Ability::Local } else { Ability::Moved });
            dims[0][own].clone_from(&shared);
            dims[1][other] = shared;
        }
    }
    for (dims, shape) in dims.iter_mut().zip([operand, result]) {
        for (dim, &size) in dims.iter_mut().zip(shape) {
            if dim.is_empty() {
                *dim = factor(size, Ability::Whole);
            }
        }
    }
    let [operand, result] = dims.map(|dims| vec![TensorMapping { dims }]);
    let rule = OpShardingRule {
        factor_sizes: sizes,
        operands: operand,
        results: result,
        ..OpShardingRule::default()
    };
    (rule, abilities)
}

impl Lowering<'_, '_, '_> {
    /// The intervals that shards of the result of `work`, a reshape, fetch under `strategy`.
    fn intervals(&self, work: &OpWithRule, strategy: &Strategy) -> Vec<Interval> {
        let is_moved = |factor: usize| {
            work.abilities[factor] == Ability::Moved && !strategy.factors[factor].is_empty()
        };
        let is_reshape = self.emit.program.kind(work.op) == OpKind::Reshape;
        if !is_reshape || !(0..work.abilities.len()).any(is_moved) {
            return Vec::new();
        }
        let local = self.result_shape(work, strategy, 0);
        let mut found = Vec::new();
        for (group, dims) in groups(&work.shapes[0], &work.shapes[1]).into_iter().enumerate() {
            let Some(major) = major(&work.shapes[0], &dims.operand) else { continue };
            let factor = work.rule.operands[0].dims[major][0].index();
            if !is_moved(factor) {
                continue;
            }
            let digits = strategy.factors[factor].clone();
            let (end, size) =
                (elements(&work.shapes[0], &dims.operand), elements(&local, &dims.result));
            let starts =
                (0..total_size(&digits)).map(|number| number.saturating_mul(size)).collect();
            let windows = Windows::of_elements(end, starts, size, end);
            found.push(Interval { group, digits, windows });
        }
        found
    }
    /// The shape of the local operand with one dim for each group.
    fn shape_of_groups(&self, work: &OpWithRule, strategy: &Strategy) -> Vec<i64> {
        let local = self.placements[strategy.operands[0]].local_shape(&work.shapes[0]);
        let all = groups(&work.shapes[0], &work.shapes[1]);
        all.iter().map(|group| elements(&local, &group.operand)).collect()
    }
    /// Bits that a device sends for the intervals of `work`, and the groups; `None` if nothing is fetched.
    pub(super) fn bits_of_intervals(
        &self,
        work: &OpWithRule,
        strategy: &Strategy,
    ) -> Option<(i64, Vec<String>)> {
        let intervals = self.intervals(work, strategy);
        if intervals.is_empty() {
            return None;
        }
        let mut shape = self.shape_of_groups(work, strategy);
        let mut sent = 0i64;
        let mut places = Vec::new();
        for Interval { group, windows, .. } in &intervals {
            let others = shape.iter().enumerate().filter(|(other, _)| other != group);
            let others = others.fold(1i64, |product, (_, &size)| product.saturating_mul(size));
            let own = windows.schedule(shape[*group], Rounds::Fewest).sent();
            sent = sent.saturating_add(own.saturating_mul(others));
            shape[*group] = windows.size;
            let dims = &groups(&work.shapes[0], &work.shapes[1])[*group].operand;
            places.extend(
                major(&work.shapes[0], dims).map(|dim| format!("operand 0 along dim {dim}")),
            );
        }
        Some((sent.saturating_mul(self.bits(work.operands[0].global)), places))
    }
    /// Reshapes shards; if shard boundaries differ, each fetches its interval.
    pub(super) fn reshape_locally(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        operands: &[LocalValue],
    ) {
        let intervals = self.intervals(work, strategy);
        if intervals.is_empty() {
            return self.in_place(work, strategy, operands);
        }
        let shape = self.shape_of_groups(work, strategy);
        let mut value = self.emit.reshape(operands[0].value, &shape);
        for Interval { group, digits, windows } in &intervals {
            let mut fetch = Fetch {
                emit: &mut self.emit,
                collectives: &mut self.collectives,
                order: strategy.order,
                digits,
                dim: *group,
                rounds: Rounds::Fewest,
            };
            value = windows.take(&mut fetch, value, None);
        }
        let local = self.result_shape(work, strategy, 0);
        let value = self.emit.reshape(value, &local);
        self.replace(work, strategy, &[value]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_as_small_as_they_can_be() {
        let ranges = |operand: &[i64], result: &[i64]| -> Vec<(Range<usize>, Range<usize>)> {
            let all = groups(operand, result).into_iter();
            all.map(|group| (group.operand, group.result)).collect()
        };
        assert_eq!(ranges(&[5, 8, 3], &[5, 6, 4]), [(0..1, 0..1), (1..3, 1..3)]);
        assert_eq!(ranges(&[24, 7], &[4, 6, 7]), [(0..1, 0..2), (1..2, 2..3)]);
        assert_eq!(ranges(&[1, 24], &[4, 6]), [(0..2, 0..2)]);
        assert_eq!(ranges(&[4, 6], &[24, 1]), [(0..2, 0..1), (2..2, 1..2)]);
        assert_eq!(ranges(&[1, 1], &[]), [(0..1, 0..0), (1..2, 0..0)]);
    }

    #[test]
    fn major_dims_of_a_group_are_one_factor() {
        let (rule, abilities) = by_intervals(&[5, 8, 3], &[5, 6, 4]);
        assert_eq!(rule.operands[0].dims[1], rule.results[0].dims[1]);
        assert_eq!(rule.operands[0].dims[0], rule.results[0].dims[0]);
        assert_eq!(abilities[rule.operands[0].dims[0][0].index()], Ability::Local);
        assert_eq!(abilities[rule.operands[0].dims[1][0].index()], Ability::Moved);
        assert_eq!(abilities[rule.operands[0].dims[2][0].index()], Ability::Whole);
    }
}
