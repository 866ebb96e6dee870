//! Definitions of collectives, from `all_gather` to `collective_permute`, and of asynchronous ones.

use super::elementwise::like_operands;
use super::reducer::{accumulators, check_reducer};
use super::replica_groups::{check_groups, check_pairs, GroupNeeds};
use crate::mlir::AttrValue;
use crate::stablehlo::attribute_kinds::{Kind, COUNT, INDEX};
use crate::stablehlo::compatible::compatible_sizes;
use crate::stablehlo::constraint as takes;
use crate::stablehlo::definition::{
    many, one, optional, required, stablehlo, AttributeDefinition, Definition, Family, Regions,
    NOTHING,
};
use crate::stablehlo::mistake::{bare, ensure, Mistake};
use crate::stablehlo::result_types::ResultTypes;
use crate::stablehlo::traits::Trait;
use crate::stablehlo::types::{sizes, Size, Sizes, Tensor, ValueType, DYNAMIC};
use crate::stablehlo::view::OpView;

pub const FAMILIES: &[Family] = &[
    stablehlo(&["all_gather"], ALL_GATHER),
    stablehlo(&["all_reduce"], ALL_REDUCE),
    stablehlo(&["reduce_scatter"], REDUCE_SCATTER),
    stablehlo(&["all_to_all"], ALL_TO_ALL),
    stablehlo(&["collective_permute"], PERMUTE),
    stablehlo(&["cross-replica-sum"], CROSS_REPLICA_SUM),
    stablehlo(&["async_start"], ASYNC_START),
    stablehlo(&["async_done"], ASYNC_DONE),
];

pub const GROUPS: AttributeDefinition = required("replica_groups", Kind::ReplicaGroups);
/// The attribute `channel_handle`.
pub const CHANNEL: Kind =
    Kind::Of("stablehlo", "channel_handle", "two 64-bit integers 'handle' and 'type'");
pub const GLOBAL_IDS: AttributeDefinition = optional("use_global_device_ids", Kind::Unit);

const ALL_GATHER: Definition = Definition {
    operands: &[many(takes::TENSOR)],
    results: &[many(takes::TENSOR)],
    attributes: &[
        required("all_gather_dim", INDEX),
        GROUPS,
        optional("channel_handle", CHANNEL),
        GLOBAL_IDS,
    ],
    traits: &[Trait::PairwiseElements],
    verify: Some(verify_all_gather),
    ..NOTHING
};
pub const ALL_REDUCE: Definition = Definition {
    operands: &[many(takes::TENSOR)],
    results: &[many(takes::TENSOR)],
    attributes: &[GROUPS, optional("channel_handle", CHANNEL), GLOBAL_IDS],
    regions: Regions::Named(&["computation"]),
    has_implicit_return: true,
    verify: Some(verify_all_reduce),
    infer: Some(all_reduce),
    ..NOTHING
};
const REDUCE_SCATTER: Definition = Definition {
    operands: &[one(takes::TENSOR)],
    results: &[one(takes::TENSOR)],
    attributes: &[
        required("scatter_dimension", INDEX),
        GROUPS,
        optional("channel_handle", CHANNEL),
        GLOBAL_IDS,
    ],
    regions: Regions::Named(&["computation"]),
    verify: Some(verify_reduce_scatter),
    ..NOTHING
};
const ALL_TO_ALL: Definition = Definition {
    operands: &[many(takes::TENSOR)],
    results: &[many(takes::TENSOR)],
    attributes: &[
        required("split_dimension", INDEX),
        required("concat_dimension", INDEX),
        required("split_count", COUNT),
        GROUPS,
        optional("channel_handle", CHANNEL),
    ],
    traits: &[Trait::PairwiseElements],
    infer: Some(all_to_all),
    ..NOTHING
};
const PERMUTE: Definition = Definition {
    operands: &[one(takes::TENSOR)],
    results: &[one(takes::TENSOR)],
    attributes: &[
        required("source_target_pairs", Kind::I64Elements),
        optional("channel_handle", CHANNEL),
    ],
    traits: &[Trait::SameElements],
    verify: Some(|op| check_pairs(op.attributes)),
    infer: Some(like_operands),
    ..NOTHING
};
const CROSS_REPLICA_SUM: Definition = Definition {
    operands: &[one(takes::TENSOR)],
    results: &[one(takes::TENSOR)],
    attributes: &[required("replica_groups", Kind::I64Elements)],
    traits: &[Trait::CompatibleTypes],
    infer: Some(like_operands),
    ..NOTHING
};
const ASYNC_START: Definition = Definition {
    operands: &[many(takes::TENSOR)],
    results: &[one(takes::FUTURE)],
    regions: Regions::Named(&["body"]),
    has_implicit_return: true,
    infer: Some(async_start),
    ..NOTHING
};
const ASYNC_DONE: Definition = Definition {
    operands: &[one(takes::FUTURE)],
    results: &[one(takes::TENSOR)],
    infer: Some(async_done),
    ..NOTHING
};

