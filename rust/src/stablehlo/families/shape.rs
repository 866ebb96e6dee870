//! Definitions of ops that create tensors (`constant`, `iota`), and of ops that rearrange the
//! elements of one tensor.

use crate::stablehlo::attribute_kinds::{Kind, INDEX};
use crate::stablehlo::attributes::Attribute;
use crate::stablehlo::compatible::compatible_sizes;
use crate::stablehlo::constraint::{self as takes, Alternative, Constraint, Form};
use crate::stablehlo::definition::{one, required, stablehlo, Definition, Family, NOTHING};
use crate::stablehlo::dim_checks::{is_unique, list};
use crate::stablehlo::element::{Element, Elements as E};
use crate::stablehlo::mistake::{bare, ensure, Mistake};
use crate::stablehlo::result_types::ResultTypes;
use crate::stablehlo::traits::Trait;
use crate::stablehlo::types::{sizes, Sizes, Tensor};
use crate::stablehlo::view::OpView;

pub const FAMILIES: &[Family] = &[
    stablehlo(&["iota"], IOTA),
    stablehlo(&["constant"], CONSTANT),
    stablehlo(&["reshape"], RESHAPE),
    stablehlo(&["transpose"], TRANSPOSE),
    stablehlo(&["broadcast"], BROADCAST),
    stablehlo(&["broadcast_in_dim"], BROADCAST_IN_DIM),
    stablehlo(&["bitcast_convert"], BITCAST_CONVERT),
    stablehlo(&["get_dimension_size"], GET_DIMENSION_SIZE),
    stablehlo(&["set_dimension_size"], SET_DIMENSION_SIZE),
    stablehlo(&["replica_id", "partition_id"], DEVICE_ID),
];

const STATIC: Constraint = &[Alternative::Tensor(Form::Static, takes::ALL_PER_AXIS)];
const STATIC_OR_BOUNDED: Constraint =
    &[Alternative::Tensor(Form::StaticOrBounded, takes::ALL_PER_AXIS)];

const IOTA: Definition = Definition {
    results: &[one(&[Alternative::Tensor(
        Form::Static,
        &[E::INTEGER, E::FLOAT, E::COMPLEX, E::QUANTIZED],
    )])],
    attributes: &[required("iota_dimension", INDEX)],
    verify: Some(iota),
    ..NOTHING
};
const CONSTANT: Definition = Definition {
    results: &[one(STATIC)],
    attributes: &[required("value", Kind::Elements)],
    infer: Some(constant),
    is_plain: Some(0),
    ..NOTHING
};
const RESHAPE: Definition = Definition {
    operands: &[one(takes::PER_AXIS_TENSOR)],
    results: &[one(STATIC_OR_BOUNDED)],
    traits: &[Trait::CompatibleElements],
    verify: Some(reshape),
    ..NOTHING
};
const TRANSPOSE: Definition = Definition {
    operands: &[one(takes::PER_AXIS_TENSOR)],
    results: &[one(takes::PER_AXIS_TENSOR)],
    attributes: &[required("permutation", Kind::I64Array)],
    traits: &[Trait::CompatibleElements],
    infer: Some(transpose),
    ..NOTHING
};
const BROADCAST: Definition = Definition {
    operands: &[one(takes::TENSOR)],
    results: &[one(takes::PER_AXIS_TENSOR)],
    attributes: &[required("broadcast_sizes", Kind::I64Array)],
    traits: &[Trait::SameElements],
    infer: Some(broadcast),
    ..NOTHING
};
const BROADCAST_IN_DIM: Definition = Definition {
    operands: &[one(takes::PER_AXIS_TENSOR)],
    results: &[one(STATIC_OR_BOUNDED)],
    attributes: &[required("broadcast_dimensions", Kind::I64Array)],
    traits: &[Trait::CompatibleElements],
    verify: Some(broadcast_in_dim),
    ..NOTHING
};
const BITCAST_CONVERT: Definition = Definition {
    operands: &[one(takes::PER_AXIS_TENSOR)],
    results: &[one(takes::PER_AXIS_TENSOR)],
    verify: Some(bitcast_convert),
    ..NOTHING
};
const GET_DIMENSION_SIZE: Definition = Definition {
    operands: &[one(takes::PER_AXIS_TENSOR)],
    results: &[one(takes::I32)],
    attributes: &[required("dimension", INDEX)],
    infer: Some(get_dimension_size),
    ..NOTHING
};
const SET_DIMENSION_SIZE: Definition = Definition {
    operands: &[one(takes::TENSOR), one(takes::I32)],
    results: &[one(takes::TENSOR)],
    attributes: &[required("dimension", INDEX)],
    infer: Some(set_dimension_size),
    looks_around: true,
    ..NOTHING
};
const DEVICE_ID: Definition =
    Definition { results: &[one(takes::UI32)], infer: Some(device_id), ..NOTHING };

