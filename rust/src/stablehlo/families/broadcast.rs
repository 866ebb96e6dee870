//! Definitions of CHLO ops whose operands are broadcast to a common shape.

use crate::stablehlo::attribute_kinds::Kind;
use crate::stablehlo::constraint::{self as takes, Alternative, Constraint, Form};
use crate::stablehlo::definition::{
    chlo, one, optional, required, AttributeDefinition, Compares, Definition, Family, NOTHING,
};
use crate::stablehlo::element::{Element, Elements as E};
use crate::stablehlo::mistake::{bare, ensure, Mistake};
use crate::stablehlo::result_types::ResultTypes;
use crate::stablehlo::traits::Trait;
use crate::stablehlo::types::{Size, Sizes, Tensor, ValueType};
use crate::stablehlo::view::OpView;

pub const FAMILIES: &[Family] = &[
    chlo(&["broadcast_add", "broadcast_maximum", "broadcast_minimum"], COMPATIBLE),
    chlo(
        &[
            "broadcast_atan2",
            "broadcast_divide",
            "broadcast_multiply",
            "broadcast_next_after",
            "broadcast_polygamma",
            "broadcast_power",
            "broadcast_remainder",
            "broadcast_shift_left",
            "broadcast_shift_right_arithmetic",
            "broadcast_shift_right_logical",
            "broadcast_subtract",
        ],
        SAME,
    ),
    chlo(&["broadcast_zeta"], ZETA),
    chlo(&["broadcast_and", "broadcast_or", "broadcast_xor"], LOGICAL),
    chlo(&["broadcast_complex"], COMPLEX),
    chlo(&["broadcast_compare"], COMPARE),
    chlo(&["broadcast_select"], SELECT),
];

/// Tensors of any rank and elements.
pub const ANY: Constraint = &[Alternative::Tensor(Form::Any, takes::ALL_PER_AXIS)];
/// Tensors of any rank of floats.
pub const FLOAT: Constraint = &[Alternative::Tensor(Form::Any, &[E::FLOAT])];
/// Tensors of any rank of booleans.
pub const BOOL: Constraint = &[Alternative::Tensor(Form::Any, &[E::BOOL])];
const BOOL_OR_INTEGER: Constraint = &[Alternative::Tensor(Form::Any, &[E::BOOL, E::INTEGER])];
const DIMS: AttributeDefinition = optional("broadcast_dimensions", Kind::I64Array);

const COMPATIBLE: Definition = Definition {
    operands: &[one(ANY), one(ANY)],
    results: &[one(ANY)],
    attributes: &[DIMS],
    traits: &[Trait::CompatibleElements],
    infer: Some(|op| binary(op, None)),
    ..NOTHING
};
const SAME: Definition = Definition { traits: &[Trait::SameElements], ..COMPATIBLE };
const ZETA: Definition =
    Definition { operands: &[one(FLOAT), one(FLOAT)], results: &[one(FLOAT)], ..SAME };
const LOGICAL: Definition = Definition {
    operands: &[one(BOOL_OR_INTEGER), one(BOOL_OR_INTEGER)],
    traits: &[],
    ..COMPATIBLE
};
const COMPLEX: Definition = Definition {
    operands: &[one(FLOAT), one(FLOAT)],
    results: &[one(&[Alternative::Tensor(Form::Any, &[E::COMPLEX])])],
    traits: &[],
    infer: Some(|op| {
        let part = op.operands.first().and_then(|ty| ty.element()).cloned();
        binary(op, part.map(Element::into_complex))
    }),
    ..COMPATIBLE
};
const COMPARE: Definition = Definition {
    results: &[one(BOOL)],
    attributes: &[
        DIMS,
        required(
            "comparison_direction",
            Kind::Of("chlo", "comparison_direction", "Which comparison operation to perform."),
        ),
        optional(
            "compare_type",
            Kind::Of("chlo", "comparison_type", "Which comparison type to use."),
        ),
    ],
    traits: &[],
    infer: Some(|op| binary(op, Some(Element::BOOL))),
    ..COMPATIBLE
};
const SELECT: Definition = Definition {
    operands: &[one(takes::BOOL), one(ANY), one(ANY)],
    results: &[one(ANY)],
    infer: Some(select),
    compares: Compares::Shapes,
    ..NOTHING
};

