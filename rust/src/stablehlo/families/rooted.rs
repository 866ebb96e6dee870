//! Definitions of collectives with a root in each group: the device that the data comes from or
//! goes to.
//!
//! The root is the first device of the group, or the last operand gives the root for each of the
//! other operands.

use super::collective::{
    check_channel, check_computation, group_needs, reduced, ALL_REDUCE, CHANNEL, GLOBAL_IDS, GROUPS,
};
use super::elementwise::like_operands;
use super::replica_groups::{check_broadcast_groups, check_groups};
use crate::shardy::Change;
use crate::stablehlo::attribute_kinds::Kind;
use crate::stablehlo::constraint as takes;
use crate::stablehlo::definition::{
    many, one, optional, stablehlo, AttributeDefinition, Definition, Family, NOTHING,
};
use crate::stablehlo::mistake::{bare, ensure, Mistake};
use crate::stablehlo::result_types::ResultTypes;
use crate::stablehlo::traits::Trait;
use crate::stablehlo::types::{Tensor, DYNAMIC};
use crate::stablehlo::view::OpView;

pub const FAMILIES: &[Family] = &[
    stablehlo(&["collective_broadcast"], BROADCAST)
        .since(Change::CollectiveRoots, Some(&OLDER_BROADCAST)),
    stablehlo(&["collective_reduce"], REDUCE).since(Change::CollectiveRoots, None),
];

const ROOT: AttributeDefinition = optional("has_dynamic_root", Kind::Unit);

const BROADCAST: Definition = Definition {
    operands: &[many(takes::TENSOR)],
    results: &[many(takes::TENSOR)],
    attributes: &[GROUPS, optional("channel_handle", CHANNEL), ROOT],
    verify: Some(verify_broadcast),
    infer: Some(broadcast),
    ..NOTHING
};
static OLDER_BROADCAST: Definition = Definition {
    operands: &[one(takes::TENSOR)],
    results: &[one(takes::TENSOR)],
    attributes: &[GROUPS, optional("channel_handle", CHANNEL)],
    traits: &[Trait::SameElements],
    verify: Some(|op| check_broadcast_groups(op.attributes)),
    infer: Some(like_operands),
    ..NOTHING
};
const REDUCE: Definition = Definition {
    attributes: &[GROUPS, optional("channel_handle", CHANNEL), GLOBAL_IDS, ROOT],
    verify: Some(verify_reduce),
    infer: Some(reduce),
    ..ALL_REDUCE
};

fn has_root_operand(op: &OpView<'_>) -> bool {
    op.attributes.get(ROOT.name).is_some()
}

/// The number of data operands.
fn num_data(op: &OpView<'_>) -> usize {
    op.operands.len().saturating_sub(usize::from(has_root_operand(op)))
}

/// The types of the data operands.
fn data<'a>(op: &OpView<'a>) -> Result<Vec<&'a Tensor>, Mistake> {
    op.operands(0..num_data(op))
}

/// Checks the number of operands, and the operand with the roots.
fn check_roots(op: &OpView<'_>, name: &str) -> Result<(), Mistake> {
    if !has_root_operand(op) {
        return ensure(!op.operands.is_empty(), || {
            format!("{name} requires at least one data operand")
        });
    }
    let (count, name) = (num_data(op), format!("{name} with has_dynamic_root=true"));
    ensure(count > 0, || format!("{name} requires at least two operands (data + root)"))?;
    let roots = op.operand(count)?;
    let element = &roots.element;
    let is_int = element.is_integer() && element.bits() == Some(32);
    ensure(roots.rank() == 1 && (is_int || element.is_foreign()), || {
        let ty = op.operands[count];
        format!("last operand of {name} must be a rank-1 i32 tensor, but got '{ty}'")
    })?;
    let size = roots.shape[0];
    if size.is_some_and(|size| usize::try_from(size) == Ok(count)) {
        return Ok(());
    }
    let size = size.map_or_else(|| DYNAMIC.to_owned(), |size| size.to_string());
    Err(bare(format!(
        "last operand of {name} must have the same number of elements as data operands ({count}), \
         but got {size}"
    )))
}

fn verify_broadcast(op: &OpView<'_>) -> Result<(), Mistake> {
    check_broadcast_groups(op.attributes)?;
    check_roots(op, "collective_broadcast")
}

fn broadcast(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    Ok(data(op)?.into_iter().cloned().map(Into::into).collect())
}

fn verify_reduce(op: &OpView<'_>) -> Result<(), Mistake> {
    check_groups(op.attributes, group_needs(op, false))?;
    check_channel(op)?;
    check_roots(op, "collective_reduce")?;
    data(op)?.into_iter().try_for_each(|operand| check_computation(op, operand))
}

fn reduce(op: &OpView<'_>) -> Result<ResultTypes, Mistake> {
    reduced(op, &data(op)?)
}
