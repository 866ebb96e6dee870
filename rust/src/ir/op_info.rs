//! What the engine knows about ops by name: one table, one row an op.
//!
//! Ops that some pass treats specially have an [`OpKind`] of their own; all others are
//! [`OpKind::Other`], whether registered or not. Traits are those of the op's dialect that change
//! what Shardy or MLIR's drivers do: elementwise ops pass shardings through first, pure ops are
//! erased when nothing uses them, terminators are notified through their parent.
//!
//! Source: the operation definitions of StableHLO, CHLO, func and Shardy.

use super::Program;
use crate::index::{Id, OpId};

/// Facts about an op, as a set of bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpTraits(u8);

impl OpTraits {
    /// None of them.
    pub const NONE: Self = Self(0);
    /// Ends its block.
    pub const TERMINATOR: Self = Self(1);
    /// Applies to each element by itself; shapes of operands and results agree, or broadcast.
    pub const ELEMENTWISE: Self = Self(2);
    /// Has no memory effect.
    pub const PURE: Self = Self(4);
    /// Has the memory effects of the ops in its regions and none of its own.
    pub const RECURSIVE_EFFECTS: Self = Self(8);
    /// Is a constant.
    pub const CONSTANT_LIKE: Self = Self(16);
    /// Its regions see no values from outside.
    pub const ISOLATED: Self = Self(32);

    /// Whether all of `traits` hold.
    #[inline]
    pub const fn has(self, traits: Self) -> bool {
        self.0 & traits.0 == traits.0
    }
    /// All of both.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

const T: OpTraits = OpTraits::TERMINATOR.or(OpTraits::PURE);
const E: OpTraits = OpTraits::ELEMENTWISE.or(OpTraits::PURE);
const P: OpTraits = OpTraits::PURE;
const R: OpTraits = OpTraits::RECURSIVE_EFFECTS;
const K: OpTraits = OpTraits::CONSTANT_LIKE.or(OpTraits::PURE);
const I: OpTraits = OpTraits::ISOLATED;
const RI: OpTraits = R.or(I);
const N: OpTraits = OpTraits::NONE;

/// How an op is written in its dialect's own syntax.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Syntax {
    /// Only the generic form is known.
    Generic,
    /// Operands, then attributes in some text, then a type signature after a colon.
    Plain,
    /// A syntax with a parser of its own.
    Custom,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// Full name.
    pub name: &'static str,
    /// Its kind.
    pub kind: OpKind,
    /// Its traits.
    pub traits: OpTraits,
    /// Its syntax.
    pub syntax: Syntax,
}

macro_rules! ops {
    (
        kinds { $($kind:ident = $kname:literal $ktraits:ident $ksyntax:ident,)* }
        others { $($oname:literal $otraits:ident $osyntax:ident,)* }
    ) => {
        /// Ops that some pass treats specially.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum OpKind {
            $(#[doc = concat!("`", $kname, "`")] $kind,)*
            /// Any other op.
            Other,
        }

        /// The table.
        pub static OPS: &[OpInfo] = &[
            $(OpInfo { name: $kname, kind: OpKind::$kind, traits: $ktraits, syntax: Syntax::$ksyntax },)*
            $(OpInfo { name: $oname, kind: OpKind::Other, traits: $otraits, syntax: Syntax::$osyntax },)*
        ];

        impl OpInfo {
            /// The row of the op called `name`; `None` for ops the engine does not know.
            pub fn by_name(name: &str) -> Option<&'static Self> {
                let index: usize = match name {
                    $($kname => Row::$kind as usize,)*
                    _ => return OPS[OpKind::Other as usize..].iter().find(|row| row.name == name),
                };
                OPS.get(index)
            }
        }

        /// Row numbers of the ops that have a kind.
        enum Row { $($kind,)* }
    };
}

