//! Dynamic slices and dynamic update slices, whose start indices are operands.

use crate::index::{Id, OpId, TypeId, ValueId};
use crate::ir::{OpKind, Program};
use crate::spmd::lower::constants::no_operands::splat_text;
use crate::spmd::lower::gather_scatter::on_indexed_dims::{factor_of, is_number};
use crate::spmd::lower::op_with_rule::OpWithRule;
use crate::spmd::lower::{LocalValue, Lowering};
use crate::spmd::reducer::Reducer;
use crate::spmd::strategy::{Ability, Strategy};

/// Refines the abilities from the rules of these ops.
pub(in crate::spmd::lower) fn refine(
    program: &Program,
    work: &OpWithRule,
    abilities: &mut [Ability],
) {
    match program.kind(work.op) {
        OpKind::DynamicSlice => refine_dynamic_slice(program, work, abilities),
        OpKind::DynamicUpdateSlice => refine_update(work, abilities),
        _ => {}
    }
}

/// The clamped start indices of `op`, a slice of a tensor of type `ty`, with -1 for those that are not constant; empty if sizes are
/// not known.
pub(in crate::spmd::lower) fn starts(program: &Program, op: OpId, ty: TypeId) -> Vec<i64> {
    let result = program.value_type(program.result(op, 0)).static_shape();
    let (Some(shape), Some(result)) = (program.types()[ty].static_shape(), result) else {
        return Vec::new();
    };
    let starts = program.operands(op).skip(1);
    let sizes = shape.iter().zip(&result);
    let known = |start| constant_int(program, start);
    let starts = starts.zip(sizes).map(|(start, (size, taken))| {
        known(start).map_or(-1, |start| start.clamp(0, (size - taken).max(0)))
    });
    starts.collect()
}

/// The start indices of `op`, a dynamic update slice, with a number that is no valid start for those that are not constant.
pub(in crate::spmd::lower) fn starts_of_update(program: &Program, op: OpId) -> Vec<i64> {
    let starts = program.operands(op).skip(2);
    starts.map(|start| constant_int(program, start).unwrap_or(i64::MIN)).collect()
}

/// The integer value of `value`, if it is constant.
pub(in crate::spmd::lower) fn constant_int(program: &Program, value: ValueId) -> Option<i64> {
    let op = program.defining_op(value)?;
    let is_constant = matches!(program.kind(op), OpKind::Constant | OpKind::SdyConstant);
    if !is_constant {
        return None;
    }
    splat_text(program.constant_text(op))?.parse().ok()
}

/// Along a dim with a dynamic start the result is partial: each device contributes the part of the slice in its shard.
fn refine_dynamic_slice(program: &Program, work: &OpWithRule, abilities: &mut [Ability]) {
    let result = work.operands.len();
    for dim in 0..work.shapes[0].len() {
        let (Some(own), Some(taken)) = (factor_of(work, 0, dim), factor_of(work, result, dim))
        else {
            continue;
        };
        if own != taken && is_number(program, work) {
            abilities[own.index()] = Ability::Terms;
            abilities[taken.index()] = Ability::Whole;
        }
    }
}

/// The operand of an update may be sharded along dims of which the update covers only a part.
fn refine_update(work: &OpWithRule, abilities: &mut [Ability]) {
    for dim in 0..work.shapes[0].len() {
        let (Some(own), Some(update)) = (factor_of(work, 0, dim), factor_of(work, 1, dim)) else {
            continue;
        };
        if own != update {
            abilities[own.index()] = Ability::Local;
            abilities[update.index()] = Ability::Whole;
        }
    }
}

