//! Definitions of ops that slice, pad, concatenate or otherwise move elements.

use crate::stablehlo::attribute_kinds::{Kind, INDEX};
use crate::stablehlo::compatible::{compatible_sizes, most_specific_size, same_elements_or_floats};
use crate::stablehlo::constraint::{self as takes, Alternative, Constraint, Form};
use crate::stablehlo::definition::{many, one, required, stablehlo, Definition, Family, NOTHING};
use crate::stablehlo::dim_checks::is_unique;
use crate::stablehlo::element::Elements as E;
use crate::stablehlo::mistake::{bare, ensure, Mistake};
use crate::stablehlo::result_types::ResultTypes;
use crate::stablehlo::traits::{Trait, RESULT};
use crate::stablehlo::types::{sizes, Size, Sizes, Tensor, DYNAMIC};
use crate::stablehlo::view::OpView;

pub const FAMILIES: &[Family] = &[
    stablehlo(&["slice"], SLICE),
    stablehlo(&["dynamic_slice"], DYNAMIC_SLICE),
    stablehlo(&["dynamic_update_slice"], DYNAMIC_UPDATE_SLICE),
    stablehlo(&["pad"], PAD),
    stablehlo(&["concatenate"], CONCATENATE),
    stablehlo(&["reverse"], REVERSE),
];

const SLICE: Definition = Definition {
    operands: &[one(takes::TENSOR)],
    results: &[one(takes::TENSOR)],
    attributes: &[
        required("start_indices", Kind::I64Array),
        required("limit_indices", Kind::I64Array),
        required("strides", Kind::I64Array),
    ],
    traits: &[
        Trait::SameSizesOf(&["start_indices", "limit_indices", "strides"]),
        Trait::SameElements,
    ],
    infer: Some(slice),
    ..NOTHING
};
const START: Constraint = &[Alternative::Tensor(Form::Scalar, &[E::INTEGER])];
const DYNAMIC_SLICE: Definition = Definition {
    operands: &[one(takes::TENSOR), many(START)],
    results: &[one(takes::TENSOR)],
    attributes: &[required("slice_sizes", Kind::I64Array)],
    traits: &[Trait::SameElementsOf(&[0, RESULT], "operand, result")],
    infer: Some(dynamic_slice),
    ..NOTHING
};
const DYNAMIC_UPDATE_SLICE: Definition = Definition {
    operands: &[one(takes::TENSOR), one(takes::TENSOR), many(START)],
    results: &[one(takes::TENSOR)],
    traits: &[Trait::SameElementsOf(&[0, 1, RESULT], "operand, update, result")],
    infer: Some(dynamic_update_slice),
    ..NOTHING
};
const PAD: Definition = Definition {
    operands: &[one(takes::TENSOR), one(&[Alternative::Tensor(Form::Scalar, takes::ALL)])],
    results: &[one(takes::TENSOR)],
    attributes: &[
        required("edge_padding_low", Kind::I64Array),
        required("edge_padding_high", Kind::I64Array),
        required("interior_padding", Kind::I64Array),
    ],
    traits: &[
        Trait::SameSizesOf(&["edge_padding_low", "edge_padding_high", "interior_padding"]),
        Trait::SameElements,
    ],
    infer: Some(pad),
    ..NOTHING
};
const CONCATENATE: Definition = Definition {
    operands: &[many(takes::TENSOR)],
    results: &[one(takes::TENSOR)],
    attributes: &[required("dimension", INDEX)],
    traits: &[Trait::SameElements],
    infer: Some(concatenate),
    ..NOTHING
};
const REVERSE: Definition = Definition {
    operands: &[one(takes::TENSOR)],
    results: &[one(takes::TENSOR)],
    attributes: &[required("dimensions", Kind::I64Array)],
    traits: &[Trait::SameElements],
    verify: Some(reverse),
    infer: Some(like_operand),
    ..NOTHING
};

fn like_operand(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    Ok(op.operand(0)?.clone().into())
}

