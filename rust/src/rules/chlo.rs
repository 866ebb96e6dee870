//! The rule families of ops of CHLO, and of MHLO, by the ops that XLA legalizes them to.
//!
//! JAX writes some functions as single ops of CHLO. XLA legalizes these before Shardy sees the program;
//! Shardy by itself, on the text that JAX prints, has no rules for them. Whoever wants to know what
//! XLA does asks here.

use super::custom_call::top_k;
use super::pointwise::pointwise;
use super::ragged_dot::ragged_dot;
use super::table::{family, Family};

/// CHLO ops with the `StableHLO` op whose family they have. Ops that are not listed are legalized to ops
/// without rules, or to ops of different families.
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
    family("chlo_top_k", top_k, &["chlo.top_k", "mhlo.topk"]),
    family("mhlo_copy", pointwise, &["mhlo.copy"]),
];

/// The family of the op that the CHLO op called `name` is legalized to.
pub fn family_of(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.ops.contains(&name))
}
