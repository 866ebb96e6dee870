//! The table of rule families and their ops.
//!
//! To give an op a rule, add its name to the row of its family, or write a function from a
//! [`SignatureView`] to a rule and add a row. Ops without a row have no rule: shardings do not
//! propagate through them, except through data-flow ops, which have edges instead.
//!
//! Source: Shardy's op sharding rule registry.

use super::view::SignatureView;
use super::{
    collectives, contract, conv, custom_call, gather_scatter, linalg, pointwise, reduce, reshape,
    slices, surroundings,
};
use crate::index::OpId;
use crate::ir::Program;
use crate::op_sharding_rule::OpShardingRule;
use rustc_hash::FxHashMap;
use std::sync::OnceLock;

/// Computes the rule of an op; `None` if it has none.
pub type BuildRule = fn(&SignatureView<'_>) -> Option<OpShardingRule>;

/// Ops whose rules are made in the same way.
#[derive(Debug)]
pub struct Family {
    /// The name of the family.
    pub name: &'static str,
    /// The ops.
    pub ops: &'static [&'static str],
    /// Computes a rule.
    pub build: BuildRule,
    /// The condition on surrounding ops that the rule depends on, if any.
    pub surroundings: Option<fn(&Program, OpId) -> bool>,
}

/// A row of ops whose rules depend only on their signatures.
pub(super) const fn family(
    name: &'static str,
    build: BuildRule,
    ops: &'static [&'static str],
) -> Family {
    Family { name, ops, build, surroundings: None }
}

impl Family {
    const fn around(mut self, surroundings: fn(&Program, OpId) -> bool) -> Self {
        self.surroundings = Some(surroundings);
        self
    }
    /// The family of the op called `name`.
    pub fn of(name: &str) -> Option<&'static Self> {
        static BY_NAME: OnceLock<FxHashMap<&'static str, &'static Family>> = OnceLock::new();
        let by_name = BY_NAME.get_or_init(|| {
            let rows = FAMILIES.iter().flat_map(|row| row.ops.iter().map(move |&op| (op, row)));
            rows.collect()
        });
        by_name.get(name).copied()
    }
}

/// All families.
pub static FAMILIES: &[Family] = &[
    family(
        "pointwise",
        pointwise::pointwise,
        &[
            "sdy.sharding_constraint",
            "stablehlo.abs",
            "stablehlo.add",
            "stablehlo.all_reduce",
            "stablehlo.and",
            "stablehlo.atan2",
            "stablehlo.cbrt",
            "stablehlo.ceil",
            "stablehlo.collective_broadcast",
            "stablehlo.collective_permute",
            "stablehlo.compare",
            "stablehlo.complex",
            "stablehlo.convert",
            "stablehlo.cosine",
            "stablehlo.count_leading_zeros",
            "stablehlo.cross-replica-sum",
            "stablehlo.divide",
            "stablehlo.exponential",
            "stablehlo.exponential_minus_one",
            "stablehlo.floor",
            "stablehlo.imag",
            "stablehlo.is_finite",
            "stablehlo.log",
            "stablehlo.log_plus_one",
            "stablehlo.logistic",
            "stablehlo.maximum",
            "stablehlo.minimum",
            "stablehlo.multiply",
            "stablehlo.negate",
            "stablehlo.not",
            "stablehlo.or",
            "stablehlo.popcnt",
            "stablehlo.power",
            "stablehlo.real",
            "stablehlo.reduce_precision",
            "stablehlo.remainder",
            "stablehlo.round_nearest_afz",
            "stablehlo.round_nearest_even",
            "stablehlo.rsqrt",
            "stablehlo.shift_left",
            "stablehlo.shift_right_arithmetic",
            "stablehlo.shift_right_logical",
            "stablehlo.sign",
            "stablehlo.sine",
            "stablehlo.sqrt",
            "stablehlo.subtract",
            "stablehlo.tan",
            "stablehlo.tanh",
            "stablehlo.xor",
        ],
    ),
    family(
        "pointwise_with_scalars",
        pointwise::pointwise_with_scalars,
        &["stablehlo.clamp", "stablehlo.select"],
    ),
    family("transpose", pointwise::transpose, &["stablehlo.transpose"]),
    family("broadcast_in_dim", pointwise::broadcast_in_dim, &["stablehlo.broadcast_in_dim"]),
    family("reverse", pointwise::reverse, &["stablehlo.reverse"]),
    family("bitcast_convert", pointwise::bitcast_convert, &["stablehlo.bitcast_convert"]),
    family(
        "batch_norm_inference",
        pointwise::batch_norm_inference,
        &["stablehlo.batch_norm_inference"],
    ),
    family("dot_general", contract::dot_general, &["stablehlo.dot_general"]),
    family("dot", contract::dot, &["stablehlo.dot"]),
    family("convolution", conv::convolution, &["stablehlo.convolution"]),
    family("reshape", reshape::reshape, &["stablehlo.reshape"]),
    family("reduce", reduce::reduce, &["stablehlo.reduce"]),
    family("reduce_window", reduce::reduce_window, &["stablehlo.reduce_window"]),
    family("select_and_scatter", reduce::select_and_scatter, &["stablehlo.select_and_scatter"]),
    family("sort", reduce::sort, &["stablehlo.sort"]),
    family("resize", slices::resize, &["stablehlo.slice"]),
    family("pad", slices::pad, &["stablehlo.pad"]),
    family("dynamic_slice", slices::dynamic_slice, &["stablehlo.dynamic_slice"]),
    family(
        "dynamic_update_slice",
        slices::dynamic_update_slice,
        &["stablehlo.dynamic_update_slice"],
    )
    .around(surroundings::has_constant_starts),
    family("concatenate", slices::concatenate, &["stablehlo.concatenate"])
        .around(surroundings::concatenates_slices),
    family("gather", gather_scatter::gather, &["stablehlo.gather"]),
    family("scatter", gather_scatter::scatter, &["stablehlo.scatter"])
        .around(surroundings::scatter_reduces),
    family("cholesky", linalg::cholesky, &["stablehlo.cholesky"]),
    family("triangular_solve", linalg::triangular_solve, &["stablehlo.triangular_solve"]),
    family("fft", linalg::fft, &["stablehlo.fft"]),
    family("rng_bit_generator", linalg::rng_bit_generator, &["stablehlo.rng_bit_generator"]),
    family("all_gather", collectives::all_gather, &["stablehlo.all_gather"]),
    family("all_to_all", collectives::all_to_all, &["stablehlo.all_to_all"]),
    family("reduce_scatter", collectives::reduce_scatter, &["stablehlo.reduce_scatter"]),
    family("transfer", pointwise::transfer, &["mpmd.transfer"])
        .around(surroundings::is_between_equal_meshes),
    family("custom_call", custom_call::custom_call, &["stablehlo.custom_call"])
        .around(surroundings::feeds_random_bits),
];
