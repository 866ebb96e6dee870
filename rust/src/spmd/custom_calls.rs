//! Custom calls that can be computed on shards: by the name of the target, along which dims.
//!
//! Of others nothing is known, and they are refused: a target may do anything with the tensors it gets.

use crate::index::{FactorId, Id, SignatureId};
use crate::rule::{OpShardingRule, TensorMapping};
use rustc_hash::FxHashMap;

/// What a user says of a custom call: shards are computed by themselves along pass-through factors of the rule,
/// along reductions devices are left with terms that are added, and along others tensors are whole.
#[derive(Clone, Debug)]
pub struct ShardRule {
    /// The factors.
    pub rule: OpShardingRule,
    /// The target that computes shards; none if it is that of the whole.
    pub target: Option<String>,
    /// Attributes with which it does, name and text, in the place of those of the same name.
    pub attributes: Vec<(String, String)>,
}

/// What users say of the custom calls of a program, by signature.
pub type ShardRules = FxHashMap<SignatureId, ShardRule>;

/// How a custom call that is known is computed on shards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Known {
    /// As its sharding rule says: along factors that pass through.
    ByRule,
    /// Along all dims but the last `inner` of operand `operand`, which all tensors begin with.
    Batched { operand: usize, inner: usize },
}

/// What is known of custom calls of `target`.
pub(super) fn known(target: &str) -> Option<Known> {
    let batched = |inner| Some(Known::Batched { operand: 0, inner });
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
        | "xla.megascale.provide_metadata" => Some(Known::ByRule),
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

/// What JAX calls libraries of linear algebra for.
fn decomposition(target: &str) -> Option<Known> {
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
        | "sytrd" | "trsm" | "ungqr" => Some(Known::Batched { operand: 0, inner: 2 }),
        // Three diagonals come before the right-hand sides.
        "gtsv" | "gtsv2" => Some(Known::Batched { operand: 3, inner: 2 }),
        _ => None,
    }
}

/// The rule of a call that works along all but the last `inner` dims of `shapes[operand]` by itself: tensors begin
/// with these dims, or are scalars. None if one of the tensors, `num_operands` operands and the results, does neither.
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
        let matrices = Some(Known::Batched { operand: 0, inner: 2 });
        assert_eq!(known("lapack_sgetrf_ffi"), matrices);
        assert_eq!(known("cusolver_getrf_ffi"), matrices);
        assert_eq!(known("lapack_zgtsv_ffi"), Some(Known::Batched { operand: 3, inner: 2 }));
        assert_eq!(known("lapack_sgetrf_of_mine"), None);
        assert_eq!(known("xla_ffi_python_cpu_callback"), None);
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
