//! The rule families of CHLO and MHLO ops: those of the ops that XLA legalizes them to.
//!
//! JAX lowers some functions to single CHLO ops. XLA legalizes these before it runs Shardy; Shardy
//! itself, on the text that JAX prints, has no rules for them. These families give XLA's results.

use super::custom_call::top_k;
use super::pointwise::pointwise;
use super::ragged_dot::ragged_dot;
use super::reduce::scan;
use super::table::{family, Family};

/// Families of CHLO ops. Ops that are not listed are legalized to ops without rules, or to ops of
/// several families.
pub(super) static FAMILIES: &[Family] = &[
    family(
        "chlo_pointwise",
        pointwise,
        &[
            "chlo._asin_acos_kernel",
            "chlo.acos",
            "chlo.acosh",
            "chlo.asin",
            "chlo.asinh",
            "chlo.atan",
            "chlo.atanh",
            "chlo.bessel_i1e",
            "chlo.conj",
            "chlo.cosh",
            "chlo.digamma",
            "chlo.erf",
            "chlo.erf_inv",
            "chlo.erfc",
            "chlo.is_inf",
            "chlo.is_neg_inf",
            "chlo.is_pos_inf",
            "chlo.lgamma",
            "chlo.mulhi",
            "chlo.next_after",
            "chlo.polygamma",
            "chlo.sinh",
            "chlo.square",
            "chlo.tan",
            "chlo.zeta",
        ],
    ),
    family("chlo_ragged_dot", ragged_dot, &["chlo.ragged_dot", "mhlo.ragged_dot"]),
    family("chlo_scan", scan, &["chlo.scan", "mhlo.scan"]),
    family("chlo_top_k", top_k, &["chlo.top_k", "mhlo.topk"]),
    family("mhlo_copy", pointwise, &["mhlo.copy"]),
];

/// The family of the op that the CHLO op called `name` is legalized to.
pub fn family_of(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.ops.contains(&name))
}
