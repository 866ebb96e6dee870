//! The work and the data movement of ops: one table with a row for each family.
//!
//! Counts are those of XLA's cost analysis, so that they can be compared with it: an elementwise op is one
//! flop an element, or one transcendental where it is an exponential, a logarithm, a root or the like; a
//! multiply-add is two flops; data movement is none. `docs/cost_model.md` has the formula of each family.
//!
//! Ops that are in no row are listed as uncounted.

mod chlo;
pub mod contract;
mod custom_call;
pub mod estimate;
mod linalg;
pub mod unit;
mod windows;

pub use custom_call::call_target;

use crate::rules::SignatureView;
use rustc_hash::FxHashMap;
use std::sync::OnceLock;

/// The work of an op.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Work {
    /// Floating-point and integer operations.
    pub flops: u128,
    /// Exponentials, logarithms, roots, trigonometric functions.
    pub transcendentals: u128,
    /// Operations that XLA:CPU adds to these: it expands some ops for which other compilers have kernels.
    pub only_on_hosts: u128,
}

impl Work {
    /// `flops` without transcendentals.
    pub const fn of_flops(flops: u128) -> Self {
        Self { flops, transcendentals: 0, only_on_hosts: 0 }
    }
    /// This work done `count` times.
    #[must_use]
    pub const fn times(self, count: u128) -> Self {
        Self {
            flops: self.flops.saturating_mul(count),
            transcendentals: self.transcendentals.saturating_mul(count),
            only_on_hosts: self.only_on_hosts.saturating_mul(count),
        }
    }
    /// The sum of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            flops: self.flops.saturating_add(other.flops),
            transcendentals: self.transcendentals.saturating_add(other.transcendentals),
            only_on_hosts: self.only_on_hosts.saturating_add(other.only_on_hosts),
        }
    }
}

/// How the work of an op is computed.
#[derive(Clone, Copy, Debug)]
pub enum Measure {
    /// This many flops and transcendentals for each element of the first result.
    PerElement(u32, u32),
    /// From shapes and attributes.
    Shapes(fn(&SignatureView<'_>) -> Option<Work>),
    /// From shapes, attributes, and the work of the op's regions.
    Bodies(fn(&SignatureView<'_>, &[Work]) -> Option<Work>),
    /// The work is that of the op's regions, or of its callee.
    Inside,
    /// The op is a collective, which has bytes to send.
    Collective,
}

/// How an op reads and writes memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Movement {
    /// Elementwise: fuses with its producers and its users.
    Pointwise,
    /// A broadcast or the like, whose result is larger than its operands: not materialized if all its users fuse.
    Expand,
    /// An alias of its operand.
    Alias,
    /// Reads as many elements as it writes: slices, permutations.
    Window,
    /// Updates its first operand in place.
    Update,
    /// Fuses with its producers; its result is small.
    Reduce,
    /// Reads its operands and writes its results.
    Opaque,
    /// Has no traffic of its own: the ops in its regions have.
    Inside,
}

/// A family of ops with one formula for their costs.
pub struct Family {
    /// Its name, as in the docs.
    pub name: &'static str,
    /// How the work is computed.
    pub measure: Measure,
    /// How data moves.
    pub movement: Movement,
    /// The names of the ops.
    pub ops: &'static [&'static str],
}

const fn family(
    name: &'static str,
    measure: Measure,
    movement: Movement,
    ops: &'static [&'static str],
) -> Family {
    Family { name, measure, movement, ops }
}

const FREE: Measure = Measure::PerElement(0, 0);
const FLOP: Measure = Measure::PerElement(1, 0);
const TRANSCENDENTAL: Measure = Measure::PerElement(0, 1);

impl Family {
    /// All families, those of CHLO last.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        FAMILIES.iter().chain(chlo::FAMILIES)
    }
    /// The family of the op called `name`.
    pub fn of(name: &str) -> Option<&'static Self> {
        static BY_NAME: OnceLock<FxHashMap<&'static str, &'static Family>> = OnceLock::new();
        let by_name = BY_NAME.get_or_init(|| {
            let rows = Self::all();
            rows.flat_map(|row| row.ops.iter().map(move |&op| (op, row))).collect()
        });
        by_name.get(name).copied()
    }
}