/// The channel id, 0 if there is none.
fn channel(op: &OpView<'_>) -> i64 {
    let handle = op.attributes.value("channel_handle").and_then(|value| value.field("handle"));
    handle.and_then(AttrValue::as_int).unwrap_or(0)
}

fn has_global_ids(op: &OpView<'_>) -> bool {
    op.attributes.get("use_global_device_ids").is_some()
}

pub fn group_needs(op: &OpView<'_>, is_uniform: bool) -> GroupNeeds {
    GroupNeeds { is_uniform, is_global: has_global_ids(op), size: None }
}

/// The dim in attribute `name`.
fn dim(op: &OpView<'_>, name: &str) -> usize {
    op.attributes.int(name).and_then(|dim| usize::try_from(dim).ok()).unwrap_or(usize::MAX)
}

fn verify_all_gather(op: &OpView<'_>) -> Result<(), Mistake> {
    check_groups(op.attributes, group_needs(op, true))?;
    ensure(!has_global_ids(op) || channel(op) >= 0, || {
        "channel_id cannot be negative when useGlobalDeviceIds is set".to_owned()
    })?;
    let along = dim(op, "all_gather_dim");
    for at in 0..op.operands.len() {
        let (operand, result) = (op.operand(at)?, op.result(at)?);
        ensure(along < operand.rank(), || {
            "all_gather_dim must be a valid index of operand".to_owned()
        })?;
        ensure(operand.shape[along] != Some(0), || {
            "dimension size of operand at 'all_gather_dim' cannot be zero".to_owned()
        })?;
        ensure(result.rank() == operand.rank(), || {
            "operand and result must have the same rank".to_owned()
        })?;
        let mut others = (0..operand.rank()).filter(|&dim| dim != along);
        ensure(others.all(|dim| compatible_sizes(operand.shape[dim], result.shape[dim])), || {
            "operand and result should have the same shape except for the dimension size at \
             'all_gather_dim'"
                .to_owned()
        })?;
        let Some((from, to)) = operand.shape[along].zip(result.shape[along]) else {
            return Ok(());
        };
        ensure(to % from == 0, || {
            format!(
                "result gather dimension has size {to}, expected to be a multiple of operand gather \
                 dimension size {from}"
            )
        })?;
    }
    Ok(())
}

pub fn check_channel(op: &OpView<'_>) -> Result<(), Mistake> {
    let channel = channel(op);
    ensure(!has_global_ids(op) || channel > 0, || {
        format!("channel_id must be positive when useGlobalDeviceIds is set but got: {channel}")
    })
}

/// Checks that the computation reduces elements of `operand`.
pub fn check_computation(op: &OpView<'_>, operand: &Tensor) -> Result<(), Mistake> {
    let init_value = Tensor::scalar(operand.element.clone());
    check_reducer(op.region(0)?, &[operand], &[&init_value], &[])
}

fn verify_all_reduce(op: &OpView<'_>) -> Result<(), Mistake> {
    check_groups(op.attributes, group_needs(op, false))?;
    check_channel(op)?;
    op.all_operands()?.into_iter().try_for_each(|operand| check_computation(op, operand))
}

fn all_reduce(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    reduced(op, &op.all_operands()?)
}

/// The result types of the computation on `operands`.
pub fn reduced(op: &OpView<'_>, operands: &[&Tensor]) -> Result<ResultTypes, Mistake> {
    let element = accumulators(op.region(0)?, operands).into_iter().next();
    let like = |operand: &&Tensor| {
        let element = element.clone().ok_or_else(Mistake::silent)?;
        Ok(operand.with_element(element).into())
    };
    operands.iter().map(like).collect()
}