impl Lowering<'_, '_, '_> {
    /// Computes a dynamic slice: sharded dims are taken in full, or the window of each shard is fetched. Along a dim with
    /// a dynamic start, a device takes that part of the slice in its shard, with zeros around it.
    pub(in crate::spmd::lower) fn dynamic_slice_locally(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        mut operands: Vec<LocalValue>,
    ) {
        self.widen_starts(&mut operands[1..]);
        let mut starts: Vec<Option<ValueId>> =
            operands[1..].iter().map(|held| Some(held.value)).collect();
        let mut shape = self.result_shape(work, strategy, 0);
        let moves = self.moves(work, strategy);
        self.move_operands(work.op, strategy, &moves, &mut operands, |_| None);
        for step in &moves {
            let own = operands[1 + step.dim].value;
            starts[step.dim] = Some(self.emit.scalar("0", self.emit.type_of(own)));
            shape[step.dim] = step.windows.size;
        }
        let placement = self.placements[strategy.operands[0]].clone();
        let is_cut = |dim: usize| placement.dims[dim].is_empty();
        let value = operands[0].value;
        let mut room = vec![0; shape.len()];
        let terms = Self::dims_of_terms(work, strategy, 0);
        for dim in 0..shape.len() {
            let start = operands[1 + dim].value;
            let left = work.shapes[0][dim] - shape[dim];
            if terms.contains(&dim) {
                room[dim] = shape[dim];
                starts[dim] = Some(self.part_start(work, strategy, (dim, shape[dim]), start));
            } else if work.facts[dim] < 0 && left > 0 && is_cut(dim) {
                // XLA merges a slice of a slice into one, and clamps only the sum of their starts.
                starts[dim] = Some(self.within_bounds(start, left));
            }
        }
        let padded = self.emit.pad(value, None, &room, &room);
        let part = self.emit.dynamic_slice(padded, &starts, &shape);
        let reducer =
            if self.emit.element(work.results[0].0) == "i1" { Reducer::Or } else { Reducer::Add };
        self.replace_with_terms(work, strategy, part, reducer);
    }
    /// Computes an update: each device writes the part in its shard, by updating its shard padded by the size of the
    /// update on both sides and removing the padding. Nothing is sent.
    pub(in crate::spmd::lower) fn update_locally(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        mut operands: Vec<LocalValue>,
    ) {
        let placement = self.placements[strategy.operands[0]].clone();
        let update = &work.shapes[1];
        let partly: Vec<usize> = (0..update.len())
            .filter(|&dim| !placement.dims[dim].is_empty() && update[dim] != work.shapes[0][dim])
            .collect();
        if partly.is_empty() {
            return self.in_place(work, strategy, &operands);
        }
        self.widen_starts(&mut operands[2..]);
        let local = self.emit.shape(operands[0].value);
        let mut room = vec![0; local.len()];
        let mut values: Vec<ValueId> = operands.iter().map(|held| held.value).collect();
        for &dim in &partly {
            room[dim] = update[dim];
            values[2 + dim] = self.part_start(work, strategy, (dim, update[dim]), values[2 + dim]);
        }
        values[0] = self.emit.pad(values[0], None, &room, &room);
        let ty = self.emit.type_of(values[0]);
        let updated = self.emit.op("stablehlo.dynamic_update_slice", &values, ty, &[]);
        let limits: Vec<i64> = room.iter().zip(&local).map(|(room, size)| room + size).collect();
        let value = self.emit.slice(updated, &room, &limits);
        self.replace(work, strategy, &[value]);
    }
    fn widen_starts(&mut self, starts: &mut [LocalValue]) {
        for start in starts {
            *start = self.with_wide_indices(*start);
        }
    }
    /// `start` clamped to 0..=`last`, as these ops clamp it.
    fn within_bounds(&mut self, start: ValueId, last: i64) -> ValueId {
        let own = self.emit.type_of(start);
        let (zero, last) = (self.emit.scalar("0", own), self.emit.scalar(&last.to_string(), own));
        self.emit.op("stablehlo.clamp", &[zero, start, last], own, &[])
    }
    /// The start of a part of `len` elements along `dim` in a shard padded by `len` on both sides; the start is clamped to
    /// the global shape first.
    fn part_start(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        (dim, len): (usize, i64),
        start: ValueId,
    ) -> ValueId {
        let own = self.emit.type_of(start);
        let start = self.within_bounds(start, work.shapes[0][dim] - len);
        let index = self.emit.index_type();
        let start = self.emit.op("stablehlo.convert", &[start], index, &[]);
        let local = self.placements[strategy.operands[0]].local_shape(&work.shapes[0])[dim];
        let shard = self.shard_start(work, strategy, dim);
        let start = match shard {
            Some(shard) => self.emit.elementwise("stablehlo.subtract", &[start, shard]),
            None => start,
        };
        let start = self.emit.add_constant(start, len);
        // Outside of the shard, the part is in the padding.
        let zero = self.emit.index(0);
        let last = self.emit.index(local + len);
        let start = self.emit.op("stablehlo.clamp", &[zero, start, last], index, &[]);
        self.emit.op("stablehlo.convert", &[start], own, &[])
    }
}
