//! Definitions of batch normalization.

use crate::stablehlo::attribute_kinds::{Kind, INDEX};
use crate::stablehlo::compatible::{compatible_sizes, of_compatible_shape};
use crate::stablehlo::constraint::{self as takes, Alternative, Constraint, Form};
use crate::stablehlo::definition::{
    one, required, stablehlo, AttributeDefinition, Definition, Family, NOTHING,
};
use crate::stablehlo::element::Elements as E;
use crate::stablehlo::mistake::{ensure, Mistake};
use crate::stablehlo::result_types::ResultTypes;
use crate::stablehlo::traits::Trait;
use crate::stablehlo::types::{sizes, Sizes, Tensor, ValueType};
use crate::stablehlo::view::OpView;

pub const FAMILIES: &[Family] = &[
    stablehlo(&["batch_norm_grad"], GRAD),
    stablehlo(&["batch_norm_inference"], INFERENCE),
    stablehlo(&["batch_norm_training"], TRAINING),
];

const WHOLE: Constraint = takes::FLOAT_OR_QUANTIZED;
const FEATURES: Constraint = &[Alternative::Tensor(Form::Vector, &[E::FLOAT, E::QUANTIZED])];
const ATTRIBUTES: &[AttributeDefinition] =
    &[required("epsilon", Kind::F32), required("feature_index", INDEX)];

const GRAD: Definition = Definition {
    operands: &[one(WHOLE), one(FEATURES), one(FEATURES), one(FEATURES), one(WHOLE)],
    results: &[one(WHOLE), one(FEATURES), one(FEATURES)],
    attributes: ATTRIBUTES,
    traits: &[Trait::CompatibleElements],
    infer: Some(|op| infer(op, &[0, 4], &[1, 2, 3])),
    ..NOTHING
};
const INFERENCE: Definition = Definition {
    operands: &[one(WHOLE), one(FEATURES), one(FEATURES), one(FEATURES), one(FEATURES)],
    results: &[one(WHOLE)],
    infer: Some(|op| infer(op, &[0], &[1, 2, 3, 4])),
    ..GRAD
};
const TRAINING: Definition = Definition {
    operands: &[one(WHOLE), one(FEATURES), one(FEATURES)],
    infer: Some(|op| infer(op, &[0], &[1, 2])),
    ..GRAD
};

/// The result types of an op whose operands `whole` have all dims, and whose operands `features`
/// have only the feature dim.
fn infer(op: &OpView<'_>, whole: &[usize], features: &[usize]) -> Result<ResultTypes, Mistake> {
    for (group, what) in [(whole, "multi"), (features, "single")] {
        let ty = |at: &usize| op.operands.get(*at).ok_or_else(Mistake::silent);
        for a in group {
            for b in group {
                ensure(of_compatible_shape(ty(a)?, ty(b)?), || {
                    format!("expects {what}-dimensional operands to have compatible shapes.")
                })?;
            }
        }
    }
    let operand = op.operand(0)?;
    let (index, rank) = (op.attributes.int("feature_index").unwrap_or(0), operand.rank());
    ensure(index < rank as i64, || {
        format!(
            "expects featureIndex to be smaller than the rank of multi-dimensional operands; got \
             featureIndex {index}, and rank {rank}."
        )
    })?;
    let dim = usize::try_from(index).map_err(|_| Mistake::silent())?;
    let count = operand.shape[dim];
    let single = op.operand(features[0])?.shape.first().copied().ok_or_else(Mistake::silent)?;
    ensure(compatible_sizes(single, count), || {
        let (single, count) = (sizes(&[single], "?"), sizes(&[count], "?"));
        format!(
            "expects the size of single-dimensional operands to be compatible with feature count, \
             but the size of single-dimensional operands is {single} and the feature count is \
             {count}."
        )
    })?;
    let per_feature: Tensor =
        operand.with_shape(Sizes::of(&[count]), Sizes::of(&[operand.bound(dim)]));
    let mut results: Vec<ValueType> = vec![operand.clone().into()];
    if op.results.len() > 1 {
        results.extend([per_feature.clone().into(), per_feature.into()]);
    }
    Ok(ResultTypes::Many(results))
}
