//! Custom calls that JAX emits, by target.

use super::{windows, Work};
use crate::rules::SignatureView;
use crate::work::ops::linalg::Matrices;

/// The target of a custom call.
pub fn call_target<'v>(view: &'v SignatureView<'_>) -> Option<&'v str> {
    view.attribute("call_target_name")?.as_str()
}

/// Targets that compute nothing.
const FREE: &[&str] = &[
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "LayoutConstraint",
    "annotate_device_placement",
    "MoveToHost",
    "MoveToDevice",
    "AllocateBuffer",
    "Pin",
    "Unpin",
    "AssumeGatherIndicesInBound",
    "xla.sdy.FuncResultSharding",
];

/// The LAPACK routine that `target` computes, without library and element type: `lapack_sgeqrf_ffi` is `geqrf`.
fn routine(target: &str) -> &str {
    let named = match target {
        "Qr" => "geqrf",
        "Eigh" => "syevd",
        "LuDecomposition" => "getrf",
        "Cholesky" => "potrf",
        "ProductOfElementaryHouseholderReflectors" => "orgqr",
        "TopK" | "mhlo.topk" | "ApproxTopK" | "PartialReduce" | "stablehlo.dynamic_top_k" => "topk",
        _ => "",
    };
    if !named.is_empty() {
        return named;
    }
    let name = target.strip_suffix("_ffi").unwrap_or(target);
    let name = name.strip_suffix("_batched").unwrap_or(name);
    if let Some(rest) = name.strip_prefix("lapack_").or_else(|| name.strip_prefix("blas_")) {
        // The letter of the element type.
        return rest.get(1..).unwrap_or(rest);
    }
    let vendors = [
        "cusolver_",
        "hipsolver_",
        "cublas_",
        "hipblas_",
        "cusparse_",
        "hipsparse_",
        "cu_",
        "hip_",
    ];
    vendors.iter().find_map(|vendor| name.strip_prefix(vendor)).unwrap_or("")
}

/// The work of a custom call; `None` where its target is not known.
pub(super) fn work(view: &SignatureView<'_>) -> Option<Work> {
    let target = call_target(view)?;
    if FREE.contains(&target) {
        return Some(Work::default());
    }
    let matrices = || Matrices::of(view.operand(0)?);
    let cubic = |factor: f64| Some(matrices()?.flops(|n, _| factor * n * n * n));
    match routine(target) {
        "potrf" => cubic(1.0 / 3.0),
        "getrf" => Some(matrices()?.flops(|m, n| m * n * n - n * n * n / 3.0)),
        "geqrf" | "geqp3" => {
            Some(matrices()?.flops(|m, n| 2.0 * m * n * n - 2.0 / 3.0 * n * n * n))
        }
        // The product of k reflectors.
        "orgqr" | "ungqr" => {
            let k = *view.operand(1)?.last()? as f64;
            let corner = move |m: f64, n: f64| {
                4.0 * m * n * k - 2.0 * (m + n) * k * k + 4.0 / 3.0 * k * k * k
            };
            Some(matrices()?.flops(corner))
        }
        "gesdd" | "gesvd" | "gesvdj" | "gesvdp" => {
            Some(matrices()?.flops(|m, n| 4.0 * m * m * n + 22.0 * n * n * n))
        }
        "syevd" | "heevd" | "syevj" | "syevdx" => cubic(9.0),
        "geev" | "gees" => cubic(25.0),
        "gehrd" => cubic(10.0 / 3.0),
        "sytrd" | "hetrd" => cubic(4.0 / 3.0),
        "trsm" => crate::work::ops::linalg::triangular_solve(view),
        "gtsv" | "gtsv2" => {
            let size = view.operand(view.num_operands().checked_sub(1)?)?;
            Some(Work::of_flops(crate::work::ops::contract::product(size).saturating_mul(8)))
        }
        "lu_pivots_to_permutation" => Some(Work::default()),
        // 20 rounds of an addition, a rotation and an exclusive or on pairs of words.
        "threefry2x32" => Some(Work::of_flops(
            crate::work::ops::contract::product(view.result(0)?).saturating_mul(100),
        )),
        "topk" => windows::top_k(view),
        _ => None,
    }
}
