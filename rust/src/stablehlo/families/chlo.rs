//! Definitions of CHLO's functions and constants.

use super::broadcast::{ANY, BOOL, FLOAT};
use super::elementwise::like_operands;
use crate::mlir::AttrValue;
use crate::stablehlo::attribute_kinds::Kind;
use crate::stablehlo::attributes::Attribute;
use crate::stablehlo::constraint::{self as takes, Alternative, Constraint, Form};
use crate::stablehlo::definition::{chlo, one, required, Definition, Family, NOTHING};
use crate::stablehlo::element::{Element, Elements as E};
use crate::stablehlo::mistake::{of_op, Mistake};
use crate::stablehlo::result_types::ResultTypes;
use crate::stablehlo::traits::Trait;
use crate::stablehlo::types::{Tensor, ValueType};
use crate::stablehlo::view::OpView;

pub const FAMILIES: &[Family] = &[
    chlo(&["_asin_acos_kernel"], KERNEL),
    chlo(
        &[
            "acos",
            "acosh",
            "asin",
            "asinh",
            "atan",
            "atanh",
            "bessel_i1e",
            "conj",
            "cosh",
            "sinh",
            "square",
            "tan",
        ],
        ANALYTIC,
    ),
    chlo(&["digamma", "erf", "erf_inv", "erfc", "lgamma"], REAL),
    chlo(&["is_inf", "is_neg_inf", "is_pos_inf"], PREDICATE),
    chlo(&["next_after", "polygamma", "zeta"], BINARY),
    chlo(&["mulhi"], MULHI),
    chlo(&["constant"], CONSTANT),
    chlo(&["constant_like"], CONSTANT_LIKE),
];

const COMPLEX: Constraint = &[Alternative::Tensor(Form::Any, &[E::COMPLEX])];
const FLOAT_OR_COMPLEX: Constraint = &[Alternative::Tensor(Form::Any, &[E::FLOAT, E::COMPLEX])];

const REAL: Definition = Definition {
    operands: &[one(FLOAT)],
    results: &[one(FLOAT)],
    traits: &[Trait::CompatibleTypes, Trait::Elementwise, Trait::SameShape],
    infer: Some(like_operands),
    is_plain: Some(1),
    ..NOTHING
};
const ANALYTIC: Definition =
    Definition { operands: &[one(FLOAT_OR_COMPLEX)], results: &[one(FLOAT_OR_COMPLEX)], ..REAL };
const KERNEL: Definition =
    Definition { operands: &[one(COMPLEX)], results: &[one(COMPLEX)], ..REAL };
const PREDICATE: Definition = Definition {
    results: &[one(BOOL)],
    traits: &[Trait::Elementwise, Trait::SameShape],
    infer: Some(booleans),
    is_plain: None,
    ..REAL
};
const BINARY: Definition = Definition {
    operands: &[one(FLOAT), one(FLOAT)],
    traits: &[Trait::CompatibleTypes],
    is_plain: Some(2),
    ..REAL
};
const MULHI: Definition = Definition {
    operands: &[one(takes::INTEGER), one(takes::INTEGER)],
    results: &[one(takes::INTEGER)],
    ..BINARY
};
const CONSTANT: Definition = Definition {
    results: &[one(&[Alternative::Tensor(Form::Static, takes::ALL)])],
    attributes: &[required("value", Kind::Elements)],
    infer: Some(constant),
    is_plain: Some(0),
    ..NOTHING
};
const CONSTANT_LIKE: Definition = Definition {
    operands: &[one(ANY)],
    results: &[one(ANY)],
    attributes: &[required("value", Kind::Typed)],
    traits: &[Trait::SameShape],
    verify: Some(verify_constant_like),
    infer: Some(constant_like),
    ..NOTHING
};

/// A type of the shape of `ty` with other elements.
fn with_element(ty: &ValueType, element: Element) -> ValueType {
    match ty {
        ValueType::Tensor(tensor) => tensor.with_element(element).into(),
        _ => ValueType::Unranked(element),
    }
}

fn booleans(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let operand = op.operands.first().ok_or_else(Mistake::silent)?;
    Ok(with_element(operand, Element::BOOL).into())
}

fn constant(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    // In custom syntax a constant has the type of its elements.
    let ty = op.attributes.get("value").and_then(Attribute::dense_type);
    let Some((sizes, element)) = ty else { return Ok(op.result(0)?.clone().into()) };
    Ok(Tensor::new(sizes.iter().copied().map(Some).collect(), element.clone()).into())
}

/// The type of the attribute `value`; `None` if it is not a number.
fn value_type(op: &OpView<'_>) -> Option<Element> {
    op.attributes.get("value")?.number_type()
}

fn verify_constant_like(op: &OpView<'_>) -> Result<(), Mistake> {
    let result = op.results.first().and_then(|ty| ty.element());
    let value = op.attributes.value("value");
    if matches!(value, Some(AttrValue::Str(_) | AttrValue::Dense { .. })) {
        return Err(of_op("value's type doesn't match element return type"));
    }
    match value_type(op) {
        Some(ty) if Some(&ty) != result => {
            Err(of_op("value's type doesn't match element return type"))
        }
        _ => Ok(()),
    }
}

fn constant_like(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let operand = op.operands.first().ok_or_else(Mistake::silent)?;
    let element = value_type(op).map_or_else(|| op.result_element(0), Ok)?;
    Ok(with_element(operand, element).into())
}
