//! Rules of slices, pads, concatenates, dynamic slices and dynamic update slices.

use super::builder::{FactorKind, RuleBuilder};
use super::view::SignatureView;
use crate::op_sharding_rule::OpShardingRule;
use crate::shardy::Change;

/// `pad`: as [`resize`]; since [`Change::MovedPads`], all padded dims have permutation factors.
pub fn pad(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    if !view.has(Change::MovedPads) {
        return resize(view);
    }
    let (shape, result_shape) = (view.operand(0)?, view.result(0)?);
    let padding = ["edge_padding_low", "edge_padding_high", "interior_padding"];
    let padding = padding.map(|name| view.attribute(name)?.as_ints());
    let is_padded = |dim: usize| {
        let amounts = || padding.iter().flatten().filter_map(|amounts| amounts.get(dim));
        amounts().any(|&amount| amount != 0)
    };
    let mut builder = RuleBuilder::new(view);
    for (dim, (&size, &result_size)) in shape.iter().zip(result_shape).enumerate() {
        let is_resized = size != result_size;
        let kind = if is_resized || is_padded(dim) {
            FactorKind::Permutation
        } else {
            FactorKind::PassThrough
        };
        builder.everywhere(dim, size, kind).blocked_if(is_resized && view.conservative);
    }
    builder.build()
}

/// `slice`: dims that change size have permutation factors.
pub fn resize(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let (shape, result_shape) = (view.operand(0)?, view.result(0)?);
    RuleBuilder::new(view)
        .pointwise_or(shape, result_shape, FactorKind::Permutation, view.conservative)
        .build()
}

/// `dynamic_slice`: dims that change size need replication and are blocked.
pub fn dynamic_slice(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let (shape, result_shape) = (view.operand(0)?, view.result(0)?);
    RuleBuilder::with_scalars_after(1, view)
        .pointwise_or(shape, result_shape, FactorKind::NeedReplication, true)
        .build()
}

/// `dynamic_update_slice`: in dims where the update is smaller, operand and result may stay
/// sharded, and so may the update. Before [`Change::PermutedUpdates`], the update is replicated
/// there unless all start indices are constants.
pub fn dynamic_update_slice(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let (shape, update_shape) = (view.operand(0)?, view.operand(1)?);
    if shape.len() != update_shape.len() {
        return None;
    }
    let has_constant_starts = view.surroundings;
    let (kind, update_kind) = if view.has(Change::PermutedUpdates) {
        (FactorKind::Permutation, FactorKind::Permutation)
    } else if has_constant_starts {
        (FactorKind::PassThrough, FactorKind::PassThrough)
    } else {
        (FactorKind::PassThrough, FactorKind::NeedReplication)
    };
    let mut builder = RuleBuilder::with_scalars_after(2, view);
    for (dim, (&size, &update_size)) in shape.iter().zip(update_shape).enumerate() {
        if size == update_size {
            builder.everywhere(dim, size, FactorKind::PassThrough);
            continue;
        }
        builder.factor(&[Some(dim), None], &[Some(dim)], size, kind);
        builder.factor(&[None, Some(dim)], &[None], update_size, update_kind);
    }
    builder.build()
}

/// `concatenate`: the concatenated dim needs replication, or has a permutation factor if the
/// operands are slices.
pub fn concatenate(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let concat_dim = view.dim("dimension")?;
    let are_slices = view.surroundings;
    let mut builder = RuleBuilder::new(view);
    for (dim, &size) in view.result(0)?.iter().enumerate() {
        if dim != concat_dim {
            builder.everywhere(dim, size, FactorKind::PassThrough);
        } else if !view.conservative {
            let kind =
                if are_slices { FactorKind::Permutation } else { FactorKind::NeedReplication };
            builder.everywhere(dim, size, kind);
        }
    }
    builder.build()
}