fn verify_reduce_scatter(op: &OpView<'_>) -> Result<(), Mistake> {
    check_groups(op.attributes, group_needs(op, true))?;
    let (operand, result) = (op.operand(0)?, op.result(0)?);
    check_computation(op, operand)?;
    ensure(operand.rank() == result.rank(), || {
        "operand and result should have same rank".to_owned()
    })?;
    let along = dim(op, "scatter_dimension");
    ensure(along < operand.rank(), || {
        "scatter dim should be less than operand/result rank".to_owned()
    })?;
    check_channel(op)?;
    let Some((from, to)) = operand.shape[along].zip(result.shape[along]) else { return Ok(()) };
    for (size, side) in [(to, "result"), (from, "operand")] {
        ensure(size != 0, || format!("{side} dimension size at scatter_dimension cannot be zero"))?;
    }
    ensure(from % to == 0, || {
        format!(
            "operand scatter dimension has size {from}, expected to be a multiple of result scatter \
             dimension size {to}"
        )
    })?;
    for dim in (0..operand.rank()).filter(|&dim| dim != along) {
        let (from, to) = (operand.shape[dim], result.shape[dim]);
        ensure(compatible_sizes(from, to), || {
            let (from, to) = (sizes(&[from], DYNAMIC), sizes(&[to], DYNAMIC));
            format!("non scatter dimensions should be same for operand ({from}) and result ({to})")
        })?;
    }
    let expected = accumulators(op.region(0)?, &[operand]).into_iter().next();
    let expected = expected.ok_or_else(Mistake::silent)?;
    ensure(result.element == expected, || {
        let got = &result.element;
        format!("result element-type is expected to be '{expected}', but got '{got}'")
    })
}

fn all_to_all(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let count = op.attributes.int("split_count").unwrap_or(1).max(1);
    let needs = GroupNeeds { is_uniform: true, is_global: false, size: Some(count) };
    check_groups(op.attributes, needs)?;
    let (split, concat) = (dim(op, "split_dimension"), dim(op, "concat_dimension"));
    let result = |operand: &Tensor| {
        let rank = operand.rank();
        for (dim, name) in [(split, "split_dimension"), (concat, "concat_dimension")] {
            ensure(dim < rank, || {
                format!("AllToAll {name} {dim} is out-of-bounds for input rank {rank}")
            })?;
        }
        if let Some(size) = operand.shape[split].filter(|size| size % count != 0) {
            return Err(bare(format!(
                "split dimension has size {size}, expected to be a multiple of split_count {count}"
            )));
        }
        let moved = |list: &[Size]| {
            let mut list = Sizes::of(list);
            if !list.is_empty() {
                list[split] = list[split].map(|size| size / count);
                list[concat] = list[concat].map(|size| size.wrapping_mul(count));
            }
            list
        };
        Ok(operand.with_shape(moved(&operand.shape), moved(operand.bounds())).into())
    };
    op.all_operands()?.into_iter().map(result).collect()
}

fn async_start(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    let wrong = |text: String| bare(format!("'stablehlo.async_start' op {text}"));
    let body = op.region(0)?;
    if body.num_ops != 2 {
        let text = "region must contain exactly one operation and a return";
        return Err(wrong(text.to_owned()));
    }
    let is_known = body.ends.as_ref().is_some_and(|[first, _]| {
        ["all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute"]
            .iter()
            .chain(&["reduce_scatter", "slice", "dynamic_slice", "dynamic_update_slice"])
            .any(|name| first.strip_prefix("stablehlo.") == Some(name))
    });
    if !is_known {
        let text = "region must contain a collective or slice operation";
        return Err(wrong(text.to_owned()));
    }
    let (operands, args) = (op.operands.len(), body.args.len());
    if operands != args {
        return Err(wrong(format!(
            "number of operands ({operands}) must match number of region arguments ({args})"
        )));
    }
    for (at, (operand, arg)) in op.operands.iter().zip(&body.args).enumerate() {
        if operand != arg {
            return Err(wrong(format!(
                "operand type '{operand}' at index {at} must match region argument type '{arg}'"
            )));
        }
    }
    let count = body.returned.len();
    if count != 1 {
        return Err(wrong(format!("region must return exactly one value, but got {count}")));
    }
    let types = body.returned.iter().map(|&ty| ty.clone()).collect();
    Ok(ValueType::Future(types).into())
}

fn async_done(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    match op.operands.first().map(|ty| &**ty) {
        Some(ValueType::Future(types)) => match &types[..] {
            [only] => Ok(only.clone().into()),
            _ => Err(bare(format!(
                "'stablehlo.async_done' op future must have exactly one type parameter, but got {}",
                types.len()
            ))),
        },
        _ => Err(bare("'stablehlo.async_done' op operand must be a future type")),
    }
}
