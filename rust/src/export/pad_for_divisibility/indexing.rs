//! Pads gathers and scatters.

use super::conversion::Conversion;
use super::shapes::{ints, padded_type};
use crate::index::{OpId, TypeId, ValueId};
use crate::ir::{int_array, Program};
use crate::mlir::op_attribute;
use crate::shardy::Change;
use crate::stablehlo::dims::{IndexingDims, IndexingNames, GATHER, SCATTER};
use std::cmp::Ordering;

impl Conversion {
    /// Pads the gather `op`, with larger slices along dims of which slices take every element.
    /// Returns false and does nothing if indices would reach the padding, or if no slice has the
    /// padded size of the result.
    pub(super) fn pad_gather(&mut self, program: &mut Program, op: OpId) -> bool {
        let operands = self.adapted_operands(program, op);
        let Some((sizes, ty)) = self.padded_slices(program, op, &operands) else { return false };
        if ints(program, op, "slice_sizes").as_ref() != Some(&sizes) {
            program.set_attr(op, "slice_sizes", &int_array(&sizes));
        }
        self.set_padded(program, op, &operands, &[ty]);
        true
    }
    /// Pads the scatter `op`. Returns `None` and does nothing if indices would reach the padding,
    /// or if its updates would not fit.
    pub(super) fn pad_scatter(&mut self, program: &mut Program, op: OpId) -> Option<()> {
        let dims = indexing_dims(program, op, &SCATTER)?;
        let operands = self.adapted_operands(program, op);
        let num_inputs = operands.len() / 2;
        let rank = program.value_type(operands[0]).rank()?;
        let mut shapes = Vec::with_capacity(operands.len());
        for (index, &value) in operands.iter().enumerate() {
            let old = self.original_type(program, program.operand(op, index));
            let old = program.types()[old].static_shape()?;
            let new = program.value_type(value).static_shape()?;
            let mixed = match index.cmp(&num_inputs) {
                Ordering::Less => mixed_dims_of_input(&dims, rank),
                Ordering::Equal => mixed_dims_of_indices(&dims, new.len()),
                Ordering::Greater => mixed_dims_of_updates(&dims, rank, new.len()),
            };
            if mixed.into_iter().any(|dim| old[dim] != new[dim]) {
                return None;
            }
            shapes.push(new);
        }
        let fits = |update: &Vec<i64>| {
            let batch = (0..update.len()).filter(|dim| !dims.window.contains(dim));
            let indices = without_vector(&shapes[num_inputs], dims.index_vector);
            batch.map(|dim| update[dim]).eq(indices)
        };
        let inputs = &shapes[..num_inputs];
        if !shapes[num_inputs + 1..].iter().all(fits) || inputs.iter().any(|own| *own != inputs[0])
        {
            return None;
        }
        let types: Vec<TypeId> =
            operands[..num_inputs].iter().map(|&value| program.type_of(value)).collect();
        for (&ty, result) in types.iter().zip(program.op_results(op)) {
            if padded_type(program, ty, program.sharding(result)) != ty {
                return None;
            }
        }
        self.set_padded(program, op, &operands, &types);
        Some(())
    }
    /// The slice sizes of the gather `op` with these operands, and the type of its result.
    fn padded_slices(
        &self,
        program: &mut Program,
        op: OpId,
        operands: &[ValueId],
    ) -> Option<(Vec<i64>, TypeId)> {
        let dims = indexing_dims(program, op, &GATHER)?;
        let mut sizes = ints(program, op, "slice_sizes")?;
        let &[input, indices] = operands else { return None };
        let old = self.original_type(program, program.operand(op, 0));
        let old = program.types()[old].static_shape()?;
        let new = program.value_type(input).static_shape()?;
        let indices = program.value_type(indices).static_shape()?;
        let result = program.result(op, 0);
        let sharding = program.sharding_of(result);
        let ty = padded_type(program, program.type_of(result), sharding);
        let shape = program.types()[ty].static_shape()?;
        let kept = kept_dims(&dims, old.len());
        for dim in 0..old.len() {
            let is_whole = kept.contains(&dim) && sizes[dim] == old[dim];
            let is_free = kept.contains(&dim) && !dims.index_map.contains(&dim);
            let is_exact = is_whole || is_free || dims.input_batching.contains(&dim);
            if old[dim] != new[dim] && !is_exact {
                return None;
            }
        }
        for (&dim, &at) in kept.iter().zip(&dims.window) {
            let size = *shape.get(at)?;
            if sizes[dim] == old[dim] && program.shardy().has(Change::PaddedLoops) {
                sizes[dim] = size;
            }
            if sizes[dim] != size || size > new[dim] {
                return None;
            }
        }
        let batch = (0..shape.len()).filter(|at| !dims.window.contains(at)).map(|at| shape[at]);
        batch.eq(without_vector(&indices, dims.index_vector)).then_some((sizes, ty))
    }
}

/// The dims of the input of a gather or a scatter that are dims of a slice.
fn kept_dims(dims: &IndexingDims, rank: usize) -> Vec<usize> {
    let is_kept = |dim: &usize| !dims.collapsed.contains(dim) && !dims.input_batching.contains(dim);
    (0..rank).filter(is_kept).collect()
}

/// The dimension numbers of `op`, a gather or a scatter.
fn indexing_dims(program: &Program, op: OpId, names: &IndexingNames) -> Option<IndexingDims> {
    IndexingDims::read(&op_attribute(program, op, names.attribute)?, names)
}

/// The sizes of the dims of the indices except the dim of the index vector.
fn without_vector(indices: &[i64], index_vector: usize) -> impl Iterator<Item = i64> + '_ {
    indices.iter().enumerate().filter(move |&(dim, _)| dim != index_vector).map(|(_, &size)| size)
}

/// The dims of the input of a scatter along which its results depend on elements at other indices.
/// Windows of one element do not matter: if one is in the padding now, it was out of bounds before,
/// and neither changes a true element.
fn mixed_dims_of_input(dims: &IndexingDims, rank: usize) -> Vec<usize> {
    kept_dims(dims, rank).into_iter().filter(|dim| dims.index_map.contains(dim)).collect()
}

/// The dims of the indices of a scatter along which every index may affect each element of the
/// results.
fn mixed_dims_of_indices(dims: &IndexingDims, rank: usize) -> Vec<usize> {
    (0..rank).filter(|dim| !dims.indices_batching.contains(dim)).collect()
}

/// The dims of the updates of a scatter, into an input of rank `input_rank`, along which every
/// update may affect each element of the results.
fn mixed_dims_of_updates(dims: &IndexingDims, input_rank: usize, rank: usize) -> Vec<usize> {
    let kept = kept_dims(dims, input_rank);
    let mut part = 0..;
    let is_mixed = |dim: &usize| {
        if let Some(at) = dims.window.iter().position(|own| own == dim) {
            return kept.get(at).is_none_or(|input| dims.index_map.contains(input));
        }
        // The dims of the indices in order, without the dim of the index vector.
        let own = part.next().map_or(0, |at: usize| at + usize::from(at >= dims.index_vector));
        !dims.indices_batching.contains(&own)
    };
    (0..rank).filter(is_mixed).collect()
}
