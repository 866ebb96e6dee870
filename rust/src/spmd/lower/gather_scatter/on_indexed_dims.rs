//! Gathers and scatters: along a sharded dim each device handles the indices in its shard.

use crate::index::{FactorId, Id, ValueId};
use crate::ir::{OpKind, Program, Type};
use crate::mlir::op_attribute;
use crate::spmd::digits::total_size;
use crate::spmd::lower::op_with_rule::OpWithRule;
use crate::spmd::lower::{LocalValue, Lowering};
use crate::spmd::reducer::Reducer;
use crate::spmd::strategy::{Ability, Strategy};
use crate::stablehlo::dims::{IndexingDims, GATHER, SCATTER};

/// Refines the abilities from the rules of gathers and scatters.
pub(in crate::spmd::lower) fn refine(
    program: &Program,
    work: &OpWithRule,
    abilities: &mut [Ability],
) {
    match program.kind(work.op) {
        OpKind::Gather => refine_gather(program, work, abilities),
        OpKind::Scatter => refine_scatter(program, work, abilities),
        _ => {}
    }
}

/// The only factor of dim `dim` of tensor `tensor`.
pub(in crate::spmd::lower) fn factor_of(
    work: &OpWithRule,
    tensor: usize,
    dim: usize,
) -> Option<FactorId> {
    match work.rule.tensors().nth(tensor)?.dims.get(dim)?[..] {
        [factor] => Some(factor),
        _ => None,
    }
}

/// Whether the elements of the first operand can be summed, or or-ed, with zero.
pub(in crate::spmd::lower) fn is_number(program: &Program, work: &OpWithRule) -> bool {
    let Type::RankedTensor { element, .. } = &program.types()[work.operands[0].global] else {
        return false;
    };
    let element = program.str(element.text);
    Reducer::Or.identity(element).is_some() || Reducer::Max.identity(element).is_some()
}

/// How a gather or scatter uses the dims of its operand.
struct Indexed {
    dims: IndexingDims,
    /// The sizes of slices, for a gather.
    sizes: Vec<i64>,
}

impl Indexed {
    fn read(program: &Program, work: &OpWithRule) -> Option<Self> {
        let op = work.op;
        let names = if program.kind(op) == OpKind::Gather { &GATHER } else { &SCATTER };
        let dims = IndexingDims::read(&op_attribute(program, op, names.attribute)?, names)?;
        let sizes = op_attribute(program, op, "slice_sizes").and_then(|list| list.as_ints());
        Some(Self { dims, sizes: sizes.unwrap_or_default() })
    }
}

/// Along dims from which slices take one element, the results of a gather on shards are partial.
fn refine_gather(program: &Program, work: &OpWithRule, abilities: &mut [Ability]) {
    let Some(indexed) = Indexed::read(program, work) else {
        abilities.fill(Ability::Whole);
        return;
    };
    let is_number = is_number(program, work);
    for dim in 0..work.shapes[0].len() {
        let Some(factor) = factor_of(work, 0, dim) else { continue };
        let ability = &mut abilities[factor.index()];
        let is_indexed = indexed.dims.index_map.contains(&dim);
        // Slices that take all of a dim start at 0, since start indices are clamped.
        let is_one = indexed.sizes.get(dim) == Some(&1);
        if *ability == Ability::Terms && !(is_indexed && is_one && is_number) {
            *ability = Ability::Whole;
        }
    }
}

/// A scatter ignores windows that are out of bounds, so each device ignores updates outside its shard. Along a dim, a window of one
/// element is in one shard; a window that covers the whole dim is in bounds only if it starts at 0, globally as in a shard; any
/// other may cross a shard boundary.
fn refine_scatter(program: &Program, work: &OpWithRule, abilities: &mut [Ability]) {
    let Some(indexed) = Indexed::read(program, work) else {
        abilities.fill(Ability::Whole);
        return;
    };
    let updates = &work.rule.operands[work.results.len() + 1];
    // Windows are at index 0 of dims that they do not have and no index is for.
    for &dim in &indexed.dims.collapsed {
        if let Some(factor) =
            factor_of(work, 0, dim).filter(|_| !indexed.dims.index_map.contains(&dim))
        {
            abilities[factor.index()] = Ability::Whole;
        }
    }
    for &dim in &indexed.dims.index_map {
        let Some(factor) = factor_of(work, 0, dim) else { continue };
        let is_in_updates = updates.dims.iter().any(|dim| dim.contains(&factor));
        let ability = &mut abilities[factor.index()];
        if !is_in_updates && window_size(work, &indexed.dims, dim) == Some(1) {
            *ability = Ability::Local;
        } else if is_in_updates && !takes_in_all(work, &indexed.dims, dim) {
            *ability = Ability::Whole;
        }
    }
}