/// All families but those of CHLO.
pub static FAMILIES: &[Family] = &[
    family(
        "elementwise",
        FLOP,
        Movement::Pointwise,
        &[
            "stablehlo.abs",
            "stablehlo.add",
            "stablehlo.and",
            "stablehlo.bitcast_convert",
            "stablehlo.ceil",
            "stablehlo.clamp",
            "stablehlo.compare",
            "stablehlo.complex",
            "stablehlo.convert",
            "stablehlo.count_leading_zeros",
            "stablehlo.divide",
            "stablehlo.floor",
            "stablehlo.imag",
            "stablehlo.is_finite",
            "stablehlo.maximum",
            "stablehlo.minimum",
            "stablehlo.multiply",
            "stablehlo.negate",
            "stablehlo.not",
            "stablehlo.or",
            "stablehlo.popcnt",
            "stablehlo.real",
            "stablehlo.reduce_precision",
            "stablehlo.remainder",
            "stablehlo.round_nearest_afz",
            "stablehlo.round_nearest_even",
            "stablehlo.select",
            "stablehlo.shift_left",
            "stablehlo.shift_right_arithmetic",
            "stablehlo.shift_right_logical",
            "stablehlo.sign",
            "stablehlo.subtract",
            "stablehlo.uniform_dequantize",
            "stablehlo.uniform_quantize",
            "stablehlo.xor",
            "arith.addi",
            "arith.addf",
            "arith.subi",
            "arith.subf",
            "arith.muli",
            "arith.mulf",
            "arith.divf",
            "arith.divsi",
            "arith.divui",
            "arith.remsi",
            "arith.remui",
            "arith.andi",
            "arith.ori",
            "arith.xori",
            "arith.maxsi",
            "arith.minsi",
            "arith.maximumf",
            "arith.minimumf",
            "arith.negf",
        ],
    ),
    family(
        "transcendental",
        TRANSCENDENTAL,
        Movement::Pointwise,
        &[
            "stablehlo.atan2",
            "stablehlo.cbrt",
            "stablehlo.cosine",
            "stablehlo.exponential",
            "stablehlo.exponential_minus_one",
            "stablehlo.log",
            "stablehlo.log_plus_one",
            "stablehlo.logistic",
            "stablehlo.power",
            "stablehlo.rsqrt",
            "stablehlo.sine",
            "stablehlo.sqrt",
            "stablehlo.tan",
            "stablehlo.tanh",
        ],
    ),
    family(
        "made of nothing",
        FREE,
        Movement::Expand,
        &[
            "stablehlo.constant",
            "sdy.constant",
            "arith.constant",
            "func.constant",
            "stablehlo.iota",
            "stablehlo.broadcast",
            "stablehlo.broadcast_in_dim",
            "stablehlo.create_token",
            "stablehlo.after_all",
            "stablehlo.partition_id",
            "stablehlo.replica_id",
        ],
    ),
    family(
        "another name",
        FREE,
        Movement::Alias,
        &[
            "stablehlo.reshape",
            "stablehlo.optimization_barrier",
            "stablehlo.tuple",
            "stablehlo.get_tuple_element",
            "sdy.sharding_constraint",
            "sdy.propagation_barrier",
            "sdy.data_flow_edge",
            "sdy.func_data_flow_edge",
            "sdy.sharding_group",
            "sdy.replicated_to_unreduced",
            "sdy.sharded_to_unreduced",
            "tensor.cast",
            "builtin.unrealized_conversion_cast",
        ],
    ),
    family(
        "data movement",
        FREE,
        Movement::Window,
        &[
            "stablehlo.concatenate",
            "stablehlo.dynamic_slice",
            "stablehlo.gather",
            "stablehlo.pad",
            "stablehlo.reverse",
            "stablehlo.slice",
            "stablehlo.torch_index_select",
            "stablehlo.transpose",
        ],
    ),
    family("update in place", FREE, Movement::Update, &["stablehlo.dynamic_update_slice"]),
    family("scatter", Measure::Bodies(windows::scatter), Movement::Update, &["stablehlo.scatter"]),
    family("dot", Measure::Shapes(contract::dot), Movement::Opaque, &["stablehlo.dot"]),
    family(
        "dot_general",
        Measure::Shapes(contract::dot_general),
        Movement::Opaque,
        &["stablehlo.dot_general"],
    ),
    family(
        "ragged_dot",
        Measure::Shapes(contract::ragged_dot),
        Movement::Opaque,
        &["chlo.ragged_dot"],
    ),
    family(
        "convolution",
        Measure::Shapes(contract::convolution),
        Movement::Opaque,
        &["stablehlo.convolution"],
    ),
    family("reduce", Measure::Bodies(windows::reduce), Movement::Reduce, &["stablehlo.reduce"]),
    family(
        "reduce_window",
        Measure::Bodies(windows::reduce_window),
        Movement::Reduce,
        &["stablehlo.reduce_window"],
    ),
    family(
        "select_and_scatter",
        Measure::Bodies(windows::select_and_scatter),
        Movement::Opaque,
        &["stablehlo.select_and_scatter"],
    ),
    family("map", Measure::Bodies(windows::map), Movement::Pointwise, &["stablehlo.map"]),
    family("sort", Measure::Shapes(windows::sort), Movement::Opaque, &["stablehlo.sort"]),
    family("top_k", Measure::Shapes(windows::top_k), Movement::Opaque, &["chlo.top_k"]),
    family("fft", Measure::Shapes(linalg::fft), Movement::Opaque, &["stablehlo.fft"]),
    family(
        "cholesky",
        Measure::Shapes(linalg::cholesky),
        Movement::Opaque,
        &["stablehlo.cholesky"],
    ),
    family(
        "triangular_solve",
        Measure::Shapes(linalg::triangular_solve),
        Movement::Opaque,
        &["stablehlo.triangular_solve"],
    ),
    family(
        "random bits",
        Measure::Shapes(linalg::random),
        Movement::Opaque,
        &["stablehlo.rng", "stablehlo.rng_bit_generator"],
    ),
    family(
        "batch norm",
        Measure::Shapes(linalg::batch_norm),
        Movement::Opaque,
        &[
            "stablehlo.batch_norm_inference",
            "stablehlo.batch_norm_training",
            "stablehlo.batch_norm_grad",
        ],
    ),
    family(
        "custom_call",
        Measure::Shapes(custom_call::work),
        Movement::Opaque,
        &["stablehlo.custom_call"],
    ),
    family(
        "control flow",
        Measure::Inside,
        Movement::Inside,
        &[
            "stablehlo.while",
            "stablehlo.case",
            "stablehlo.if",
            "func.call",
            "sdy.manual_computation",
            "sdy.named_computation",
            "stablehlo.composite",
        ],
    ),
    family("slice of copies", Measure::Collective, Movement::Window, &["sdy.all_slice"]),
    family(
        "collective",
        Measure::Collective,
        Movement::Opaque,
        &[
            "sdy.all_gather",
            "sdy.all_reduce",
            "sdy.reduce_scatter",
            "sdy.all_to_all",
            "sdy.collective_permute",
            "sdy.reshard",
            "stablehlo.all_gather",
            "stablehlo.all_reduce",
            "stablehlo.reduce_scatter",
            "stablehlo.all_to_all",
            "stablehlo.collective_permute",
            "stablehlo.collective_broadcast",
            "stablehlo.cross-replica-sum",
        ],
    ),
];
