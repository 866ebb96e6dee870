//! Definitions of elementwise ops.

use crate::mlir::AttrValue;
use crate::stablehlo::attribute_kinds::{Kind, Least};
use crate::stablehlo::compatible::{
    most_specific, of_compatible_shape, same_but_for_unknown_sizes,
};
use crate::stablehlo::constraint::{self as takes, Alternative, Constraint, Form};
use crate::stablehlo::definition::{
    one, optional, required, stablehlo, Definition, Family, NOTHING,
};
use crate::stablehlo::element::{Element, Elements as E};
use crate::stablehlo::mistake::{bare, ensure, Mistake};
use crate::stablehlo::result_types::ResultTypes;
use crate::stablehlo::traits::Trait;
use crate::stablehlo::types::{sizes, Tensor};
use crate::stablehlo::view::OpView;

pub const FAMILIES: &[Family] = &[
    stablehlo(&["ceil", "floor", "round_nearest_afz", "round_nearest_even"], ROUND),
    stablehlo(
        &[
            "cbrt",
            "cosine",
            "exponential",
            "exponential_minus_one",
            "log",
            "log_plus_one",
            "logistic",
            "rsqrt",
            "sine",
            "sqrt",
            "tan",
            "tanh",
        ],
        FUNCTION,
    ),
    stablehlo(&["count_leading_zeros", "popcnt"], COUNT),
    stablehlo(&["not"], NOT),
    stablehlo(&["negate"], NEGATE),
    stablehlo(&["sign"], SIGN),
    stablehlo(&["abs"], ABS),
    stablehlo(&["convert"], CONVERT),
    stablehlo(&["imag", "real"], PART),
    stablehlo(&["is_finite"], IS_FINITE),
    stablehlo(&["add"], ADD),
    stablehlo(&["atan2"], ATAN2),
    stablehlo(&["divide", "power", "remainder", "subtract"], ARITHMETIC),
    stablehlo(&["maximum", "minimum", "multiply"], ANY_BINARY),
    stablehlo(&["shift_left", "shift_right_arithmetic", "shift_right_logical"], SHIFT),
    stablehlo(&["and", "or", "xor"], LOGICAL),
    stablehlo(&["complex"], COMPLEX),
    stablehlo(&["compare"], COMPARE),
    stablehlo(&["select"], SELECT),
    stablehlo(&["clamp"], CLAMP),
    stablehlo(&["reduce_precision"], REDUCE_PRECISION),
    stablehlo(&["uniform_quantize"], QUANTIZE),
    stablehlo(&["uniform_dequantize"], DEQUANTIZE),
];

const UNARY_TRAITS: &[Trait] = &[Trait::CompatibleTypes, Trait::Elementwise, Trait::SameShape];
const BINARY_TRAITS: &[Trait] = &[Trait::CompatibleTypes, Trait::SameShape, Trait::Elementwise];

const ROUND: Definition = Definition {
    operands: &[one(takes::FLOAT_OR_QUANTIZED)],
    results: &[one(takes::FLOAT_OR_QUANTIZED)],
    traits: UNARY_TRAITS,
    infer: Some(like_operands),
    is_plain: Some(1),
    ..NOTHING
};
const FUNCTION: Definition = Definition {
    operands: &[one(takes::ANALYTIC)],
    results: &[one(takes::ANALYTIC)],
    attributes: &[optional("result_accuracy", RESULT_ACCURACY)],
    verify: Some(result_accuracy),
    ..ROUND
};
const RESULT_ACCURACY: Kind = Kind::Of(
    "stablehlo",
    "result_accuracy",
    "The requested accuracy for transcendental unary ops.",
);
const COUNT: Definition =
    Definition { operands: &[one(takes::INTEGER)], results: &[one(takes::INTEGER)], ..ROUND };
const NOT: Definition = Definition {
    operands: &[one(takes::BOOL_OR_INTEGER)],
    results: &[one(takes::BOOL_OR_INTEGER)],
    ..ROUND
};
const NEGATE: Definition =
    Definition { operands: &[one(takes::NUMBER)], results: &[one(takes::NUMBER)], ..ROUND };
const SIGNED: Constraint =
    &[Alternative::Tensor(Form::Ranked, &[E::SIGNLESS, E::FLOAT, E::COMPLEX, E::QUANTIZED])];