fn slice(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let operand = op.operand(0)?;
    let starts = op.attributes.ints("start_indices");
    let limits = op.attributes.ints("limit_indices");
    let strides = op.attributes.ints("strides");
    let (len, rank) = (starts.len(), operand.rank());
    ensure(len == rank, || {
        format!(
            "the number of elements in start_indices ({len}) does not match the rank of the \
             operand ({rank})"
        )
    })?;
    let mut shape = Sizes::new();
    for (dim, ((&start, &limit), &stride)) in starts.iter().zip(limits).zip(strides).enumerate() {
        ensure(start >= 0, || format!("negative start index {start} in dimension {dim}"))?;
        let (size, what) = match operand.shape[dim] {
            Some(size) => (Some(size), "size"),
            None => (operand.bound(dim), "bound"),
        };
        if let Some(size) = size.filter(|&size| limit > size) {
            return Err(bare(format!(
                "limit index {limit} is larger than dimension {what} {size} in dimension {dim}"
            )));
        }
        ensure(start <= limit, || {
            format!("start index {start} is larger than limit index {limit} in dimension {dim}")
        })?;
        ensure(stride > 0, || {
            format!("stride must be positive but got {stride} in dimension {dim}")
        })?;
        shape.push(Some((limit - start) / stride + i64::from((limit - start) % stride != 0)));
    }
    Ok(operand.with_shape(shape, Sizes::new()).into())
}

/// Checks that the start indices of a dynamic slice have one type.
fn starts_match(starts: &[&Tensor]) -> Result<(), Mistake> {
    let Some((first, others)) = starts.split_first() else { return Ok(()) };
    let same = |other: &&Tensor| same_elements_or_floats(&first.element, &other.element);
    ensure(others.iter().all(same), || "start indices must have same element type".to_owned())
}

fn dynamic_slice(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let operand = op.operand(0)?;
    let slice_sizes = op.attributes.ints("slice_sizes");
    let (len, num_starts, rank) = (slice_sizes.len(), op.operands.len() - 1, operand.rank());
    ensure(len == num_starts, || {
        format!(
            "has mismatched number of slice sizes ({len}) and number of start indices \
             ({num_starts})"
        )
    })?;
    ensure(num_starts == rank, || {
        format!(
            "has mismatched number of start indices ({num_starts}) and the rank of operand ({rank})"
        )
    })?;
    starts_match(&op.operands(1..op.operands.len())?)?;
    for (dim, (&size, dim_size)) in slice_sizes.iter().zip(&operand.shape).enumerate() {
        ensure(size >= 0, || format!("has negative size index to dynamic slice: {size}"))?;
        if let Some(dim_size) = dim_size.filter(|&dim_size| size > dim_size) {
            return Err(bare(format!(
                "has slice size {size} greater than dimension size {dim_size} in dimension {dim} \
                 of operand"
            )));
        }
    }
    let shape = slice_sizes.iter().copied().map(Some).collect();
    Ok(Tensor::new(shape, operand.element.clone()).into())
}

fn dynamic_update_slice(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let (operand, update) = (op.operand(0)?, op.operand(1)?);
    let (rank, update_rank, num_starts) = (operand.rank(), update.rank(), op.operands.len() - 2);
    ensure(rank == update_rank, || {
        format!("update rank does not match operand rank: {update_rank} vs {rank}.")
    })?;
    ensure(num_starts == rank, || {
        format!("expects number of start_indices to match operand rank: {num_starts} vs {rank}.")
    })?;
    starts_match(&op.operands(2..op.operands.len())?)?;
    for (dim, (size, part)) in operand.shape.iter().zip(&update.shape).enumerate() {
        if let (Some(size), Some(part)) = (size, part) {
            ensure(part <= size, || {
                format!(
                    "expects size at dimension {dim} of update to be in range [0, {size}]. Got: \
                     {part}."
                )
            })?;
        }
    }
    Ok(operand.clone().into())
}

/// The size of a dim of `size` with this padding: low, high, between elements.
fn padded(size: i64, [low, high, interior]: [i64; 3]) -> i64 {
    let between = (size - 1).max(0).wrapping_mul(interior);
    size.wrapping_add(low).wrapping_add(high).wrapping_add(between)
}

