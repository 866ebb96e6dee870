//! Definitions of gathers, with slice sizes as an attribute or as an operand.

use crate::stablehlo::attribute_kinds::Kind;
use crate::stablehlo::compatible::compatible_sizes;
use crate::stablehlo::constraint::{self as takes, Alternative, Form};
use crate::stablehlo::definition::{
    one, optional, required, stablehlo, Definition, Family, NOTHING,
};
use crate::stablehlo::dim_checks::{all_in_bounds, distinct, in_bounds, is_unique, list};
use crate::stablehlo::dims::{self, IndexingDims};
use crate::stablehlo::element::Elements as E;
use crate::stablehlo::mistake::{ensure, Mistake};
use crate::stablehlo::result_types::ResultTypes;
use crate::stablehlo::traits::{Trait, RESULT};
use crate::stablehlo::types::{sizes, Size, Sizes, Tensor, DYNAMIC};
use crate::stablehlo::view::OpView;

pub const FAMILIES: &[Family] =
    &[stablehlo(&["gather"], GATHER), stablehlo(&["dynamic_gather"], DYNAMIC_GATHER)];

const GATHER: Definition = Definition {
    operands: &[one(takes::TENSOR), one(takes::INTEGER)],
    results: &[one(takes::TENSOR)],
    attributes: &[
        required("dimension_numbers", DIMENSION_NUMBERS),
        required("slice_sizes", Kind::I64Array),
        optional("indices_are_sorted", Kind::Bool),
    ],
    traits: &[Trait::SameElementsOf(&[0, RESULT], "operand, result")],
    infer: Some(gather),
    ..NOTHING
};
const DIMENSION_NUMBERS: Kind =
    Kind::Of("stablehlo", "gather", "Attribute that models the dimension information for gather");
const DYNAMIC_GATHER: Definition = Definition {
    operands: &[
        one(takes::TENSOR),
        one(takes::INTEGER),
        one(&[Alternative::Tensor(Form::StaticIntegerVector, &[E::INTEGER])]),
    ],
    attributes: &[
        required("dimension_numbers", DIMENSION_NUMBERS),
        optional("indices_are_sorted", Kind::Bool),
    ],
    traits: &[],
    infer: Some(dynamic_gather),
    looks_around: true,
    ..GATHER
};

fn sorted(dims: &[i64], name: &str) -> Result<(), Mistake> {
    ensure(dims.is_sorted(), || format!("expects {name} to be sorted, got: [{}]", list(dims)))
}

fn unique(dims: &[i64], name: &str) -> Result<(), Mistake> {
    ensure(is_unique(dims), || format!("expects {name} to not repeat, got: [{}]", list(dims)))
}

/// Checks the dimension numbers of a gather with `num_slice_sizes` slice sizes.
fn check(
    operand: &Tensor,
    indices: &Tensor,
    dims: &IndexingDims<i64>,
    num_slice_sizes: usize,
) -> Result<(), Mistake> {
    let rank = operand.rank();
    let lens = [dims.window.len(), dims.collapsed.len(), dims.input_batching.len()];
    ensure(lens.iter().sum::<usize>() == rank, || {
        let [offset, collapsed, batching] = lens;
        format!(
            "offset_dims size ({offset}) plus collapse_slice_dims size ({collapsed}) plus \
             operand_batching_dims size ({batching}) is not equal to operand rank ({rank})"
        )
    })?;
    let vector = dims.index_vector;
    in_bounds(vector, indices.rank(), "index_vector_dim", "rank-of('start_indices')", true)?;
    let (len, size) = (dims.index_map.len(), vector_size(indices, vector));
    ensure(size.is_none_or(|size| size == len as i64), || {
        let size = sizes(&[size], DYNAMIC);
        format!(
            "start_index_map size ({len}) is not equal to size of index dimension ({vector}) of \
             start_indices ({size})"
        )
    })?;
    sorted(&dims.window, "offset_dims")?;
    unique(&dims.window, "offset_dims")?;
    let (collapsed, batching) = ("collapsed_slice_dims", "operand_batching_dims");
    distinct(&dims.collapsed, &dims.input_batching, collapsed, batching)?;
    sorted(&dims.collapsed, collapsed)?;
    all_in_bounds(&dims.collapsed, rank, collapsed, "rank-of('operand')")?;
    sorted(&dims.input_batching, batching)?;
    all_in_bounds(&dims.input_batching, rank, batching, "rank-of('operand')")?;
    check_batching(operand, indices, dims)?;
    distinct(&dims.index_map, &dims.input_batching, "start_index_map", batching)?;
    all_in_bounds(&dims.index_map, rank, "start_index_map", "rank-of('operand')")?;
    ensure(num_slice_sizes == rank, || {
        format!("slice_sizes size ({num_slice_sizes}) not equal to operand rank ({rank})")
    })
}

/// The size of the index vectors in `indices`; 1 if `vector`, their dim, is the rank.
pub fn vector_size(indices: &Tensor, vector: i64) -> Size {
    let dim = usize::try_from(vector).unwrap_or(usize::MAX);
    indices.shape.get(dim).copied().unwrap_or(Some(1))
}