fn iota(op: &OpView<'_>) -> Result<(), Mistake> {
    let rank = op.result(0)?.rank() as i64;
    ensure(rank != 0, || "does not support scalars.".to_owned())?;
    let dim = op.attributes.int("iota_dimension").unwrap_or(0);
    ensure(dim < rank, || "iota dimension cannot go beyond the output rank.".to_owned())
}

fn constant(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    // In custom syntax a constant has the type of its elements.
    let ty = op.attributes.get("value").and_then(Attribute::dense_type);
    let Some((sizes, element)) = ty else { return Ok(op.result(0)?.clone().into()) };
    Ok(Tensor::new(sizes.iter().copied().map(Some).collect(), element.clone()).into())
}

fn reshape(op: &OpView<'_>) -> Result<(), Mistake> {
    let (operand, result) = (op.operand(0)?, op.result(0)?);
    same_num_elements(operand, result)
}

/// Checks that operand and result have the same number of elements, if their shapes are static.
pub fn same_num_elements(operand: &Tensor, result: &Tensor) -> Result<(), Mistake> {
    let (Some(has), Some(got)) = (operand.num_elements(), result.num_elements()) else {
        return Ok(());
    };
    ensure(has == got, || {
        format!(
            "number of output elements ({got}) doesn't match expected number of elements ({has})"
        )
    })
}

fn transpose(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let operand = op.operand(0)?;
    let permutation = op.attributes.ints("permutation");
    let (rank, len) = (operand.rank(), permutation.len());
    ensure(rank == len, || {
        format!("TransposeOp operand rank {rank} does not match permutation size {len}")
    })?;
    let mut sorted = permutation.to_vec();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..rank as i64) {
        let all: Vec<i64> = (0..rank as i64).collect();
        let (all, got) = (list(&all), list(permutation));
        return Err(bare(format!(
            "attribute permutation must be a permutation of [{all}] but got {got}"
        )));
    }
    let from = |dim: &i64| *dim as usize;
    let shape = permutation.iter().map(|dim| operand.shape[from(dim)]).collect();
    let bounds = permutation.iter().map(|dim| operand.bound(from(dim))).collect();
    Ok(operand.with_shape(shape, bounds).into())
}

fn broadcast(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let operand = op.operand(0)?;
    let mut shape = Sizes::new();
    for &size in op.attributes.ints("broadcast_sizes") {
        ensure(size >= 0, || format!("Broadcast with negative dimension size {size}"))?;
        shape.push(Some(size));
    }
    shape.extend(operand.shape.iter().copied());
    Ok(Tensor::new(shape, operand.element.clone()).into())
}

fn broadcast_in_dim(op: &OpView<'_>) -> Result<(), Mistake> {
    let (operand, result) = (op.operand(0)?, op.result(0)?);
    let dims = op.attributes.ints("broadcast_dimensions");
    let (len, rank) = (dims.len(), operand.rank());
    ensure(len == rank, || {
        format!("broadcast_dimensions size ({len}) does not match operand rank ({rank})")
    })?;
    ensure(is_unique(dims), || "broadcast_dimensions should not have duplicates".to_owned())?;
    for (index, &dim) in dims.iter().enumerate() {
        let rank = result.rank();
        let target = usize::try_from(dim).ok().and_then(|dim| result.shape.get(dim));
        let Some(&target) = target else {
            return Err(bare(format!(
                "broadcast_dimensions contains invalid value {dim} for result with rank {rank}"
            )));
        };
        let Some(size) = operand.shape[index] else { continue };
        ensure(size == 1 || target == Some(size), || {
            let target = sizes(&[target], crate::stablehlo::types::DYNAMIC);
            format!(
                "size of operand dimension {index} ({size}) is not equal to 1 or size of result \
                 dimension {dim} ({target})"
            )
        })?;
    }
    Ok(())
}