fn pad(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let operand = op.operand(0)?;
    let low = op.attributes.ints("edge_padding_low");
    let high = op.attributes.ints("edge_padding_high");
    let interior = op.attributes.ints("interior_padding");
    let (len, rank) = (low.len(), operand.rank());
    ensure(len == rank, || {
        format!("edge_padding_low length ({len}) must match operand rank ({rank})")
    })?;
    let padded = |sizes: &[Size], what: &str| -> Result<Sizes, Mistake> {
        let mut shape = Sizes::repeat(None, sizes.len());
        let padding = low.iter().zip(high).zip(interior);
        let places = shape.iter_mut().zip(sizes).zip(padding).enumerate();
        for (dim, ((place, size), ((&low, &high), &interior))) in places {
            ensure(interior >= 0, || format!("Interior padding cannot be negative: {interior}"))?;
            let Some(size) = *size else { continue };
            let size = padded(size, [low, high, interior]);
            ensure(size >= 0, || format!("Padding result in negative {what} for dimension {dim}"))?;
            *place = Some(size);
        }
        Ok(shape)
    };
    let shape = padded(&operand.shape, "size")?;
    let bounds = match operand.bounds() {
        [] => Sizes::new(),
        bounds => padded(bounds, "bound")?,
    };
    Ok(operand.with_shape(shape, bounds).into())
}

fn concatenate(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let inputs = op.all_operands()?;
    let Some(&first) = inputs.first() else { return Err(Mistake::silent()) };
    let rank = first.rank();
    ensure(rank != 0, || "rank-0 values cannot be concatenated".to_owned())?;
    let dim = op.attributes.int("dimension").unwrap_or(0);
    ensure(dim < rank as i64, || {
        format!("dimension {dim} is out-of-bounds for input rank {rank}")
    })?;
    let dim = usize::try_from(dim).map_err(|_| Mistake::silent())?;
    for (index, input) in
        inputs.iter().enumerate().filter(|(_, input)| !std::ptr::eq(**input, first))
    {
        ensure(input.rank() == rank, || format!("operands (0) and ({index}) do not match rank"))?;
        let pairs = first.shape.iter().zip(&input.shape).enumerate();
        for (at, (&a, &b)) in pairs.filter(|(at, _)| *at != dim) {
            ensure(compatible_sizes(a, b), || {
                let (a, b) = (sizes(&first.shape, DYNAMIC), sizes(&input.shape, DYNAMIC));
                format!(
                    "shapes of operand (0) and ({index}) are not compatible at non-concat index \
                     {at}: ({a}) != ({b})"
                )
            })?;
        }
    }
    let mut dims: Vec<(Size, Size)> = vec![(None, None); rank];
    dims[dim].0 = Some(0);
    let mut last: Option<&Tensor> = None;
    for &input in &inputs {
        let bounded = |at: usize| (input.shape[at], input.bound(at));
        dims[dim] = joined(dims[dim], bounded(dim));
        // Consecutive inputs of the same type add no information on the other dims.
        if last.replace(input).is_some_and(|last| std::ptr::eq(last, input)) {
            continue;
        }
        for at in (0..rank).filter(|&at| at != dim) {
            dims[at] = most_specific_size(at, dims[at], bounded(at))?;
        }
    }
    let (shape, bounds) = dims.into_iter().unzip();
    Ok(first.with_shape(shape, bounds).into())
}

/// Size and bound of two concatenated dims.
fn joined(left: (Size, Size), right: (Size, Size)) -> (Size, Size) {
    if let (Some(a), Some(b)) = (left.0, right.0) {
        return (Some(a.wrapping_add(b)), None);
    }
    let bounds = left.0.or(left.1).zip(right.0.or(right.1));
    (None, bounds.map(|(a, b)| a.wrapping_add(b)))
}

fn reverse(op: &OpView<'_>) -> Result<(), Mistake> {
    let rank = op.operand(0)?.rank();
    let dims = op.attributes.ints("dimensions");
    ensure(is_unique(dims), || {
        let dims: Sizes = dims.iter().copied().map(Some).collect();
        format!("dimensions should be unique. Got: {}", sizes(&dims, "?"))
    })?;
    for &dim in dims {
        ensure(dim >= 0, || {
            format!("all dimensions should be non-negative. Got dimension: {dim}.")
        })?;
        ensure(dim < rank as i64, || {
            format!("all dimensions should be between [0, {rank}). Got dimension: {dim}.")
        })?;
    }
    Ok(())
}