/// The size of a scatter's windows along `dim` of its operand; `None` if they do not have that dim.
fn window_size(work: &OpWithRule, dims: &IndexingDims, dim: usize) -> Option<i64> {
    let is_left_out =
        |dim: &usize| dims.collapsed.contains(dim) || dims.input_batching.contains(dim);
    if is_left_out(&dim) {
        return None;
    }
    let place = (0..dim).filter(|dim| !is_left_out(dim)).count();
    work.shapes.get(work.results.len() + 1)?.get(*dims.window.get(place)?).copied()
}

/// Whether the slices of a gather take all of `dim` of its operand, and more than one element.
fn is_taken_whole(work: &OpWithRule, indexed: &Indexed, dim: usize) -> bool {
    indexed.sizes[dim] == work.shapes[0][dim] && indexed.sizes[dim] != 1
}

/// Whether the windows of a scatter cover all of `dim` of its operand.
fn takes_in_all(work: &OpWithRule, dims: &IndexingDims, dim: usize) -> bool {
    window_size(work, dims, dim) == Some(work.shapes[0][dim])
}

impl Lowering<'_, '_, '_> {
    /// Whether XLA computes a gather or scatter on shards by a slice of its one window. It merges two successive slices into one,
    /// and clamps only the sum of their starts.
    fn is_computed_by_slices(&self, indexed: &Indexed, indices: LocalValue) -> bool {
        let shape = self.emit.shape(indices.value);
        let sizes = shape.iter().enumerate().filter(|&(dim, _)| dim != indexed.dims.index_vector);
        self.how.global_to_local.is_none() && sizes.map(|(_, size)| size).product::<i64>() == 1
    }
    /// The start indices of the one slice that a gather takes, clamped to bounds.
    fn within_dims(
        &mut self,
        work: &OpWithRule,
        indexed: &Indexed,
        indices: LocalValue,
    ) -> LocalValue {
        let indices = self.with_wide_indices(indices);
        let ty = self.emit.type_of(indices.value);
        let last = |&dim: &usize| (work.shapes[0][dim] - indexed.sizes[dim]).max(0).to_string();
        let lasts: Vec<String> = indexed.dims.index_map.iter().map(last).collect();
        let list = self.emit.like(&[lasts.len() as i64], ty);
        let last = self.emit.splat(&format!("[{}]", lasts.join(", ")), list);
        let last = self.emit.reshape(last, &self.emit.shape(indices.value));
        let zero = self.emit.scalar("0", ty);
        let value = self.emit.op("stablehlo.clamp", &[zero, indices.value, last], ty, &[]);
        LocalValue { value, ..indices }
    }
    /// The index of the first element of the shard along `dim` of a tensor with the placement of operand 0.
    pub(in crate::spmd::lower) fn shard_start(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        dim: usize,
    ) -> Option<ValueId> {
        let placement = self.placements[strategy.operands[0]].clone();
        if placement.dims[dim].is_empty() {
            return None;
        }
        let size = placement.local_shape(&work.shapes[0])[dim];
        let number = self.emit.number(placement.order, &placement.dims[dim]);
        Some(self.emit.times(number, size))
    }

    /// `held`, indices, converted to the type of offsets if their own type has fewer bits, so that it can hold the offsets of
    /// shards and the sizes of dims.
    pub(in crate::spmd::lower) fn with_wide_indices(&mut self, held: LocalValue) -> LocalValue {
        let wide = self.emit.index_type();
        if self.bits(held.global) >= self.bits(wide) {
            return held;
        }
        let shape = self.emit.shape(held.value);
        let ty = self.emit.like(&shape, wide);
        let value = self.emit.op("stablehlo.convert", &[held.value], ty, &[]);
        let shape = self.shape_of(held.global).unwrap_or_default();
        LocalValue { value, global: self.emit.like(&shape, wide), ..held }
    }
    /// Computes a gather: slices that take a sharded dim in full have the size of the shard. Along a dim of which they
    /// take one element, the device that holds it contributes it, and others contribute zero.
    pub(in crate::spmd::lower) fn gather_locally(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        operands: &[LocalValue],
    ) {
        let Some(indexed) = Indexed::read(self.emit.program, work) else {
            return self.in_place(work, strategy, operands);
        };
        let op = work.op;
        let placement = self.placements[strategy.operands[0]].clone();
        let local = placement.local_shape(&work.shapes[0]);
        let mut sizes = indexed.sizes.clone();
        for (dim, digits) in placement.dims.iter().enumerate() {
            if !digits.is_empty() && is_taken_whole(work, &indexed, dim) {
                sizes[dim] = local[dim];
            }
        }
        self.emit.program.set_attr(op, "slice_sizes", &crate::spmd::emit::int_array(&sizes));
        let mut operands = operands.to_vec();
        if self.is_computed_by_slices(&indexed, operands[1]) {
            operands[1] = self.within_dims(work, &indexed, operands[1]);
        }
        let has_terms = !self.placements[strategy.results[0]].partial.is_empty();
        if !has_terms {
            return self.in_place(work, strategy, &operands);
        }
        operands[1] = self.with_wide_indices(operands[1]);
        let inside = self.localize_indices(work, strategy, &indexed, &mut operands[1]);
        let values: Vec<ValueId> = operands.iter().map(|held| held.value).collect();
        self.set_operands(op, &values);
        let result = self.emit.program.result(op, 0);
        let mut held = self.keep(result, strategy.results[0]);
        self.emit.go_after(op);
        if let Some(inside) = inside {
            let mask = self.mask_of_slices(&indexed, inside, held.value);
            let zero = crate::spmd::emit::zero(self.emit.element(held.global));
            let zero = self.emit.scalar(zero, held.global);
            held.value = self.emit.masked(mask, held.value, zero);
        }
        if self.emit.element(held.global) == "i1" {
            held.reducer = crate::spmd::lower::Reducer::Or;
        }
        let target = work.results[0].1;
        let held = self.start_as_xla(work, strategy, held, target);
        let new = self.reshard(held, target);
        self.set_held(result, new);
    }
    /// The indices, clamped as the op clamps them, relative to the start of the shard; and for each index whether
    /// it is in the shard.
    fn localize_indices(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        indexed: &Indexed,
        indices: &mut LocalValue,
    ) -> Option<ValueId> {
        let is_gather = self.emit.program.kind(work.op) == OpKind::Gather;
        let placement = self.placements[strategy.operands[0]].clone();
        let local = placement.local_shape(&work.shapes[0]);
        let shape = self.emit.shape(indices.value);
        let ty = self.emit.type_of(indices.value);
        let rank = shape.len();
        let has_vector = indexed.dims.index_vector < rank;
        let mut components = Vec::with_capacity(indexed.dims.index_map.len());
        let mut inside: Option<ValueId> = None;
        for (number, &dim) in indexed.dims.index_map.iter().enumerate() {
            let component = if has_vector {
                let mut starts = vec![0; rank];
                let mut limits = shape.clone();
                starts[indexed.dims.index_vector] = number as i64;
                limits[indexed.dims.index_vector] = number as i64 + 1;
                self.emit.slice(indices.value, &starts, &limits)
            } else {
                indices.value
            };
            let is_whole = if is_gather {
                is_taken_whole(work, indexed, dim)
            } else {
                takes_in_all(work, &indexed.dims, dim)
            };
            let start = if is_whole { None } else { self.shard_start(work, strategy, dim) };
            let Some(start) = start else {
                components.push(component);
                continue;
            };
            let own = self.emit.type_of(component);
            let mut index = component;
            if is_gather {
                let last = self.emit.scalar(&(work.shapes[0][dim] - 1).to_string(), ty);
                let zero = self.emit.scalar("0", ty);
                index = self.emit.op("stablehlo.clamp", &[zero, index, last], own, &[]);
            }
            let scalar = self.emit.like(&[], ty);
            let start = self.emit.op("stablehlo.convert", &[start], scalar, &[]);
            let start = self.emit.broadcast(start, &[], own);
            index = self.emit.elementwise("stablehlo.subtract", &[index, start]);
            if is_gather {
                let zero = self.emit.scalar("0", ty);
                let zero = self.emit.broadcast(zero, &[], own);
                let size = self.emit.scalar(&local[dim].to_string(), ty);
                let size = self.emit.broadcast(size, &[], own);
                let not_before = self.emit.compare("GE", index, zero);
                let not_behind = self.emit.compare("LT", index, size);
                let mut is_in = self.emit.elementwise("stablehlo.and", &[not_before, not_behind]);
                if let Some(other) = inside {
                    is_in = self.emit.elementwise("stablehlo.and", &[other, is_in]);
                }
                inside = Some(is_in);
            }
            components.push(index);
        }
        indices.value = if has_vector && components.len() > 1 {
            let attrs = [("dimension", format!("{} : i64", indexed.dims.index_vector))];
            self.emit.op("stablehlo.concatenate", &components, ty, &attrs)
        } else {
            components.first().copied().unwrap_or(indices.value)
        };
        inside
    }
    /// `inside`, a mask of indices, broadcast to the elements of the slices.
    fn mask_of_slices(&mut self, indexed: &Indexed, inside: ValueId, slices: ValueId) -> ValueId {
        let mut shape = self.emit.shape(inside);
        if indexed.dims.index_vector < shape.len() {
            shape.remove(indexed.dims.index_vector);
        }
        let inside = self.emit.reshape(inside, &shape);
        let own = self.emit.shape(slices);
        let batch: Vec<i64> = (0..own.len())
            .filter(|dim| !indexed.dims.window.contains(dim))
            .map(|dim| dim as i64)
            .collect();
        let ty = self.emit.program.tensor_type_of(&own, "i1");
        self.emit.broadcast(inside, &batch, ty)
    }

    /// Computes a scatter: indices are relative to the start of the shard; those outside of it are out of bounds. Where
    /// updates are sharded and the operand is not, each device scatters its updates: one device into the operand, others
    /// into the reducer's identity.
    pub(in crate::spmd::lower) fn scatter_locally(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        mut operands: Vec<LocalValue>,
    ) {
        let Some(indexed) = Indexed::read(self.emit.program, work) else {
            return self.in_place(work, strategy, &operands);
        };
        let is_sharded = |this: &Self, dim: &usize| {
            total_size(&this.placements[strategy.operands[0]].dims[*dim]) > 1
        };
        if indexed.dims.index_map.iter().any(|dim| is_sharded(self, dim)) {
            let num_inputs = work.results.len();
            let mut indices = self.with_wide_indices(operands[num_inputs]);
            // Indices beyond the global dim may fall into the padding of the last shard.
            self.localize_indices(work, strategy, &indexed, &mut indices);
            operands[num_inputs] = indices;
            if self.is_computed_by_slices(&indexed, indices) {
                for input in &mut operands[..num_inputs] {
                    let barrier = "stablehlo.optimization_barrier";
                    input.value = self.emit.elementwise(barrier, &[input.value]);
                }
            }
        }
        let Some(reducers) = self.reducers_of_terms(work, strategy) else {
            return self.in_place(work, strategy, &operands);
        };
        for (index, known) in reducers.iter().enumerate() {
            operands[index].value = self.in_one_term(strategy, operands[index].value, known);
            let updates = reducers.len() + 1 + index;
            let dims = Self::dims_of_terms(work, strategy, updates);
            if self.is_padded(operands[updates], &dims) {
                // Padding of updates is the identity, so that its indices do not matter.
                let neutral = self.emit.scalar(&known.1, operands[updates].global);
                operands[updates] = self.filled(operands[updates], &dims, neutral);
                for name in ["indices_are_sorted", "unique_indices"] {
                    self.emit.program.set_attr(work.op, name, "false");
                }
            }
        }
        self.in_place_with_terms(work, strategy, &operands, &reducers, &[]);
    }
}
