//! The table of op names with the kind, traits and syntax of each op.
//!
//! Ops that some pass treats specially have an [`OpKind`] of their own; all others are
//! [`OpKind::Other`], whether registered or not. Traits are those of the op's dialect that change
//! what Shardy or MLIR's drivers do: shardings are propagated through elementwise ops first, pure ops are
//! erased when nothing uses them, terminators are notified through their parent.
//!
//! Source: the operation definitions of `StableHLO`, CHLO, `func`, Shardy and its dialect of pipelines, `mpmd`.

/// Traits of an op, as a set of bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpTraits(u8);

impl OpTraits {
    /// None of them.
    pub const NONE: Self = Self(0);
    /// Ends its block.
    pub const TERMINATOR: Self = Self(1);
    /// Computes each element by itself; shapes of operands and results agree, or broadcast.
    pub const ELEMENTWISE: Self = Self(2);
    /// Has no memory effect.
    pub const PURE: Self = Self(4);
    /// Has the memory effects of the ops in its regions and none of its own.
    pub const RECURSIVE_EFFECTS: Self = Self(8);
    /// Is a constant.
    pub const CONSTANT_LIKE: Self = Self(16);
    /// Its regions use no values from outside (MLIR's `IsolatedFromAbove`).
    pub const ISOLATED: Self = Self(32);
    /// The engine knows the op's name.
    pub const KNOWN: Self = Self(64);

    /// Whether all of `traits` hold.
    #[inline]
    pub const fn has(self, traits: Self) -> bool {
        self.0 & traits.0 == traits.0
    }
    /// The traits of the op called `name`, [`OpTraits::KNOWN`] included; none if the table has no such op.
    pub fn of_name(name: &str) -> Self {
        OpInfo::by_name(name).map_or(Self::NONE, |info| info.traits)
    }
    /// The names of the traits in the set, but for [`OpTraits::KNOWN`].
    pub fn names(self) -> Vec<&'static str> {
        let all = [
            (Self::TERMINATOR, "terminator"),
            (Self::ELEMENTWISE, "elementwise"),
            (Self::PURE, "pure"),
            (Self::RECURSIVE_EFFECTS, "recursive effects"),
            (Self::CONSTANT_LIKE, "constant"),
            (Self::ISOLATED, "isolated"),
        ];
        all.into_iter().filter(|&(traits, _)| self.has(traits)).map(|(_, name)| name).collect()
    }
    /// The union of both sets.
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

/// The custom syntax of an op. "Text" is operands mixed with attributes in any notation; unless stated
/// otherwise a dictionary, a colon and types follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Syntax {
    /// Only the generic form is known.
    Generic,
    /// Text; a function type.
    Functional,
    /// Text; one type, that of all operands and the result, or a function type.
    Same,
    /// As [`Syntax::Same`], but operands have the real type of the complex result.
    Complex,
    /// Text; the types of predicate and result, or a function type.
    Select,
    /// Text; a tuple type, whose elements are the operands' types.
    Tuple,
    /// Text; `types -> types`, parentheses being optional.
    Arrow,
    /// Text; `types to types`.
    Cast,
    /// Text; the results' types. There are no operands.
    Results,
    /// Operands, a colon and their types; nothing at all without operands.
    Return,
    /// A dictionary, operands, a colon and types, which are the results' too; or `()`.
    Barrier,
    /// A dictionary and elements with their type.
    Elements,
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

/// At least twice as many as there are ops.
const NUM_SLOTS: usize = 1 << 10;

/// An open-addressing hash table of [`OPS`]: each slot has one more than the index of an op, at the
/// hash of its name or the next free slot; 0 is a free slot.
static SLOTS: [u16; NUM_SLOTS] = slots();

const fn slots() -> [u16; NUM_SLOTS] {
    assert!(2 * OPS.len() <= NUM_SLOTS);
    let mut slots = [0; NUM_SLOTS];
    let mut place = 0;
    while place < OPS.len() {
        let mut slot = slot_of(OPS[place].name);
        while slots[slot] != 0 {
            slot = (slot + 1) % NUM_SLOTS;
        }
        place += 1;
        slots[slot] = place as u16;
    }
    slots
}

/// The first slot to search for the op called `name`.
const fn slot_of(name: &str) -> usize {
    let mut hash = 0_usize;
    let mut at = 0;
    while at < name.len() {
        hash = hash.wrapping_mul(31).wrapping_add(name.as_bytes()[at] as usize);
        at += 1;
    }
    hash % NUM_SLOTS
}

