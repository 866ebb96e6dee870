//! Custom calls that can be computed on shards: their targets, and the dims along which they can.
//!
//! Others are refused, since a target may compute anything.

use crate::index::{FactorId, Id, SignatureId};
use crate::op_sharding_rule::{OpShardingRule, TensorMapping};
use rustc_hash::FxHashMap;

/// A user's partition rule of a custom call: along pass-through factors shards are computed independently, along
/// reduction factors devices compute terms that are added, and along others tensors are replicated.
#[derive(Clone, Debug)]
pub struct ShardRule {
    /// The factors.
    pub rule: OpShardingRule,
    /// The target to call on shards; `None` for the target of the source program.
    pub target: Option<String>,
    /// Attributes of the call on shards, name and text, which replace those of the same name.
    pub attributes: Vec<(String, String)>,
}

/// The users' partition rules of the custom calls of a program, by signature.
pub type ShardRules = FxHashMap<SignatureId, ShardRule>;

/// How a call of a known target is computed on shards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ShardMethod {
    /// By its sharding rule: along pass-through factors.
    OpWithRule,
    /// Along the batch dims: all but the last `inner` dims of operand `operand`; all tensors begin with these dims.
    Batched { operand: usize, inner: usize },
}

/// How custom calls of `target` are computed on shards, if it is a known target.
pub(super) fn method_of(target: &str) -> Option<ShardMethod> {
    let batched = |inner| Some(ShardMethod::Batched { operand: 0, inner });
    match target {
        "annotate_device_placement"
        | "ApproxTopK"
        | "InspectSharding"
        | "LayoutConstraint"
        | "mhlo.erf"
        | "mhlo.topk"
        | "MoveToDevice"
        | "MoveToHost"
        | "PartialReduce"
        | "X64Combine"
        | "X64SplitHigh"
        | "X64SplitLow"
        | "xla.megascale.provide_metadata" => Some(ShardMethod::OpWithRule),
        "Cholesky"
        | "CompactWyHelper"
        | "Eigh"
        | "InvertDiagBlocksLowerTriangular"
        | "InvertDiagBlocksUpperTriangular"
        | "LuDecomposition"
        | "ProductOfElementaryHouseholderReflectors"
        | "Qr"
        | "QrDecompositionBlock" => batched(2),
        "TopK" | "cu_lu_pivots_to_permutation" | "hip_lu_pivots_to_permutation" => batched(1),
        "cu_threefry2x32_ffi" | "hip_threefry2x32_ffi" => batched(0),
        _ => decomposition(target),
    }
}

/// Targets of linear algebra libraries that JAX calls.
fn decomposition(target: &str) -> Option<ShardMethod> {
    let name = target.strip_suffix("_ffi").unwrap_or(target);
    let routine = if let Some(typed) = name.strip_prefix("lapack_") {
        typed.strip_prefix(['s', 'd', 'c', 'z'])?
    } else {
        let libraries = ["cusolver_", "hipsolver_", "cusparse_", "hipsparse_"];
        let hybrid = ["cuhybrid_", "hiphybrid_"];
        libraries.iter().chain(&hybrid).find_map(|library| name.strip_prefix(library))?
    };
    match routine {
        "eig_comp" | "eig_real" | "gees" | "geev" | "gehrd" | "geqp3" | "geqrf" | "gesdd"
        | "gesvd" | "gesvdj" | "getrf" | "heevd" | "hetrd" | "orgqr" | "potrf" | "syevd"
        | "sytrd" | "trsm" | "ungqr" => Some(ShardMethod::Batched { operand: 0, inner: 2 }),
        // Three diagonals come before the right-hand sides.
        "gtsv" | "gtsv2" => Some(ShardMethod::Batched { operand: 3, inner: 2 }),
        _ => None,
    }
}

/// The rule of a call that is batched along all but the last `inner` dims of `shapes[operand]`: each tensor begins with these dims,
/// or is a scalar; `None` otherwise. `shapes` are those of `num_operands` operands and the results.
pub(super) fn batched(
    shapes: &[Vec<i64>],
    num_operands: usize,
    operand: usize,
    inner: usize,
) -> Option<OpShardingRule> {
    let reference = shapes.get(operand)?;
    let batch = &reference[..reference.len().checked_sub(inner)?];
    let mut rule = OpShardingRule { factor_sizes: batch.to_vec(), ..OpShardingRule::default() };
    for (index, shape) in shapes.iter().enumerate() {
        let is_batched = shape.starts_with(batch);
        if !is_batched && !shape.is_empty() {
            return None;
        }
        let shared = if is_batched { batch.len() } else { 0 };
        let mut dims: Vec<Vec<FactorId>> =
            (0..shared).map(|dim| vec![FactorId::from_index(dim)]).collect();
        for &size in &shape[shared..] {
            let factor = FactorId::from_index(rule.factor_sizes.len());
            rule.factor_sizes.push(size);
            rule.need_replication.push(factor);
            dims.push(vec![factor]);
        }
        let tensors = if index < num_operands { &mut rule.operands } else { &mut rule.results };
        tensors.push(TensorMapping { dims });
    }
    Some(rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decompositions_are_batched() {
        let matrices = Some(ShardMethod::Batched { operand: 0, inner: 2 });
        assert_eq!(method_of("lapack_sgetrf_ffi"), matrices);
        assert_eq!(method_of("cusolver_getrf_ffi"), matrices);
        assert_eq!(
            method_of("lapack_zgtsv_ffi"),
            Some(ShardMethod::Batched { operand: 3, inner: 2 })
        );
        assert_eq!(method_of("lapack_sgetrf_of_mine"), None);
        assert_eq!(method_of("xla_ffi_python_cpu_callback"), None);
    }

    #[test]
    fn all_tensors_begin_with_the_batch() {
        let shapes = |info: Vec<i64>| vec![vec![4, 5, 5], vec![4, 5, 5], vec![4, 5], info];
        let rule = batched(&shapes(vec![4]), 1, 0, 2).unwrap();
        assert_eq!(rule.factor_sizes, [4, 5, 5, 5, 5, 5]);
        assert_eq!(rule.need_replication.len(), 5);
        assert!(rule.tensors().all(|tensor| tensor.dims[0] == [FactorId::from_index(0)]));
        assert!(batched(&shapes(vec![]), 1, 0, 2).unwrap().results[2].dims.is_empty());
        assert!(batched(&shapes(vec![3]), 1, 0, 2).is_none());
        assert!(batched(&[vec![4]], 1, 0, 2).is_none());
    }
}
