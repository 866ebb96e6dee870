//! Concatenations: a shard of the result has elements of few shards of the operands. If an operand is a slice along the
//! concatenated dim, it is not computed: each shard fetches the elements from the operand of the slice.

use crate::index::{Id, OpId, ValueId};
use crate::ir::{OpKind, Program};
use crate::mlir::op_attribute;
use crate::spmd::digits::{total_size, Digit};
use crate::spmd::lower::op_with_rule::OpWithRule;
use crate::spmd::lower::windows::elements_needed::ints;
use crate::spmd::lower::{LocalValue, Lowering};
use crate::spmd::movement::{pieces_of, Extent, Fetch, Rounds, Schedule};
use crate::spmd::outcome::OutcomeKind;
use crate::spmd::strategy::Strategy;

/// The dim along which `op` concatenates.
pub(in crate::spmd::lower) fn concatenated_dim(program: &Program, op: OpId) -> Option<usize> {
    if program.kind(op) != OpKind::Concatenate {
        return None;
    }
    let dim = op_attribute(program, op, "dimension").map_or(Some(0), |value| value.as_int())?;
    usize::try_from(dim).ok()
}

/// The only dim that the slice `op` slices, with stride 1, and the start along it.
fn cut_dim(program: &Program, op: OpId, shape: &[i64]) -> Option<(usize, i64)> {
    let [starts, limits, strides] =
        ["start_indices", "limit_indices", "strides"].map(|name| ints(program, op, name));
    if [&starts, &limits, &strides].iter().any(|list| list.len() != shape.len()) {
        return None;
    }
    let mut cut = (0..shape.len()).filter(|&dim| starts[dim] != 0 || limits[dim] != shape[dim]);
    let (dim, None) = (cut.next()?, cut.next()) else { return None };
    strides.iter().all(|&stride| stride == 1).then_some((dim, starts[dim]))
}

/// Whether `work`, a concatenation along `dim`, is a rotation or a periodic padding in XLA's partitioner: two parts of one tensor
/// that swap places, or the whole tensor with parts of it on both sides.
pub(in crate::spmd::lower) fn turns_around(work: &OpWithRule, dim: usize) -> bool {
    let ([first, ..], [(_, target)]) = (work.operands, work.results) else { return false };
    if first.placement != *target {
        return false;
    }
    let len = work.shapes[0][dim];
    match work.facts {
        [start, left, 0, right, 1] => start == right && left + right == len,
        [_, _, 0, middle, _, _, 1] => *middle == len,
        _ => false,
    }
}

