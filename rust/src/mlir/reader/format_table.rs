//! The assembly formats of ops: the text between their name and their attribute dictionary.
//!
//! A format is a list of parts, parsed in order. Source: the assembly formats of `StableHLO`, CHLO, MHLO,
//! `arith`, `tensor` and `builtin`.

use crate::shardy::{Change, Version};

/// A part of a format.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    /// `%x`
    Operand,
    /// `%x, %y`, or nothing.
    Operands,
    /// `%x, %y,`, each followed by a comma.
    OperandsThen,
    /// This character.
    Byte(u8),
    /// This word and `=`.
    Key(&'static str),
    /// `[1, 2]`, or an alias.
    Ints,
    /// `1`
    Int,
    /// `true`, `false`, or an integer of one bit.
    Bool,
    /// `"text"`
    Str,
    /// `@name`
    Symbol,
    /// A case of the enumeration of this name.
    Case(&'static str),
    /// A comma and these parts, or nothing.
    Optional(&'static [Part]),
    /// `[0:4, 1:8:2]`
    Slices,
    /// `batching_dims = [0] x [0], contracting_dims = [2] x [1]`
    DotDims,
    /// `, precision = [DEFAULT, DEFAULT]`, or nothing.
    Precision,
    /// `, precision = [DEFAULT], algorithm = <...>`, either of them, or nothing.
    PrecisionAndAlgorithm,
    /// `[b, 0, f]x[0, i, o]->[b, 0, f]`
    ConvDims,
    /// `{stride = [1], pad = [[0, 0]]}`
    Window,
    /// `e5m10`
    FloatFormat,
}
use Part::{
    Bool, Byte, Case, ConvDims, DotDims, FloatFormat, Int, Ints, Key, Operand, Operands,
    OperandsThen, Optional, Precision, PrecisionAndAlgorithm, Slices, Str, Symbol, Window,
};

const COMMA: Part = Byte(b',');
const ONE: &[Part] = &[Operand];
const TWO: &[Part] = &[Operand, COMMA, Operand];
const THREE: &[Part] = &[Operand, COMMA, Operand, COMMA, Operand];
const ANY: &[Part] = &[Operands];

/// The format, in version `shardy`, of the op called `name`, whose custom syntax has operands and
/// attributes before the types.
pub(super) fn format_of(name: &str, shardy: Version) -> &'static [Part] {
    let Some((dialect, op)) = name.split_once('.') else { return ANY };
    match dialect {
        "stablehlo" => stablehlo(op),
        "chlo" => chlo(op, shardy),
        "mhlo" => mhlo(op),
        "arith" if is_binary_arith(op) => TWO,
        "arith" | "tensor" => ONE,
        _ => ANY,
    }
}

fn is_binary_arith(op: &str) -> bool {
    let is_cast = op.contains("ext") || op.contains("trunc") || op.contains("to");
    !is_cast && !matches!(op, "negf" | "index_cast" | "bitcast")
}

fn stablehlo(op: &str) -> &'static [Part] {
    match op {
        "iota" => &[Key("dim"), Int],
        "dynamic_iota" | "get_dimension_size" => &[Operand, COMMA, Key("dim"), Int],
        "create_token" | "replica_id" | "partition_id" => &[],
        "add"
        | "atan2"
        | "divide"
        | "maximum"
        | "minimum"
        | "multiply"
        | "power"
        | "remainder"
        | "shift_left"
        | "shift_right_arithmetic"
        | "shift_right_logical"
        | "subtract"
        | "and"
        | "or"
        | "xor" => TWO,
        "clamp" => THREE,
        "complex"
        | "select"
        | "is_finite"
        | "after_all"
        | "tuple"
        | "bitcast_convert"
        | "reshape"
        | "dynamic_reshape"
        | "dynamic_update_slice"
        | "real_dynamic_slice"
        | "dynamic_pad" => ANY,
        "get_tuple_element" => &[Operand, Byte(b'['), Int, Byte(b']')],
        "compare" => &[
            Case("comparison_direction"),
            COMMA,
            Operand,
            COMMA,
            Operand,
            Optional(&[Case("comparison_type")]),
        ],
        "slice" => &[Operand, Slices],
        "dynamic_slice" => &[Operand, COMMA, OperandsThen, Key("sizes"), Ints],
        "broadcast" => &[Operand, COMMA, Key("sizes"), Ints],
        "broadcast_in_dim" | "transpose" | "reverse" => &[Operand, COMMA, Key("dims"), Ints],
        "dynamic_broadcast_in_dim" => &[Operand, COMMA, Operand, COMMA, Key("dims"), Ints],
        "cholesky" => &[Operand, Optional(&[Key("lower"), Bool])],
        "concatenate" => &[OperandsThen, Key("dim"), Int],
        "set_dimension_size" => &[Operand, COMMA, Operand, COMMA, Key("dim"), Int],
        "composite" => &[Str, Operands],
        "custom_call" => &[Symbol, Byte(b'('), Operands, Byte(b')')],
        "convolution" => &[
            Byte(b'('),
            Operands,
            Byte(b')'),
            Key("dim_numbers"),
            ConvDims,
            COMMA,
            Key("window"),
            Window,
        ],
        "dot" => &[Operand, COMMA, Operand, Precision],
        "dot_general" => &[Operand, COMMA, Operand, COMMA, DotDims, PrecisionAndAlgorithm],
        "einsum" => &[Operand, COMMA, Operand, COMMA, Key("config"), Str],
        "unary_einsum" => &[Operand, COMMA, Key("config"), Str],
        "fft" => &[Operand, COMMA, Key("type"), Case("fft_type"), COMMA, Key("length"), Ints],
        "pad" => &[
            Operand,
            COMMA,
            Operand,
            COMMA,
            Key("low"),
            Ints,
            COMMA,
            Key("high"),
            Ints,
            COMMA,
            Key("interior"),
            Ints,
        ],
        "rng" => &[
            Operand,
            COMMA,
            Operand,
            COMMA,
            Operand,
            COMMA,
            Key("distribution"),
            Case("rng_distribution"),
        ],
        "rng_bit_generator" => &[Operand, COMMA, Key("algorithm"), Case("rng_algorithm")],
        "reduce_precision" => &[Operand, COMMA, Key("format"), FloatFormat],
        _ => ONE,
    }
}

fn mhlo(op: &str) -> &'static [Part] {
    match op {
        "topk" => &[
            Byte(b'('),
            Operand,
            COMMA,
            Key("k"),
            Int,
            Optional(&[Key("largest"), Bool]),
            Byte(b')'),
        ],
        _ => ONE,
    }
}

fn chlo(op: &str, shardy: Version) -> &'static [Part] {
    match op {
        "top_k" if shardy.has(Change::StableTopK) => &[
            Byte(b'('),
            Operand,
            COMMA,
            Key("k"),
            Int,
            Optional(&[Key("is_stable"), Bool]),
            Byte(b')'),
        ],
        "top_k" => &[Byte(b'('), Operand, COMMA, Key("k"), Int, Byte(b')')],
        "broadcast_select" => THREE,
        "next_after" | "polygamma" | "zeta" | "mulhi" => TWO,
        _ if op.starts_with("broadcast_") => TWO,
        _ => ONE,
    }
}
