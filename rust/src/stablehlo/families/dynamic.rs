//! Definitions of ops whose shapes, starts or paddings are operands.

use super::linalg::SIZES;
use super::shape::same_num_elements;
use crate::stablehlo::attribute_kinds::{Kind, INDEX};
use crate::stablehlo::compatible::{compatible, compatible_sizes};
use crate::stablehlo::constraint::{self as takes, Alternative, Constraint, Form};
use crate::stablehlo::definition::{
    one, optional, required, stablehlo, Definition, Family, NOTHING,
};
use crate::stablehlo::dim_checks::{is_unique, list};
use crate::stablehlo::element::Elements as E;
use crate::stablehlo::mistake::{bare, ensure, Mistake};
use crate::stablehlo::traits::{Trait, RESULT};
use crate::stablehlo::types::{sizes, Tensor, ValueType, DYNAMIC};
use crate::stablehlo::view::OpView;

pub const FAMILIES: &[Family] = &[
    stablehlo(&["dynamic_iota"], IOTA),
    stablehlo(&["dynamic_reshape"], RESHAPE),
    stablehlo(&["dynamic_broadcast_in_dim"], BROADCAST),
    stablehlo(&["dynamic_pad"], PAD),
    stablehlo(&["real_dynamic_slice"], SLICE),
];

const IOTA: Definition = Definition {
    operands: &[one(SIZES)],
    results: &[one(takes::TENSOR)],
    attributes: &[required("iota_dimension", INDEX)],
    verify: Some(iota),
    looks_around: true,
    ..NOTHING
};
const RESHAPE: Definition = Definition {
    operands: &[one(takes::PER_AXIS_TENSOR), one(SIZES)],
    results: &[one(takes::PER_AXIS_TENSOR)],
    verify: Some(reshape),
    looks_around: true,
    ..NOTHING
};
const BROADCAST: Definition = Definition {
    attributes: &[
        required("broadcast_dimensions", Kind::I64Array),
        optional("known_expanding_dimensions", Kind::I64Array),
        optional("known_nonexpanding_dimensions", Kind::I64Array),
    ],
    verify: Some(broadcast),
    ..RESHAPE
};
const PAD: Definition = Definition {
    operands: &[
        one(takes::TENSOR),
        one(&[Alternative::Tensor(Form::Scalar, takes::ALL)]),
        one(SIZES),
        one(SIZES),
        one(SIZES),
    ],
    results: &[one(takes::TENSOR)],
    traits: &[
        Trait::SameElementsOf(&[0, 1, RESULT], "operand, padding_value, result"),
        Trait::SameTypesOf(&[2, 3, 4], "edge_padding_low, edge_padding_high, interior_padding"),
        Trait::SameRanksOf(&[0, RESULT], "operand, result"),
    ],
    verify: Some(pad),
    looks_around: true,
    ..NOTHING
};
const INDICES: Constraint = &[Alternative::Tensor(Form::Vector, &[E::INDEX, E::INTEGER])];
const SLICE: Definition = Definition {
    operands: &[one(takes::TENSOR), one(INDICES), one(INDICES), one(INDICES)],
    results: &[one(takes::TENSOR)],
    traits: &[
        Trait::SameElementsOf(&[0, RESULT], "operand, result"),
        Trait::SameTypesOf(&[1, 2, 3], "start_indices, limit_indices, strides"),
    ],
    verify: Some(slice),
    ..NOTHING
};

/// Checks that the shape operand, if it is a constant, fits the result.
fn check_shape(op: &OpView<'_>, shape_operand: usize) -> Result<(), Mistake> {
    let Some(shape) = (op.constants)(shape_operand) else { return Ok(()) };
    let result = op.result(0)?;
    let expected =
        Tensor::new(shape.iter().copied().map(Some).collect(), result.element.clone()).into();
    let fits = shape.iter().all(|&size| size >= 0)
        && compatible(&expected, &ValueType::Tensor(result.clone()));
    ensure(fits, || {
        let shape = list(&shape);
        format!("output shape [{shape}] is incompatible with return type of operation '{result}'")
    })
}

fn iota(op: &OpView<'_>) -> Result<(), Mistake> {
    let (rank, dim) = (op.result(0)?.rank(), op.attributes.int("iota_dimension").unwrap_or(0));
    ensure(dim < rank as i64, || "iota dimension cannot go beyond the output rank.".to_owned())?;
    check_shape(op, 0)
}

fn check_elements(op: &OpView<'_>) -> Result<(), Mistake> {
    let (operand, result) = (op.operand(0)?, op.result(0)?);
    ensure(operand.element == result.element, || {
        format!(
            "expects operand and result to have compatible element type. Got: '{operand}' and \
             '{result}'"
        )
    })
}

fn reshape(op: &OpView<'_>) -> Result<(), Mistake> {
    check_elements(op)?;
    let (operand, result) = (op.operand(0)?, op.result(0)?);
    same_num_elements(operand, result)?;
    check_shape(op, 1)?;
    let count = op.operand(1)?.shape.first().copied().flatten();
    ensure(count == Some(result.rank() as i64), || {
        "result should have a rank equal to the number of elements in output_shape".to_owned()
    })?;
    if let (Some(has), Some(shape)) = (operand.num_elements(), (op.constants)(1)) {
        let asked = shape.iter().fold(1_i64, |product, &size| product.wrapping_mul(size));
        ensure(has == asked, || {
            format!(
                "output_shape is incompatible with input type of operation: input has {has} \
                 elements, but output_shape has {asked}"
            )
        })?;
    }
    Ok(())
}