fn binary(op: &OpView<'_>, element: Option<Element>) -> Result<ResultTypes, Mistake> {
    let [lhs, rhs] = op.operands else { return Err(Mistake::silent()) };
    let elements = lhs.element().zip(rhs.element());
    let Some((left, right)) = elements else { return Err(bare("mismatched operand types")) };
    ensure(left == right, || "mismatched operand types".to_owned())?;
    let element = element.unwrap_or_else(|| left.clone());
    let shape = match op.attributes.get("broadcast_dimensions") {
        None => numpy(&[lhs, rhs]),
        Some(_) => along(lhs, rhs, op.attributes.ints("broadcast_dimensions")),
    };
    Ok(result(shape, element).into())
}

/// The result type; unranked, as in MLIR, if operands cannot be broadcast.
fn result(shape: Option<Shape>, element: Element) -> ValueType {
    match shape {
        Some((shape, bounds)) => {
            Tensor::new(Sizes::new(), element).with_shape(shape, bounds).into()
        }
        None => ValueType::Unranked(element),
    }
}

/// Sizes, and their bounds.
type Shape = (Sizes, Sizes);

fn select(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let [predicate, chosen, other] = op.operands else { return Err(Mistake::silent()) };
    ensure(chosen.element() == other.element(), || "mismatched operand types".to_owned())?;
    let element = chosen.element().cloned().ok_or_else(Mistake::silent)?;
    Ok(result(numpy(&[predicate, chosen, other]), element).into())
}

/// The broadcast shape of all operands, aligned at the minor-most dim.
fn numpy(operands: &[&ValueType]) -> Option<Shape> {
    let tensors: Vec<&Tensor> = operands.iter().map(|ty| ty.tensor()).collect::<Option<_>>()?;
    let is_exact = tensors.iter().all(|tensor| tensor.is_static() || !tensor.bounds().is_empty());
    let rank = tensors.iter().map(|tensor| tensor.rank()).max()?;
    let dim = |tensor: &Tensor, dim: usize| match (dim + tensor.rank()).checked_sub(rank) {
        Some(dim) => (tensor.shape[dim], tensor.bound(dim)),
        None => (Some(1), None),
    };
    let merged = |at: usize| {
        let mut dims = tensors.iter().map(|tensor| dim(tensor, at));
        let first = dims.next()?;
        dims.try_fold(first, if is_exact { exact } else { lenient })
    };
    Some((0..rank).map(merged).collect::<Option<Vec<_>>>()?.into_iter().unzip())
}

type Bounded = (Size, Size);

/// Broadcasts one dim of two tensors with known sizes or bounds.
fn exact(a: Bounded, b: Bounded) -> Option<Bounded> {
    match (a, b) {
        (a, b) if a.0 == Some(1) => Some(b),
        (a, b) if b.0 == Some(1) => Some(a),
        (a, b) => (a == b).then_some(a),
    }
}

/// Broadcasts one dim of two tensors, some of whose sizes are dynamic.
fn lenient(a: Bounded, b: Bounded) -> Option<Bounded> {
    let size = broadcast_sizes(a.0, b.0)?;
    Some((size, None))
}

fn broadcast_sizes(a: Size, b: Size) -> Option<Size> {
    match (a, b) {
        (Some(1), other) | (other, Some(1)) => Some(other),
        (None, Some(size)) | (Some(size), None) => Some(Some(size)),
        (a, b) => (a == b).then_some(a),
    }
}

/// The shape of the operand with more dims, if the other operand is broadcast along `dims`.
fn along(lhs: &ValueType, rhs: &ValueType, dims: &[i64]) -> Option<Shape> {
    let (lhs, rhs) = (lhs.tensor()?, rhs.tensor()?);
    let (large, small) = if lhs.rank() > rhs.rank() { (lhs, rhs) } else { (rhs, lhs) };
    if dims.len() != small.rank() {
        return None;
    }
    let mut shape = large.shape.clone();
    for (&dim, &size) in dims.iter().zip(&small.shape) {
        let dim = usize::try_from(dim).ok()?;
        let place = shape.get_mut(dim)?;
        *place = broadcast_sizes(size, large.shape[dim])?;
    }
    Some((shape, Sizes::new()))
}