impl Lowering<'_, '_, '_> {
    /// Whether `op`, a slice along a sharded dim, is skipped: its only users are concatenations along that dim, which fetch from
    /// its operand.
    pub(in crate::spmd::lower) fn leave_to_concatenations(&mut self, op: OpId) -> bool {
        let program = &*self.emit.program;
        if program.kind(op) != OpKind::Slice {
            return false;
        }
        let (operand, result) = (program.operand(op, 0), program.result(op, 0));
        let block = program.parent_block(op);
        let is_concatenation = |user: OpId| {
            program.kind(user) == OpKind::Concatenate && program.parent_block(user) == block
        };
        let has_users = program.users(result).next().is_some();
        if !has_users || !program.users(result).all(is_concatenation) {
            return false;
        }
        let held = self.held(operand);
        let Some(shape) = self.shape_of(held.global) else { return false };
        let program = &*self.emit.program;
        let Some((dim, start)) = cut_dim(program, op, &shape) else { return false };
        let is_along =
            program.users(result).all(|user| concatenated_dim(program, user) == Some(dim));
        if !is_along || self.placements[held.placement].dims[dim].is_empty() {
            return false;
        }
        self.slices.insert(result, (operand, start));
        self.note(op, OutcomeKind::Local, std::sync::Arc::default());
        self.dead.push(op);
        true
    }
    /// Replaces operands of a concatenation that are slices by the operands of these; returns the start and length of each, then 1
    /// if all are of one tensor.
    pub(in crate::spmd::lower) fn parts(
        &mut self,
        op: OpId,
        operands: &mut [LocalValue],
    ) -> Vec<i64> {
        let Some(dim) = concatenated_dim(self.emit.program, op) else { return Vec::new() };
        let values: Vec<ValueId> = self.emit.program.operands(op).collect();
        let mut parts = Vec::with_capacity(2 * values.len());
        for (&value, held) in values.iter().zip(operands.iter_mut()) {
            let ty = self.emit.program.type_of(value);
            let known = self.slices.get(&value).copied();
            let ty = if known.is_some() { ty } else { held.global };
            let len = self.shape_of(ty).and_then(|shape| shape.get(dim).copied()).unwrap_or(0);
            let (start, len) = match known {
                Some((operand, start)) => {
                    *held = self.held(operand);
                    (start, len)
                }
                None => (0, len),
            };
            parts.extend([start, len]);
        }
        if operands.iter().all(|held| held.value == operands[0].value) {
            parts.push(1);
        }
        parts
    }
    /// The digits of the concatenated dim under `strategy`, and the schedule by which shards fetch their windows.
    fn windows_of_parts(
        &self,
        work: &OpWithRule,
        strategy: &Strategy,
    ) -> Option<(usize, Vec<Digit>, Schedule)> {
        let dim = concatenated_dim(self.emit.program, work.op)?;
        let [factor] = work.rule.results[0].dims[dim][..] else { return None };
        let digits = strategy.factors[factor.index()].clone();
        if digits.is_empty() {
            return None;
        }
        let size = self.result_shape(work, strategy, 0)[dim];
        // Parts of one tensor are fetched from it alike.
        let is_one = work.facts.len() % 2 == 1;
        let mut pieces = Vec::new();
        let mut end = 0;
        for (input, part) in work.facts.chunks_exact(2).enumerate() {
            let &[start, len] = part else { continue };
            let shard =
                self.placements[strategy.operands[input]].local_shape(&work.shapes[input])[dim];
            let extent = Extent { low: start, high: start + len, shard };
            let shift = start - end;
            let starts: Vec<i64> =
                (0..total_size(&digits)).map(|number| number * size + shift).collect();
            let input = if is_one { 0 } else { input };
            pieces.extend(pieces_of(input, extent, &starts, size));
            end += len;
        }
        Some((dim, digits, Schedule::of(&pieces)))
    }
    /// Bits that a device sends for a concatenation, and the dim.
    pub(in crate::spmd::lower) fn bits_of_parts(
        &self,
        work: &OpWithRule,
        strategy: &Strategy,
    ) -> Option<(i64, usize)> {
        let (dim, _, schedule) = self.windows_of_parts(work, strategy)?;
        let shape = self.result_shape(work, strategy, 0);
        let others = shape.iter().enumerate().filter(|&(other, _)| other != dim);
        let others = others.fold(1i64, |product, (_, &size)| product.saturating_mul(size));
        let bits = schedule.sent().saturating_mul(others);
        Some((bits.saturating_mul(self.bits(work.results[0].0)), dim))
    }
    /// Computes each shard of the result from the fetched parts.
    pub(in crate::spmd::lower) fn concatenate_locally(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        operands: &[LocalValue],
    ) {
        let Some(dim) = concatenated_dim(self.emit.program, work.op) else {
            return self.in_place(work, strategy, operands);
        };
        let values: Vec<ValueId> = operands.iter().map(|held| held.value).collect();
        let Some((dim, digits, schedule)) = self.windows_of_parts(work, strategy) else {
            let mut parts = Vec::with_capacity(values.len());
            for (&value, part) in values.iter().zip(work.facts.chunks_exact(2)) {
                let mut limits = self.emit.shape(value);
                let mut starts = vec![0; limits.len()];
                (starts[dim], limits[dim]) = (part[0], part[0] + part[1]);
                parts.push(self.emit.slice(value, &starts, &limits));
            }
            if parts == values {
                return self.in_place(work, strategy, operands);
            }
            let value = self.emit.concatenate(&parts, dim);
            return self.replace(work, strategy, &[value]);
        };
        let size = self.result_shape(work, strategy, 0)[dim];
        let mut fetch = Fetch {
            emit: &mut self.emit,
            collectives: &mut self.collectives,
            order: strategy.order,
            digits: &digits,
            dim,
            rounds: Rounds::Fewest,
        };
        let value = fetch.window(&values, &schedule, size);
        self.replace(work, strategy, &[value]);
    }
}
