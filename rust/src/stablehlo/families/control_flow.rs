//! Definitions of branches, loops, barriers and returns.

use crate::stablehlo::compatible::{all_compatible, least_specific};
use crate::stablehlo::constraint as takes;
use crate::stablehlo::definition::{many, one, stablehlo, Definition, Family, Regions, NOTHING};
use crate::stablehlo::element::Element;
use crate::stablehlo::mistake::{bare, ensure, Mistake};
use crate::stablehlo::result_types::ResultTypes;
use crate::stablehlo::traits::Trait;
use crate::stablehlo::types::{quoted, Tensor, ValueType};
use crate::stablehlo::view::OpView;

pub const FAMILIES: &[Family] = &[
    stablehlo(&["if"], IF),
    stablehlo(&["case"], CASE),
    stablehlo(&["while"], WHILE),
    stablehlo(&["optimization_barrier"], BARRIER),
    stablehlo(&["return"], RETURN),
];

const IF: Definition = Definition {
    operands: &[one(takes::BOOL)],
    results: &[many(takes::PER_AXIS_OR_TOKEN)],
    regions: Regions::Named(&["true_branch", "false_branch"]),
    has_implicit_return: true,
    infer: Some(branches),
    ..NOTHING
};
const CASE: Definition =
    Definition { operands: &[one(takes::I32)], regions: Regions::Branches("branches"), ..IF };
const WHILE: Definition = Definition {
    operands: &[many(takes::PER_AXIS_TOKEN_OR_BUFFER)],
    results: &[many(takes::PER_AXIS_TOKEN_OR_BUFFER)],
    regions: Regions::Named(&["cond", "body"]),
    has_implicit_return: true,
    verify: Some(verify_while),
    infer: Some(like_operands),
    ..NOTHING
};
const BARRIER: Definition = Definition {
    operands: &[many(takes::TENSOR_OR_TOKEN)],
    results: &[many(takes::TENSOR_OR_TOKEN)],
    traits: &[Trait::PairwiseTypes],
    infer: Some(like_operands),
    ..NOTHING
};
const RETURN: Definition =
    Definition { operands: &[many(takes::PER_AXIS_TOKEN_OR_BUFFER)], ..NOTHING };

#[allow(clippy::unnecessary_wraps)] // It is an `Infer`.
fn like_operands(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    Ok(op.operands.iter().map(|ty| (**ty).clone()).collect())
}

fn branches(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let rank = op.operand(0)?.rank();
    ensure(rank == 0, || format!("operand should be rank 0 tensor but got rank {rank}"))?;
    let Some(first) = op.regions.first() else {
        return Err(bare("expect at least one branch"));
    };
    for (at, region) in op.regions.iter().enumerate() {
        let args = region.args.len();
        ensure(args == 0, || format!("branch {at} must have 0 arguments, but found {args}"))?;
        ensure(all_compatible(&first.returned, &region.returned), || {
            let (first, other) = (quoted(&first.returned), quoted(&region.returned));
            format!("branch 0 and branch {at} have mismatched return types: {first} vs {other}")
        })?;
    }
    let result = |at: usize| {
        let types: Vec<&ValueType> = op
            .regions
            .iter()
            .filter_map(|region| region.returned.get(at))
            .map(|ty| &**ty)
            .collect();
        least_specific(&types)
    };
    (0..first.returned.len()).map(result).collect()
}

fn verify_while(op: &OpView<'_>) -> Result<(), Mistake> {
    let (condition, body) = (op.region(0)?, op.region(1)?);
    for (types, what) in [
        (&condition.args, "condition block arguments"),
        (&body.args, "body block arguments"),
        (&body.returned, "body block return types"),
    ] {
        ensure(all_compatible(op.operands, types), || {
            let (operands, types) = (quoted(op.operands), quoted(types));
            format!("expect operands to be compatible with {what} but got {operands} vs {types}")
        })?;
    }
    let count = condition.returned.len();
    let [returned] = &condition.returned[..] else {
        return Err(bare(format!("expect condition body returns a single value but got {count}")));
    };
    ensure(**returned == Tensor::scalar(Element::BOOL).into(), || {
        format!("expect condition block return a zero-ranked tensor of i1 but got '{returned}'")
    })
}
