//! Ops of CHLO, by what XLA expands them to in single precision.

use super::{family, windows, Family, Measure, Movement, FLOP, FREE, TRANSCENDENTAL};

const P: Movement = Movement::Pointwise;

/// The families of CHLO ops: a row for each number of flops and transcendentals.
pub(super) static FAMILIES: &[Family] = &[
    family("CHLO constants", FREE, Movement::Expand, &["chlo.constant", "chlo.constant_like"]),
    family(
        "CHLO elementwise",
        FLOP,
        P,
        &[
            "chlo.broadcast_add",
            "chlo.broadcast_and",
            "chlo.broadcast_compare",
            "chlo.broadcast_complex",
            "chlo.broadcast_divide",
            "chlo.broadcast_maximum",
            "chlo.broadcast_minimum",
            "chlo.broadcast_multiply",
            "chlo.broadcast_or",
            "chlo.broadcast_remainder",
            "chlo.broadcast_select",
            "chlo.broadcast_shift_left",
            "chlo.broadcast_shift_right_arithmetic",
            "chlo.broadcast_shift_right_logical",
            "chlo.broadcast_subtract",
            "chlo.broadcast_xor",
            "chlo.square",
            "chlo.mulhi",
        ],
    ),
    family("scan", Measure::Bodies(windows::scan_of_slices), Movement::Opaque, &["chlo.scan"]),
    family(
        "CHLO transcendental",
        TRANSCENDENTAL,
        P,
        &["chlo.broadcast_atan2", "chlo.broadcast_power", "chlo.atan", "chlo.erf", "chlo.tan"],
    ),
    family("conj", Measure::PerElement(4, 0), P, &["chlo.conj"]),
    family(
        "infinities",
        Measure::PerElement(2, 0),
        P,
        &["chlo.is_inf", "chlo.is_neg_inf", "chlo.is_pos_inf"],
    ),
    family(
        "next_after",
        Measure::PerElement(24, 0),
        P,
        &["chlo.next_after", "chlo.broadcast_next_after"],
    ),
    family(
        "inverse sine and cosine",
        Measure::PerElement(5, 2),
        P,
        &["chlo.acos", "chlo.asin", "chlo._asin_acos_kernel"],
    ),
    family("hyperbolic", Measure::PerElement(10, 3), P, &["chlo.cosh", "chlo.sinh"]),
    family(
        "inverse hyperbolic",
        Measure::PerElement(11, 3),
        P,
        &["chlo.acosh", "chlo.asinh", "chlo.atanh"],
    ),
    family("erf_inv", Measure::PerElement(37, 2), P, &["chlo.erf_inv"]),
    family("erfc", Measure::PerElement(62, 1), P, &["chlo.erfc"]),
    family("lgamma", Measure::PerElement(53, 4), P, &["chlo.lgamma"]),
    family("digamma", Measure::PerElement(73, 3), P, &["chlo.digamma"]),
    family("bessel", Measure::PerElement(83, 1), P, &["chlo.bessel_i1e"]),
    family("zeta", Measure::PerElement(120, 11), P, &["chlo.zeta", "chlo.broadcast_zeta"]),
    family(
        "polygamma",
        Measure::PerElement(251, 19),
        P,
        &["chlo.polygamma", "chlo.broadcast_polygamma"],
    ),
];