fn check_batching(
    operand: &Tensor,
    indices: &Tensor,
    dims: &IndexingDims<i64>,
) -> Result<(), Mistake> {
    let name = "start_indices_batching_dims";
    unique(&dims.indices_batching, name)?;
    all_in_bounds(&dims.indices_batching, indices.rank(), name, "rank-of('start_indices')")?;
    let vector = dims.index_vector;
    ensure(!dims.indices_batching.contains(&vector), || {
        format!("expects {name} not to include index_vector_dim {vector}")
    })?;
    ensure(dims.input_batching.len() == dims.indices_batching.len(), || {
        format!("operand_batching_dims and {name} should have the same size")
    })?;
    for (at, (&a, &b)) in dims.input_batching.iter().zip(&dims.indices_batching).enumerate() {
        let (a, b) = (operand.shape[a as usize], indices.shape[b as usize]);
        ensure(compatible_sizes(a, b), || {
            let (a, b) = (sizes(&[a], DYNAMIC), sizes(&[b], DYNAMIC));
            format!(
                "operand_batching_dims[{at}] and {name}[{at}] must have compatible sizes, but got \
                 {a} and {b}"
            )
        })?;
    }
    Ok(())
}

/// Checks that slices are no larger than the operand, and have size 1 in collapsed and batching dims.
fn check_slices(operand: &Tensor, dims: &IndexingDims<i64>, slice: &[i64]) -> Result<(), Mistake> {
    let lists = [
        (&dims.collapsed, "collapsed_slice_dims"),
        (&dims.input_batching, "operand_batching_dims"),
    ];
    for (list, name) in lists {
        for &dim in list {
            let size = slice.get(dim as usize).copied().unwrap_or(0);
            ensure(size <= 1, || {
                format!(
                    "Expects that for each dim in {name}, slice_sizes[dim] should be <= 1, but got \
                     {size}"
                )
            })?;
        }
    }
    for (dim, (&size, &whole)) in slice.iter().zip(&operand.shape).enumerate() {
        ensure(size >= 0 && whole.is_none_or(|whole| size <= whole), || {
            let whole = sizes(&[whole], DYNAMIC);
            format!(
                "slice size ({size}) is out of bounds for operand dimension ({whole}) at index {dim}"
            )
        })?;
    }
    Ok(())
}

/// The type of the result: offset dims have the sizes of the slice, the others those of the indices.
fn result(
    operand: &Tensor,
    indices: &Tensor,
    dims: &IndexingDims<i64>,
    slice: &[Size],
) -> Result<ResultTypes, Mistake> {
    let vector = usize::try_from(dims.index_vector).map_err(|_| Mistake::silent())?;
    let num_batch_dims = if vector < indices.rank() { indices.rank() - 1 } else { indices.rank() };
    let rank = dims.window.len() + num_batch_dims;
    all_in_bounds(&dims.window, rank, "offset_dims", "implied-result-rank")?;
    let is_left_out =
        |dim: i64| dims.collapsed.contains(&dim) || dims.input_batching.contains(&dim);
    let kept = slice.iter().enumerate().filter(|(dim, _)| !is_left_out(*dim as i64));
    let mut offsets = kept.map(|(_, &size)| (size, None));
    let batch = (0..indices.rank()).filter(|&dim| dim != vector);
    let mut batch = batch.map(|dim| (indices.shape[dim], indices.bound(dim)));
    let dim = |dim: usize| {
        let is_offset = dims.window.contains(&(dim as i64));
        if is_offset { offsets.next() } else { batch.next() }.ok_or_else(Mistake::silent)
    };
    let (shape, bounds): (Sizes, Sizes) =
        (0..rank).map(dim).collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    Ok(indices.with_element(operand.element.clone()).with_shape(shape, bounds).into())
}

fn dimension_numbers(op: &OpView<'_>) -> Result<IndexingDims<i64>, Mistake> {
    let numbers = op.attributes.value(dims::GATHER.attribute).ok_or_else(Mistake::silent)?;
    IndexingDims::read(numbers, &dims::GATHER).ok_or_else(Mistake::silent)
}

fn gather(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let (operand, indices) = (op.operand(0)?, op.operand(1)?);
    let dims = dimension_numbers(op)?;
    let slice = op.attributes.ints("slice_sizes");
    check(operand, indices, &dims, slice.len())?;
    check_slices(operand, &dims, slice)?;
    let slice: Sizes = slice.iter().copied().map(Some).collect();
    result(operand, indices, &dims, &slice)
}

fn dynamic_gather(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let (operand, indices) = (op.operand(0)?, op.operand(1)?);
    let dims = dimension_numbers(op)?;
    let count = op.operand(2)?.num_elements().and_then(|count| usize::try_from(count).ok());
    check(operand, indices, &dims, count.unwrap_or(0))?;
    let slice = (op.constants)(2);
    if let Some(slice) = &slice {
        check_slices(operand, &dims, slice)?;
    }
    let slice = match slice {
        Some(slice) => slice.into_iter().map(Some).collect(),
        None => Sizes::repeat(None, operand.rank()),
    };
    result(operand, indices, &dims, &slice)
}