ops! {
    kinds {
        Module = "builtin.module" I Custom,
        Func = "func.func" I Custom,
        FuncReturn = "func.return" T Plain,
        Call = "func.call" N Custom,
        UnrealizedConversionCast = "builtin.unrealized_conversion_cast" P Generic,
        // Shardy
        Mesh = "sdy.mesh" N Custom,
        ShardingConstraint = "sdy.sharding_constraint" N Custom,
        Reshard = "sdy.reshard" P Custom,
        SdyReturn = "sdy.return" T Plain,
        ManualComputation = "sdy.manual_computation" RI Custom,
        ShardingGroup = "sdy.sharding_group" N Custom,
        SdyConstant = "sdy.constant" K Custom,
        DataFlowEdge = "sdy.data_flow_edge" N Custom,
        FuncDataFlowEdge = "sdy.func_data_flow_edge" N Custom,
        PropagationBarrier = "sdy.propagation_barrier" P Custom,
        NamedComputation = "sdy.named_computation" RI Custom,
        AllGather = "sdy.all_gather" N Custom,
        AllSlice = "sdy.all_slice" N Custom,
        AllToAll = "sdy.all_to_all" N Custom,
        CollectivePermute = "sdy.collective_permute" N Custom,
        AllReduce = "sdy.all_reduce" N Custom,
        ReduceScatter = "sdy.reduce_scatter" N Custom,
        ShardedToUnreduced = "sdy.sharded_to_unreduced" N Custom,
        ReplicatedToUnreduced = "sdy.replicated_to_unreduced" N Custom,
        // StableHLO
        Constant = "stablehlo.constant" K Custom,
        StablehloReturn = "stablehlo.return" T Plain,
        While = "stablehlo.while" R Custom,
        Case = "stablehlo.case" R Generic,
        If = "stablehlo.if" R Generic,
        OptimizationBarrier = "stablehlo.optimization_barrier" P Custom,
        CustomCall = "stablehlo.custom_call" N Custom,
        Composite = "stablehlo.composite" N Custom,
        Iota = "stablehlo.iota" P Plain,
        Reshape = "stablehlo.reshape" P Plain,
        Transpose = "stablehlo.transpose" P Plain,
        BroadcastInDim = "stablehlo.broadcast_in_dim" P Plain,
        DynamicSlice = "stablehlo.dynamic_slice" P Plain,
        DynamicUpdateSlice = "stablehlo.dynamic_update_slice" P Plain,
        DotGeneral = "stablehlo.dot_general" P Custom,
        Dot = "stablehlo.dot" P Custom,
        Reduce = "stablehlo.reduce" R Custom,
        ReduceWindow = "stablehlo.reduce_window" R Generic,
        Scatter = "stablehlo.scatter" R Generic,
        SelectAndScatter = "stablehlo.select_and_scatter" R Generic,
        Gather = "stablehlo.gather" P Generic,
        Convolution = "stablehlo.convolution" P Custom,
        Slice = "stablehlo.slice" P Custom,
        Concatenate = "stablehlo.concatenate" P Plain,
        Pad = "stablehlo.pad" P Plain,
        Sort = "stablehlo.sort" R Generic,
        BitcastConvert = "stablehlo.bitcast_convert" P Plain,
        Tuple = "stablehlo.tuple" P Custom,
        GetTupleElement = "stablehlo.get_tuple_element" P Plain,
    }
    others {
        // StableHLO
        "stablehlo.abs" E Plain, "stablehlo.add" E Plain, "stablehlo.and" E Plain,
        "stablehlo.atan2" E Plain, "stablehlo.cbrt" E Plain, "stablehlo.ceil" E Plain,
        "stablehlo.complex" E Plain, "stablehlo.convert" E Plain, "stablehlo.cosine" E Plain,
        "stablehlo.count_leading_zeros" E Plain, "stablehlo.divide" E Plain,
        "stablehlo.exponential" E Plain, "stablehlo.exponential_minus_one" E Plain,
        "stablehlo.floor" E Plain, "stablehlo.imag" E Plain, "stablehlo.is_finite" E Plain,
        "stablehlo.log" E Plain, "stablehlo.log_plus_one" E Plain, "stablehlo.logistic" E Plain,
        "stablehlo.maximum" E Plain, "stablehlo.minimum" E Plain, "stablehlo.multiply" E Plain,
        "stablehlo.negate" E Plain, "stablehlo.not" E Plain, "stablehlo.or" E Plain,
        "stablehlo.popcnt" E Plain, "stablehlo.power" E Plain, "stablehlo.real" E Plain,
        "stablehlo.remainder" E Plain, "stablehlo.round_nearest_afz" E Plain,
        "stablehlo.round_nearest_even" E Plain, "stablehlo.rsqrt" E Plain,
        "stablehlo.shift_left" E Plain, "stablehlo.shift_right_arithmetic" E Plain,
        "stablehlo.shift_right_logical" E Plain, "stablehlo.sign" E Plain,
        "stablehlo.sine" E Plain, "stablehlo.sqrt" E Plain, "stablehlo.subtract" E Plain,
        "stablehlo.tan" E Plain, "stablehlo.tanh" E Plain, "stablehlo.xor" E Plain,
        "stablehlo.uniform_quantize" E Plain, "stablehlo.uniform_dequantize" E Plain,
        "stablehlo.reduce_precision" E Custom, "stablehlo.compare" E Custom,
        "stablehlo.select" E Custom, "stablehlo.clamp" E Plain, "stablehlo.map" R Generic,
        "stablehlo.dynamic_iota" P Plain, "stablehlo.create_token" P Plain,
        "stablehlo.after_all" P Custom, "stablehlo.infeed" N Generic,
        "stablehlo.outfeed" N Generic, "stablehlo.send" N Generic, "stablehlo.recv" N Generic,
        "stablehlo.replica_id" P Plain, "stablehlo.partition_id" P Plain,
        "stablehlo.all_gather" N Generic, "stablehlo.all_reduce" N Generic,
        "stablehlo.reduce_scatter" N Generic, "stablehlo.all_to_all" N Generic,
        "stablehlo.collective_broadcast" N Generic, "stablehlo.collective_permute" N Generic,
        "stablehlo.collective_reduce" N Generic, "stablehlo.cross-replica-sum" P Plain,
        "stablehlo.async_start" I Generic, "stablehlo.async_done" N Generic,
        "stablehlo.batch_norm_grad" P Generic, "stablehlo.batch_norm_inference" P Generic,
        "stablehlo.batch_norm_training" P Generic, "stablehlo.broadcast" P Plain,
        "stablehlo.dynamic_broadcast_in_dim" P Plain, "stablehlo.cholesky" P Plain,
        "stablehlo.einsum" P Plain, "stablehlo.unary_einsum" P Plain, "stablehlo.fft" P Plain,
        "stablehlo.get_dimension_size" P Plain, "stablehlo.set_dimension_size" P Plain,
        "stablehlo.dynamic_reshape" P Plain, "stablehlo.reverse" P Plain,
        "stablehlo.triangular_solve" P Generic, "stablehlo.torch_index_select" P Generic,
        "stablehlo.rng" N Plain, "stablehlo.rng_bit_generator" P Plain,
        "stablehlo.real_dynamic_slice" P Plain, "stablehlo.dynamic_pad" P Plain,
        "stablehlo.dynamic_gather" P Generic, "stablehlo.dynamic_conv" P Custom,
        // CHLO
        "chlo.broadcast_add" E Plain, "chlo.broadcast_and" E Plain,
        "chlo.broadcast_atan2" E Plain, "chlo.broadcast_compare" E Plain,
        "chlo.broadcast_complex" E Plain, "chlo.broadcast_divide" E Plain,
        "chlo.broadcast_maximum" E Plain, "chlo.broadcast_minimum" E Plain,
        "chlo.broadcast_multiply" E Plain, "chlo.broadcast_next_after" E Plain,
        "chlo.broadcast_or" E Plain, "chlo.broadcast_polygamma" E Plain,
        "chlo.broadcast_power" E Plain, "chlo.broadcast_remainder" E Plain,
        "chlo.broadcast_select" E Plain, "chlo.broadcast_shift_left" E Plain,
        "chlo.broadcast_shift_right_arithmetic" E Plain,
        "chlo.broadcast_shift_right_logical" E Plain, "chlo.broadcast_subtract" E Plain,
        "chlo.broadcast_xor" E Plain, "chlo.broadcast_zeta" E Plain,
        "chlo._asin_acos_kernel" E Plain, "chlo.acos" E Plain, "chlo.acosh" E Plain,
        "chlo.asin" E Plain, "chlo.asinh" E Plain, "chlo.atan" E Plain, "chlo.atanh" E Plain,
        "chlo.bessel_i1e" E Plain, "chlo.conj" E Plain, "chlo.cosh" E Plain,
        "chlo.digamma" E Plain, "chlo.erf" E Plain, "chlo.erf_inv" E Plain, "chlo.erfc" E Plain,
        "chlo.is_inf" E Plain, "chlo.is_neg_inf" E Plain, "chlo.is_pos_inf" E Plain,
        "chlo.lgamma" E Plain, "chlo.next_after" P Plain, "chlo.polygamma" P Plain,
        "chlo.sinh" E Plain, "chlo.square" E Plain, "chlo.tan" E Plain, "chlo.zeta" P Plain,
        "chlo.constant" K Plain, "chlo.constant_like" E Generic, "chlo.ragged_dot" P Generic,
        "chlo.top_k" P Custom, "chlo.scan" RI Custom, "chlo.mulhi" P Plain,
    }
}

impl OpKind {
    /// The kind of the op called `name`.
    pub fn from_name(name: &str) -> Self {
        OpInfo::by_name(name).map_or(Self::Other, |info| info.kind)
    }
}

/// The traits of ops, looked up once for each name.
#[derive(Clone, Debug, Default)]
pub struct TraitCache {
    traits: Vec<Option<Option<OpTraits>>>,
}

impl TraitCache {
    /// The traits of `op`; `None` if the engine does not know its name.
    pub fn traits(&mut self, program: &Program, op: OpId) -> Option<OpTraits> {
        let name = program.ops[op].name;
        if self.traits.len() <= name.index() {
            self.traits.resize(name.index() + 1, None);
        }
        *self.traits[name.index()].get_or_insert_with(|| {
            OpInfo::by_name(program.strings.get(name)).map(|info| info.traits)
        })
    }
    /// Whether `op` is known to have all of `traits`.
    pub fn has(&mut self, program: &Program, op: OpId, traits: OpTraits) -> bool {
        self.traits(program, op).is_some_and(|known| known.has(traits))
    }
}