const SIGNED_REAL: Constraint =
    &[Alternative::Tensor(Form::Ranked, &[E::SIGNLESS, E::FLOAT, E::QUANTIZED])];
const SIGN: Definition = Definition { operands: &[one(SIGNED)], results: &[one(SIGNED)], ..ROUND };
const ABS: Definition = Definition {
    operands: &[one(SIGNED)],
    results: &[one(SIGNED_REAL)],
    traits: &[Trait::Elementwise, Trait::SameShape],
    infer: Some(real_part),
    ..ROUND
};
const NOT_QUANTIZED: Constraint =
    &[Alternative::Tensor(Form::Ranked, &[E::FLOAT, E::BOOL, E::INTEGER, E::COMPLEX])];
const CONVERT: Definition = Definition {
    operands: &[one(NOT_QUANTIZED)],
    results: &[one(NOT_QUANTIZED)],
    traits: &[Trait::SameShape, Trait::Elementwise],
    is_plain: Some(1),
    ..NOTHING
};
const PART: Definition =
    Definition { operands: &[one(takes::FLOAT_OR_COMPLEX)], results: &[one(takes::FLOAT)], ..ABS };
const IS_FINITE: Definition = Definition {
    operands: &[one(takes::FLOAT_OR_QUANTIZED)],
    results: &[one(takes::BOOL)],
    infer: Some(booleans),
    is_plain: None,
    ..ABS
};

const ANY_BINARY: Definition =
    binary(&[one(takes::TENSOR), one(takes::TENSOR)], &[one(takes::TENSOR)]);
const ADD: Definition = Definition {
    operands: &[one(takes::PER_AXIS_TENSOR), one(takes::PER_AXIS_TENSOR)],
    results: &[one(takes::PER_AXIS_TENSOR)],
    traits: &[Trait::SameShape, Trait::Elementwise],
    verify: Some(same_elements),
    ..ANY_BINARY
};
const ATAN2: Definition =
    binary(&[one(takes::ANALYTIC), one(takes::ANALYTIC)], &[one(takes::ANALYTIC)]);
const ARITHMETIC: Definition =
    binary(&[one(takes::NUMBER), one(takes::NUMBER)], &[one(takes::NUMBER)]);
const SHIFT: Definition =
    binary(&[one(takes::INTEGER), one(takes::INTEGER)], &[one(takes::INTEGER)]);
const LOGICAL: Definition =
    binary(&[one(takes::BOOL_OR_INTEGER), one(takes::BOOL_OR_INTEGER)], &[one(takes::TENSOR)]);

use crate::stablehlo::definition::Group;

const fn binary(operands: &'static [Group], results: &'static [Group]) -> Definition {
    Definition {
        operands,
        results,
        traits: BINARY_TRAITS,
        infer: Some(like_operands),
        is_plain: Some(2),
        ..NOTHING
    }
}

const F32_OR_F64: Constraint = &[Alternative::Tensor(Form::Ranked, &[E::F32_OR_F64])];
const COMPLEX: Definition = Definition {
    operands: &[one(F32_OR_F64), one(F32_OR_F64)],
    results: &[one(&[Alternative::Tensor(Form::Ranked, &[E::COMPLEX])])],
    traits: &[Trait::SameOperandElements, Trait::SameShape, Trait::Elementwise],
    infer: Some(complex),
    ..NOTHING
};
const COMPARE: Definition = Definition {
    operands: &[one(takes::TENSOR), one(takes::TENSOR)],
    results: &[one(takes::BOOL)],
    attributes: &[
        required("comparison_direction", DIRECTION),
        optional("compare_type", COMPARISON_TYPE),
    ],
    traits: &[Trait::Elementwise, Trait::CompatibleOperandElements, Trait::SameShape],
    infer: Some(booleans),
    ..NOTHING
};
const DIRECTION: Kind =
    Kind::Of("stablehlo", "comparison_direction", "Which comparison operation to perform.");
const COMPARISON_TYPE: Kind =
    Kind::Of("stablehlo", "comparison_type", "Which comparison type to use.");
