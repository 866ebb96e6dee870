//! Rules of custom calls, by the name of their target.

use super::builder::{FactorKind, RuleBuilder};
use super::linalg::{eigh, householder_product, qr};
use super::pointwise::pointwise;
use super::view::SignatureView;
use crate::op_sharding_rule::OpShardingRule;

/// `custom_call`: the rule of its target, `None` if the target has none.
pub fn custom_call(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    match view.attribute("call_target_name")?.as_str()? {
        "annotate_device_placement"
        | "Cholesky"
        | "CompactWyHelper"
        | "InspectSharding"
        | "InvertDiagBlocksLowerTriangular"
        | "InvertDiagBlocksUpperTriangular"
        | "LayoutConstraint"
        | "mhlo.erf"
        | "MoveToDevice"
        | "MoveToHost"
        | "X64SplitHigh"
        | "X64SplitLow"
        | "xla.megascale.provide_metadata"
        | "_SPMDInternalOp_MultiPad"
        | "_SPMDInternalOp_RotateRight"
        | "_SPMDInternalOp_MultiRotate"
        | "_SPMDInternalOp_MultiSlice"
        | "_SPMDInternalOp_Wrap" => pointwise(view),
        "Eigh" => eigh(view),
        "Qr" | "QrDecompositionBlock" => qr(view),
        "ProductOfElementaryHouseholderReflectors" => householder_product(view),
        "mhlo.topk" => top_k(view),
        "ApproxTopK" | "PartialReduce" => approx_top_k(view),
        "X64Combine" => x64_combine(view),
        _ => None,
    }
}

/// Top-k: the dim that is reduced to the k largest elements needs replication, and is blocked.
pub(super) fn top_k(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let (shape, result_shape) = (view.operand(0)?, view.result(0)?);
    RuleBuilder::new(view)
        .pointwise_or(shape, result_shape, FactorKind::NeedReplication, true)
        .build()
}

/// Approximate top-k of values, their indices and two scalars: operands may stay sharded along the
/// reduced dim.
fn approx_top_k(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let (shape, result_shape) = (view.operand(0)?, view.result(0)?);
    if shape.len() != result_shape.len() {
        return None;
    }
    let mut builder = RuleBuilder::new(view);
    for (index, (&size, &result_size)) in shape.iter().zip(result_shape).enumerate() {
        let dim = Some(index);
        if size == result_size {
            builder.everywhere(index, size, FactorKind::PassThrough);
            continue;
        }
        builder
            .factor(&[dim, dim, None, None], &[None; 2], size, FactorKind::PassThrough)
            .factor(&[None; 4], &[dim; 2], result_size, FactorKind::NeedReplication)
            .blocked_if(true);
    }
    builder.build()
}

/// `X64Combine` and similar calls, which split or join the halves of 64-bit values: pointwise, but
/// blocked if the result is the state of a random bit generator, which needs replication.
fn x64_combine(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let feeds_random_bits = view.surroundings;
    if !feeds_random_bits {
        return pointwise(view);
    }
    let size = *view.result(0)?.first()?;
    RuleBuilder::new(view).everywhere(0, size, FactorKind::NeedReplication).blocked_if(true).build()
}