fn bitcast_convert(op: &OpView<'_>) -> Result<(), Mistake> {
    let (operand, result) = (op.operand(0)?, op.result(0)?);
    if operand.element.is_foreign() || result.element.is_foreign() {
        return Ok(());
    }
    let is_complex = |tensor: &Tensor| matches!(tensor.element, Element::Complex(_));
    ensure(is_complex(operand) == is_complex(result), || {
        format!(
            "cannot convert between real and complex types, but got: '{operand}' and '{result}'"
        )
    })?;
    let bits = (operand.element.bits(), result.element.bits());
    let (Some(from), Some(to)) = bits else { return Ok(()) };
    let (small, large) = if from < to { (operand, result) } else { (result, operand) };
    let (small_bits, large_bits) = (from.min(to), from.max(to));
    let mut prefix = &small.shape[..];
    if from != to {
        let (a, b) = (small.rank(), large.rank());
        ensure(a == b + 1, || {
            format!(
                "rank of smaller element type ({a}) should be 1 more than rank of larger element \
                 type ({b}), but {a} != {b} + 1."
            )
        })?;
        if let Some((last, rest)) = prefix.split_last() {
            prefix = rest;
            let fits =
                |last: i64| last.wrapping_mul(i64::from(small_bits)) == i64::from(large_bits);
            ensure(last.is_none_or(fits), || {
                let last = sizes(&[*last], "?");
                format!(
                    "requires compatible bit widths. Got: '{operand}' and '{result}', but \
                     {small_bits} * {last} != {large_bits}."
                )
            })?;
        }
    }
    let fits = prefix.iter().zip(&large.shape).all(|(&a, &b)| compatible_sizes(a, b));
    ensure(fits, || {
        format!(
            "operand and result shapes must match except for the innermost dimension of the shape \
             with the smaller element type. Got: '{operand}' and '{result}'."
        )
    })
}

fn check_dimension(operand: &Tensor, dim: i64) -> Result<usize, Mistake> {
    let rank = operand.rank();
    ensure(dim >= 0, || format!("requires non-negative dimension attribute; found ({dim})"))?;
    ensure(dim < rank as i64, || {
        format!("requires dimension attribute in range [0, {rank}); found ({dim})")
    })?;
    Ok(dim as usize)
}

fn get_dimension_size(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    check_dimension(op.operand(0)?, op.attributes.int("dimension").unwrap_or(0))?;
    Ok(Tensor::scalar(Element::I32).into())
}

fn set_dimension_size(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let operand = op.operand(0)?;
    ensure(op.operand(1)?.rank() == 0, || "size operand should be of rank-0".to_owned())?;
    let dim = check_dimension(operand, op.attributes.int("dimension").unwrap_or(0))?;
    let mut shape = operand.shape.clone();
    let mut bounds: Sizes = (0..operand.rank()).map(|dim| operand.bound(dim)).collect();
    bounds[dim] = shape[dim].or(bounds[dim]);
    shape[dim] = None;
    let size = (op.constants)(1).and_then(|sizes| sizes.first().copied());
    if size.is_some() && size == bounds[dim] {
        (shape[dim], bounds[dim]) = (size, None);
    }
    let tensor = Tensor::new(Sizes::new(), operand.element.clone());
    Ok(tensor.with_shape(shape, bounds).into())
}

#[allow(clippy::unnecessary_wraps)] // It is an `Infer`.
fn device_id(_: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    Ok(Tensor::scalar(Element::parse("ui32")).into())
}
