//! Definitions of tokens and of the ops that they order: send, receive, infeed and outfeed.

use super::collective::CHANNEL;
use crate::mlir::AttrValue;
use crate::stablehlo::attribute_kinds::Kind;
use crate::stablehlo::constraint as takes;
use crate::stablehlo::definition::{
    many, one, optional, required, stablehlo, AttributeDefinition, Definition, Family, NOTHING,
};
use crate::stablehlo::mistake::{bare, ensure, Mistake};
use crate::stablehlo::result_types::ResultTypes;
use crate::stablehlo::types::ValueType;
use crate::stablehlo::view::OpView;

pub const FAMILIES: &[Family] = &[
    stablehlo(&["create_token"], CREATE_TOKEN),
    stablehlo(&["after_all"], AFTER_ALL),
    stablehlo(&["infeed"], INFEED),
    stablehlo(&["outfeed"], OUTFEED),
    stablehlo(&["send"], SEND),
    stablehlo(&["recv"], RECV),
];

const CREATE_TOKEN: Definition =
    Definition { results: &[one(takes::TOKEN)], infer: Some(token), ..NOTHING };
const AFTER_ALL: Definition = Definition { operands: &[many(takes::TOKEN)], ..CREATE_TOKEN };
const INFEED: Definition = Definition {
    operands: &[one(takes::TOKEN)],
    results: &[many(takes::RECEIVED)],
    attributes: &[optional("infeed_config", Kind::Str), optional("layout", Kind::Array)],
    verify: Some(verify_infeed),
    ..NOTHING
};
const OUTFEED: Definition = Definition {
    operands: &[many(takes::PER_AXIS_TENSOR), one(takes::TOKEN)],
    results: &[one(takes::TOKEN)],
    attributes: &[optional("outfeed_config", Kind::Str)],
    infer: Some(token),
    ..NOTHING
};
const PAIRS: AttributeDefinition = optional("source_target_pairs", Kind::I64Elements);
const SEND: Definition = Definition {
    operands: &[many(takes::PER_AXIS_TENSOR), one(takes::TOKEN)],
    results: &[one(takes::TOKEN)],
    attributes: &[
        required("channel_handle", CHANNEL),
        optional("is_host_transfer", Kind::Bool),
        PAIRS,
    ],
    infer: Some(|op| {
        check_channel(op, 2, "DEVICE_TO_HOST")?;
        token(op)
    }),
    ..NOTHING
};
const RECV: Definition = Definition {
    operands: &[one(takes::TOKEN)],
    results: &[many(takes::RECEIVED)],
    attributes: &[
        required("channel_handle", CHANNEL),
        optional("is_host_transfer", Kind::Bool),
        PAIRS,
    ],
    verify: Some(verify_recv),
    ..NOTHING
};

#[allow(clippy::unnecessary_wraps)] // It is an `Infer`.
fn token(_: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    Ok(ValueType::Token.into())
}

/// Checks the type of the channel: device to device, or `host` for transfers with the host.
fn check_channel(op: &OpView<'_>, host: i64, host_name: &str) -> Result<(), Mistake> {
    let handle = op.attributes.value("channel_handle").and_then(|handle| handle.field("type"));
    let ty = handle.and_then(AttrValue::as_int).unwrap_or(0);
    let is_host = op.attributes.is_true("is_host_transfer");
    let (needs, name) = if is_host { (host, host_name) } else { (1, "DEVICE_TO_DEVICE") };
    ensure(ty == needs, || {
        format!("channel_type should be {name} when is_host_transfer is {is_host}")
    })
}

fn verify_recv(op: &OpView<'_>) -> Result<(), Mistake> {
    check_channel(op, 3, "HOST_TO_DEVICE")?;
    check_received(
        op,
        "everything but the last element of result types is expected to be of tensor type",
    )
}

/// Checks that the results are tensors followed by a token.
fn check_received(op: &OpView<'_>, says: &str) -> Result<(), Mistake> {
    let Some((last, others)) = op.results.split_last() else {
        return Err(bare("result is expected to be at least of size 1, but got 0"));
    };
    if let Some(other) = others.iter().find(|ty| !ty.is_tensor()) {
        return Err(bare(format!("{says}, but got '{other}'")));
    }
    ensure(**last == ValueType::Token, || {
        format!("last element of result types is expected to be of token type, but got '{last}'")
    })
}

fn verify_infeed(op: &OpView<'_>) -> Result<(), Mistake> {
    let says =
        "all elements of result types, except the last element, are expected to be of tensor type";
    check_received(op, says)?;
    let Some(layout) = op.attributes.value("layout").and_then(AttrValue::items) else {
        return Ok(());
    };
    let (needs, has) = (op.results.len() - 1, layout.len());
    ensure(needs == has, || {
        format!(
            "layout-attribute size must be {needs} (which is the number of op-results - 1 (for token \
             result)), but got {has}"
        )
    })?;
    for child in layout {
        let AttrValue::Array(items) = child else {
            return Err(bare(
                "layout-attribute expected to have elements of type array, but got another attribute",
            ));
        };
        ensure(items.iter().all(|item| item.as_int().is_some()), || {
            "layout-attribute's leaf elements are expected to be of type integer, but got another \
             attribute"
                .to_owned()
        })?;
    }
    Ok(())
}