const SELECT: Definition = Definition {
    operands: &[one(takes::BOOL), one(takes::TENSOR), one(takes::TENSOR)],
    results: &[one(takes::TENSOR)],
    infer: Some(select),
    ..NOTHING
};
const CLAMP: Definition = Definition {
    operands: &[one(takes::TENSOR), one(takes::TENSOR), one(takes::TENSOR)],
    results: &[one(takes::TENSOR)],
    traits: &[Trait::CompatibleElements],
    infer: Some(clamp),
    is_plain: Some(3),
    ..NOTHING
};
const REDUCE_PRECISION: Definition = Definition {
    operands: &[one(takes::FLOAT_OR_QUANTIZED)],
    results: &[one(takes::FLOAT_OR_QUANTIZED)],
    attributes: &[
        required("exponent_bits", Kind::Int(32, Least::Positive)),
        required("mantissa_bits", Kind::Int(32, Least::NonNegative)),
    ],
    traits: &[Trait::Elementwise, Trait::CompatibleTypes],
    infer: Some(like_operands),
    ..NOTHING
};
const QUANTIZED: Constraint = &[Alternative::Tensor(Form::Ranked, &[E::QUANTIZED, E::PER_AXIS])];
const QUANTIZE: Definition = Definition {
    operands: &[one(&[Alternative::Tensor(Form::Ranked, &[E::FLOAT, E::QUANTIZED, E::PER_AXIS])])],
    results: &[one(QUANTIZED)],
    traits: &[Trait::Elementwise, Trait::SameShape],
    ..NOTHING
};
const DEQUANTIZE: Definition = Definition {
    operands: &[one(QUANTIZED)],
    results: &[one(takes::FLOAT)],
    traits: &[Trait::Elementwise, Trait::SameShape],
    ..NOTHING
};

/// The most specific type of the operands: each size from the first operand in which it is static.
pub fn like_operands(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    Ok(most_specific(op.operands)?.into())
}

fn real_part(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let operand = op.operand(0)?;
    Ok(operand.with_element(operand.element.real_part().clone()).into())
}

fn booleans(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    Ok(op.operand(0)?.with_element(Element::BOOL).into())
}

fn complex(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let operand = op.operand(0)?;
    Ok(operand.with_element(operand.element.clone().into_complex()).into())
}

fn select(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let [predicate, chosen, other] = op.operands else { return Err(Mistake::silent()) };
    if !same_but_for_unknown_sizes(chosen, other) {
        return Err(bare("requires compatible types for non-predicate operands"));
    }
    let is_scalar = predicate.shape().is_some_and(<[_]>::is_empty);
    if !is_scalar && !of_compatible_shape(predicate, chosen) {
        return Err(bare("requires the same shape for all operands"));
    }
    Ok(most_specific(&[chosen, other])?.into())
}

fn clamp(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let operand = op.operand(1)?;
    for (index, what) in [(0, "min"), (2, "max")] {
        let bound = op.operand(index)?;
        if bound.rank() != 0 && !of_compatible_shape(op.operands[index], op.operands[1]) {
            let list = |tensor: &Tensor| sizes(&tensor.shape, crate::stablehlo::types::DYNAMIC);
            let (bound, operand) = (list(bound), list(operand));
            return Err(bare(format!(
                "{what} shape [{bound}] is not scalar and is not compatible to operand shape \
                 [{operand}]"
            )));
        }
    }
    Ok(operand.clone().into())
}

/// Checks the tolerances of `result_accuracy`.
fn result_accuracy(op: &OpView<'_>) -> Result<(), Mistake> {
    let Some(value) = op.attributes.value("result_accuracy") else { return Ok(()) };
    let number = |name| match value.field(name) {
        Some(AttrValue::Float(number)) => *number,
        Some(other) => other.as_int().unwrap_or(0) as f64,
        None => 0.0,
    };
    let numbers = [number("atol"), number("rtol"), number("ulps")];
    if numbers.iter().any(|number| *number < 0.0) {
        return Err(bare("Negative tolerance"));
    }
    let mode = value.field("mode").and_then(AttrValue::as_str).unwrap_or("DEFAULT");
    if mode != "TOLERANCE" && numbers.iter().any(|number| *number != 0.0) {
        return Err(bare(format!(
            "Invalid tolerances for ResultAccuracyAttr with mode {mode}, must be all zero."
        )));
    }
    Ok(())
}

/// Checks that the element types of an addition are the same.
fn same_elements(op: &OpView<'_>) -> Result<(), Mistake> {
    let (lhs, rhs, result) = (op.operand(0)?, op.operand(1)?, op.result(0)?);
    ensure(lhs.element == rhs.element && lhs.element == result.element, || {
        "op requires the same element type for all operands and results".to_owned()
    })
}