impl OpInfo {
    /// The row of the op called `name`; `None` for ops the engine does not know.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        let mut slot = slot_of(name);
        loop {
            let place = usize::from(SLOTS[slot]).checked_sub(1)?;
            if OPS[place].name == name {
                return Some(&OPS[place]);
            }
            slot = (slot + 1) % NUM_SLOTS;
        }
    }
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
            $(OpInfo { name: $kname, kind: OpKind::$kind, traits: $ktraits.or(OpTraits::KNOWN), syntax: Syntax::$ksyntax },)*
            $(OpInfo { name: $oname, kind: OpKind::Other, traits: $otraits.or(OpTraits::KNOWN), syntax: Syntax::$osyntax },)*
        ];

    };
}

ops! {
    kinds {
        Module = "builtin.module" I Custom,
        Func = "func.func" I Custom,
        FuncReturn = "func.return" T Return,
        Call = "func.call" N Custom,
        UnrealizedConversionCast = "builtin.unrealized_conversion_cast" P Cast,
        // Shardy
        Mesh = "sdy.mesh" N Custom,
        ShardingConstraint = "sdy.sharding_constraint" N Custom,
        Reshard = "sdy.reshard" P Custom,
        SdyReturn = "sdy.return" T Return,
        ManualComputation = "sdy.manual_computation" RI Custom,
        ShardingGroup = "sdy.sharding_group" N Custom,
        SdyConstant = "sdy.constant" K Elements,
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
        // Shardy's pipelines
        Fragment = "mpmd.fragment" RI Custom,
        MpmdFor = "mpmd.for" R Custom,
        MpmdReturn = "mpmd.return" T Return,
        MpmdCall = "mpmd.call" N Custom,
        FragmentCall = "mpmd.fragment_call" N Custom,
        Transfer = "mpmd.transfer" P Custom,
        // StableHLO
        Constant = "stablehlo.constant" K Elements,
        StablehloReturn = "stablehlo.return" T Return,
        While = "stablehlo.while" R Custom,
        Case = "stablehlo.case" R Generic,
        If = "stablehlo.if" R Generic,
        OptimizationBarrier = "stablehlo.optimization_barrier" P Barrier,
        CustomCall = "stablehlo.custom_call" N Functional,
        Composite = "stablehlo.composite" N Functional,
        Iota = "stablehlo.iota" P Results,
        Reshape = "stablehlo.reshape" P Functional,
        Transpose = "stablehlo.transpose" P Functional,
        BroadcastInDim = "stablehlo.broadcast_in_dim" P Functional,
        DynamicSlice = "stablehlo.dynamic_slice" P Functional,
        DynamicUpdateSlice = "stablehlo.dynamic_update_slice" P Functional,
        DotGeneral = "stablehlo.dot_general" P Functional,
        Dot = "stablehlo.dot" P Functional,
        Reduce = "stablehlo.reduce" R Custom,
        ReduceWindow = "stablehlo.reduce_window" R Generic,
        Scatter = "stablehlo.scatter" R Generic,
        SelectAndScatter = "stablehlo.select_and_scatter" R Generic,
        Gather = "stablehlo.gather" P Generic,
        Convolution = "stablehlo.convolution" P Functional,
        Slice = "stablehlo.slice" P Functional,
        Concatenate = "stablehlo.concatenate" P Functional,
        Pad = "stablehlo.pad" P Functional,
        Sort = "stablehlo.sort" R Generic,
        BitcastConvert = "stablehlo.bitcast_convert" P Functional,
        Tuple = "stablehlo.tuple" P Tuple,
        GetTupleElement = "stablehlo.get_tuple_element" P Functional,
        // CHLO
        Scan = "chlo.scan" RI Custom,
    }
    others {
        // StableHLO
        "stablehlo.abs" E Same, "stablehlo.add" E Same, "stablehlo.and" E Same,
        "stablehlo.atan2" E Same, "stablehlo.cbrt" E Same, "stablehlo.ceil" E Same,
        "stablehlo.complex" E Complex, "stablehlo.convert" E Same, "stablehlo.cosine" E Same,
        "stablehlo.count_leading_zeros" E Same, "stablehlo.divide" E Same,
        "stablehlo.exponential" E Same, "stablehlo.exponential_minus_one" E Same,
        "stablehlo.floor" E Same, "stablehlo.imag" E Same, "stablehlo.is_finite" E Functional,
        "stablehlo.log" E Same, "stablehlo.log_plus_one" E Same, "stablehlo.logistic" E Same,
        "stablehlo.maximum" E Same, "stablehlo.minimum" E Same, "stablehlo.multiply" E Same,
        "stablehlo.negate" E Same, "stablehlo.not" E Same, "stablehlo.or" E Same,
        "stablehlo.popcnt" E Same, "stablehlo.power" E Same, "stablehlo.real" E Same,
        "stablehlo.remainder" E Same, "stablehlo.round_nearest_afz" E Same,
        "stablehlo.round_nearest_even" E Same, "stablehlo.rsqrt" E Same,
        "stablehlo.shift_left" E Same, "stablehlo.shift_right_arithmetic" E Same,
        "stablehlo.shift_right_logical" E Same, "stablehlo.sign" E Same,
        "stablehlo.sine" E Same, "stablehlo.sqrt" E Same, "stablehlo.subtract" E Same,
        "stablehlo.tan" E Same, "stablehlo.tanh" E Same, "stablehlo.xor" E Same,
        "stablehlo.uniform_quantize" E Same, "stablehlo.uniform_dequantize" E Same,
        "stablehlo.reduce_precision" E Same, "stablehlo.compare" E Functional,
        "stablehlo.select" E Select, "stablehlo.clamp" E Same, "stablehlo.map" R Generic,
        "stablehlo.dynamic_iota" P Functional, "stablehlo.create_token" P Results,
        "stablehlo.after_all" P Same, "stablehlo.infeed" N Generic,
        "stablehlo.outfeed" N Generic, "stablehlo.send" N Generic, "stablehlo.recv" N Generic,
        "stablehlo.replica_id" P Results, "stablehlo.partition_id" P Results,
        "stablehlo.all_gather" N Generic, "stablehlo.all_reduce" N Generic,
        "stablehlo.reduce_scatter" N Generic, "stablehlo.all_to_all" N Generic,
        "stablehlo.collective_broadcast" N Generic, "stablehlo.collective_permute" N Generic,
        "stablehlo.collective_reduce" N Generic, "stablehlo.cross-replica-sum" P Generic,
        "stablehlo.async_start" I Generic, "stablehlo.async_done" N Generic,
        "stablehlo.batch_norm_grad" P Generic, "stablehlo.batch_norm_inference" P Generic,
        "stablehlo.batch_norm_training" P Generic, "stablehlo.broadcast" P Functional,
        "stablehlo.dynamic_broadcast_in_dim" P Functional, "stablehlo.cholesky" P Same,
        "stablehlo.einsum" P Functional, "stablehlo.unary_einsum" P Functional, "stablehlo.fft" P Functional,
        "stablehlo.get_dimension_size" P Functional, "stablehlo.set_dimension_size" P Functional,
        "stablehlo.dynamic_reshape" P Functional, "stablehlo.reverse" P Same,
        "stablehlo.triangular_solve" P Generic, "stablehlo.torch_index_select" P Generic,
        "stablehlo.rng" N Functional, "stablehlo.rng_bit_generator" P Functional,
        "stablehlo.real_dynamic_slice" P Functional, "stablehlo.dynamic_pad" P Functional,
        "stablehlo.dynamic_gather" P Generic, "stablehlo.dynamic_conv" P Generic,
        // CHLO
        "chlo.broadcast_add" E Arrow, "chlo.broadcast_and" E Arrow,
        "chlo.broadcast_atan2" E Arrow, "chlo.broadcast_compare" E Arrow,
        "chlo.broadcast_complex" E Arrow, "chlo.broadcast_divide" E Arrow,
        "chlo.broadcast_maximum" E Arrow, "chlo.broadcast_minimum" E Arrow,
        "chlo.broadcast_multiply" E Arrow, "chlo.broadcast_next_after" E Arrow,
        "chlo.broadcast_or" E Arrow, "chlo.broadcast_polygamma" E Arrow,
        "chlo.broadcast_power" E Arrow, "chlo.broadcast_remainder" E Arrow,
        "chlo.broadcast_select" E Arrow, "chlo.broadcast_shift_left" E Arrow,
        "chlo.broadcast_shift_right_arithmetic" E Arrow,
        "chlo.broadcast_shift_right_logical" E Arrow, "chlo.broadcast_subtract" E Arrow,
        "chlo.broadcast_xor" E Arrow, "chlo.broadcast_zeta" E Arrow,
        "chlo._asin_acos_kernel" E Arrow, "chlo.acos" E Arrow, "chlo.acosh" E Arrow,
        "chlo.asin" E Arrow, "chlo.asinh" E Arrow, "chlo.atan" E Arrow, "chlo.atanh" E Arrow,
        "chlo.bessel_i1e" E Arrow, "chlo.conj" E Arrow, "chlo.cosh" E Arrow,
        "chlo.digamma" E Arrow, "chlo.erf" E Arrow, "chlo.erf_inv" E Arrow, "chlo.erfc" E Arrow,
        "chlo.is_inf" E Arrow, "chlo.is_neg_inf" E Arrow, "chlo.is_pos_inf" E Arrow,
        "chlo.lgamma" E Arrow, "chlo.next_after" P Arrow, "chlo.polygamma" P Arrow,
        "chlo.sinh" E Arrow, "chlo.square" E Arrow, "chlo.tan" E Arrow, "chlo.zeta" P Arrow,
        "chlo.constant" K Elements, "chlo.constant_like" E Generic, "chlo.ragged_dot" P Generic,
        "chlo.top_k" P Arrow, "chlo.mulhi" P Arrow,
        // Ops that XLA converts HLO to if StableHLO has no op for it
        "mhlo.copy" P Same, "mhlo.erf" E Same, "mhlo.topk" P Arrow,
        "mhlo.scan" RI Custom, "mhlo.return" T Return,
        // Shardy's pipelines
        "mpmd.assign" P Custom, "mpmd.unassign" P Custom, "mpmd.broadcast" P Custom,
        "mpmd.reduce" P Custom, "mpmd.named_tensor" P Custom, "mpmd.named_computation" RI Custom,
        // Others
        "func.call_indirect" N Custom, "func.constant" K Elements, "arith.constant" K Elements,
        "arith.addi" E Same, "arith.addf" E Same, "arith.subi" E Same, "arith.subf" E Same,
        "arith.muli" E Same, "arith.mulf" E Same, "arith.divf" E Same, "arith.divsi" E Same,
        "arith.divui" E Same, "arith.remsi" E Same, "arith.remui" E Same, "arith.andi" E Same,
        "arith.ori" E Same, "arith.xori" E Same, "arith.maxsi" E Same, "arith.minsi" E Same,
        "arith.maximumf" E Same, "arith.minimumf" E Same, "arith.negf" E Same,
        "arith.index_cast" E Cast, "arith.extf" E Cast, "arith.truncf" E Cast,
        "arith.extsi" E Cast, "arith.extui" E Cast, "arith.trunci" E Cast, "arith.sitofp" E Cast,
        "arith.uitofp" E Cast, "arith.fptosi" E Cast, "arith.fptoui" E Cast,
        "arith.bitcast" E Cast, "tensor.cast" P Cast,
    }
}

impl OpKind {
    /// The kind of the op called `name`.
    pub fn from_name(name: &str) -> Self {
        OpInfo::by_name(name).map_or(Self::Other, |info| info.kind)
    }
    /// Whether ops of this kind have a sharding of their own, rather than an `sdy.sharding` attribute. If such
    /// an op has that attribute too, it is ignored.
    pub const fn has_own_sharding(self) -> bool {
        matches!(self, Self::ManualComputation | Self::NamedComputation | Self::Fragment)
            || has_one_sharding(self)
    }
    /// Whether ops of this kind are Shardy's collectives.
    pub const fn is_collective(self) -> bool {
        matches!(
            self,
            Self::AllGather
                | Self::AllSlice
                | Self::AllToAll
                | Self::CollectivePermute
                | Self::AllReduce
                | Self::ReduceScatter
                | Self::ShardedToUnreduced
                | Self::ReplicatedToUnreduced
        )
    }
}

/// Whether ops of `kind` have an attribute for one sharding, that of their result.
pub const fn has_one_sharding(kind: OpKind) -> bool {
    matches!(kind, OpKind::ShardingConstraint | OpKind::Reshard | OpKind::DataFlowEdge)
        || kind.is_collective()
}