fn broadcast(op: &OpView<'_>) -> Result<(), Mistake> {
    check_elements(op)?;
    let (operand, result) = (op.operand(0)?, op.result(0)?);
    let dims = op.attributes.ints("broadcast_dimensions");
    let (len, rank, result_rank) = (dims.len(), operand.rank(), result.rank());
    ensure(len == rank, || {
        format!("broadcast_dimensions size ({len}) does not match operand rank ({rank})")
    })?;
    ensure(result_rank >= rank, || {
        format!("result rank ({result_rank}) is less than operand rank ({rank})")
    })?;
    ensure(is_unique(dims), || "broadcast_dimensions should not have duplicates".to_owned())?;
    for (index, (&dim, &size)) in dims.iter().zip(&operand.shape).enumerate() {
        let target = usize::try_from(dim).ok().and_then(|dim| result.shape.get(dim));
        let Some(&target) = target else {
            return Err(bare(format!(
                "broadcast_dimensions contains invalid value {dim} for result with rank \
                 {result_rank}"
            )));
        };
        ensure(size == Some(1) || compatible_sizes(size, target), || {
            let (size, target) = (sizes(&[size], DYNAMIC), sizes(&[target], DYNAMIC));
            format!(
                "size of operand dimension {index} ({size}) is not compatible with size of result \
                 dimension {dim} ({target})"
            )
        })?;
    }
    check_shape(op, 1)?;
    check_hints(op, rank)?;
    if let Some(shape) = (op.constants)(1).filter(|_| operand.is_static()) {
        check_known(operand, dims, &shape)?;
    }
    Ok(())
}

/// Checks that the hints on expanding dims are distinct and in range.
fn check_hints(op: &OpView<'_>, rank: usize) -> Result<(), Mistake> {
    let hints = ["known_expanding_dimensions", "known_nonexpanding_dimensions"];
    let hints: Vec<i64> = hints.iter().flat_map(|name| op.attributes.ints(name)).copied().collect();
    ensure(is_unique(&hints), || {
        "duplicate expansion hint for at least one operand dimension".to_owned()
    })?;
    match hints.iter().find(|dim| !(0..rank as i64).contains(dim)) {
        Some(dim) => Err(bare(format!(
            "hint for expanding dimension {dim} does not refer to a valid operand dimension"
        ))),
        None => Ok(()),
    }
}

fn check_known(operand: &Tensor, dims: &[i64], shape: &[i64]) -> Result<(), Mistake> {
    for (index, (&dim, &size)) in dims.iter().zip(&operand.shape).enumerate() {
        let Some(size) = size else { continue };
        let Some(&target) = usize::try_from(dim).ok().and_then(|dim| shape.get(dim)) else {
            continue;
        };
        ensure(size == 1 || size == target, || {
            format!(
                "size of operand dimension {index} ({size}) is not equal to 1 or value of shape at \
                 index {dim} ({target})"
            )
        })?;
    }
    Ok(())
}

fn pad(op: &OpView<'_>) -> Result<(), Mistake> {
    let (operand, result) = (op.operand(0)?, op.result(0)?);
    let (rank, count) = (operand.rank(), op.operand(2)?.shape.first().copied().flatten());
    ensure(count == Some(rank as i64), || {
        let count = sizes(&[count], DYNAMIC);
        format!("padding operands size ({count}) must match operand rank ({rank})")
    })?;
    let Some(interior) = (op.constants)(4) else { return Ok(()) };
    ensure(interior.iter().all(|&between| between >= 0), || {
        let interior = list(&interior);
        format!("interior_padding must be non-negative, but got {interior}")
    })?;
    let (Some(low), Some(high)) = ((op.constants)(2), (op.constants)(3)) else { return Ok(()) };
    if !operand.is_static() || !result.is_static() {
        return Ok(());
    }
    let given = operand.shape.iter().zip(&result.shape).enumerate();
    for (dim, (&size, &got)) in given {
        let (Some(size), Some(got)) = (size, got) else { continue };
        let (Some(low), Some(high)) = (low.get(dim), high.get(dim)) else { continue };
        let between = interior.get(dim).copied().unwrap_or(0);
        let between = (size - 1).max(0).wrapping_mul(between);
        let want = size.wrapping_add(*low).wrapping_add(between).wrapping_add(*high);
        ensure(got == want, || {
            format!("expected output dimension at index {dim} to equal {want}, but got {got}")
        })?;
    }
    Ok(())
}

fn slice(op: &OpView<'_>) -> Result<(), Mistake> {
    let rank = op.operand(0)?.rank();
    for (index, name) in [(1, "start_indices"), (2, "limit_indices"), (3, "strides")] {
        let count = op.operand(index)?.num_elements();
        ensure(count == Some(rank as i64), || {
            let count = sizes(&[count], DYNAMIC);
            format!("has mismatched number of operand rank ({rank}) and {name} size ({count})")
        })?;
    }
    Ok(())
}
