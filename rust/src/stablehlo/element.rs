//! Element types of tensors, and the sets of them that ops take.

use std::fmt;
use std::rc::Rc;

/// The element type of a tensor. A foreign type (see [`Element::is_foreign`]) is in all sets and
/// equal to any other, so that it passes all checks.
#[derive(Clone, Debug)]
pub enum Element {
    /// A float that `StableHLO` has: `f32`, `bf16`, `f8E4M3FN`.
    Float(Float),
    /// A float that MLIR has and `StableHLO` does not: `tf32`, `f80`, `f128`.
    OtherFloat(&'static str),
    /// `i32`, `ui8`, `si16`.
    Integer {
        /// How many bits it has.
        bits: u32,
        /// Its signedness.
        sign: Sign,
    },
    /// `index`
    Index,
    /// `complex<part>`
    Complex(Rc<Element>),
    /// Any other type, as text, such as `!quant.uniform<...>`.
    Other(Rc<str>),
}

impl PartialEq for Element {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Float(a), Self::Float(b)) => a == b,
            (Self::OtherFloat(a), Self::OtherFloat(b)) => a == b,
            (
                Self::Integer { bits, sign },
                Self::Integer { bits: other_bits, sign: other_sign },
            ) => bits == other_bits && sign == other_sign,
            (Self::Index, Self::Index) => true,
            (Self::Complex(a), Self::Complex(b)) => a == b,
            _ => self.is_equal_to_foreign(other),
        }
    }
}

/// A float type of `StableHLO`, by its index in [`FLOATS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Float(u8);

impl Float {
    /// `f32`
    pub const F32: Self = Self(0);
    /// `bf16`
    pub const BF16: Self = Self(1);
    /// `f64`
    pub const F64: Self = Self(3);

    fn parse(name: &str) -> Option<Self> {
        FLOATS.iter().position(|float| *float == name).map(|place| Self(place as u8))
    }
    const fn name(self) -> &'static str {
        FLOATS[self.0 as usize]
    }
}

/// The signedness in the name of an integer type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sign {
    /// `i32`
    Signless,
    /// `si32`
    Signed,
    /// `ui32`
    Unsigned,
}

const FLOATS: [&str; 15] = [
    "f32",
    "bf16",
    "f16",
    "f64",
    "f4E2M1FN",
    "f6E2M3FN",
    "f6E3M2FN",
    "f8E3M4",
    "f8E4M3",
    "f8E4M3FN",
    "f8E4M3FNUZ",
    "f8E4M3B11FNUZ",
    "f8E5M2",
    "f8E5M2FNUZ",
    "f8E8M0FNU",
];
const OTHER_FLOATS: [&str; 3] = ["tf32", "f80", "f128"];

impl Element {
    /// The element type with the name `text`.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        if let Some(integer) = Self::integer(text) {
            return integer;
        }
        if let Some(float) = Float::parse(text) {
            return Self::Float(float);
        }
        if text == "index" {
            return Self::Index;
        }
        if let Some(part) = text.strip_prefix("complex<").and_then(|rest| rest.strip_suffix('>')) {
            return Self::Complex(Rc::new(Self::parse(part)));
        }
        let other = OTHER_FLOATS.into_iter().find(|name| *name == text);
        other.map_or_else(|| Self::Other(text.into()), Self::OtherFloat)
    }
    fn integer(text: &str) -> Option<Self> {
        let (sign, digits) = match text.as_bytes() {
            [b'i', ..] => (Sign::Signless, &text[1..]),
            [b's', b'i', ..] => (Sign::Signed, &text[2..]),
            [b'u', b'i', ..] => (Sign::Unsigned, &text[2..]),
            _ => return None,
        };
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        let bits = digits.parse().ok().filter(|_| is_number)?;
        Some(Self::Integer { bits, sign })
    }
    /// The boolean.
    pub const BOOL: Self = Self::signless(1);
    /// `i32`
    pub const I32: Self = Self::signless(32);
    /// `i64`
    pub const I64: Self = Self::signless(64);
    const fn signless(bits: u32) -> Self {
        Self::Integer { bits, sign: Sign::Signless }
    }
    /// Whether it is a float of MLIR.
    pub const fn is_float(&self) -> bool {
        matches!(self, Self::Float(_) | Self::OtherFloat(_))
    }
    /// Whether it is an integer of any width and sign; `index` is not.
    pub const fn is_integer(&self) -> bool {
        matches!(self, Self::Integer { .. })
    }
    /// Whether one of the two is foreign, or both are the same other type.
    fn is_equal_to_foreign(&self, other: &Self) -> bool {
        let is_same = matches!((self, other), (Self::Other(a), Self::Other(b)) if a == b);
        is_same || self.is_foreign() || other.is_foreign()
    }
    /// Whether it is a type of a dialect that is neither MLIR's nor `StableHLO`'s, such as a
    /// quantized type.
    pub fn is_foreign(&self) -> bool {
        match self {
            Self::Complex(part) => part.is_foreign(),
            Self::Other(text) => text.starts_with('!') && !text.starts_with("!stablehlo"),
            _ => false,
        }
    }
    /// The type of the parts of a complex type, or the type itself.
    pub fn real_part(&self) -> &Self {
        match self {
            Self::Complex(part) => part,
            _ => self,
        }
    }
    /// The complex type with this part.
    #[must_use]
    pub fn into_complex(self) -> Self {
        Self::Complex(Rc::new(self))
    }
    /// The width of an element in bits in MLIR; for a complex type, the width of both parts.
    pub fn bits(&self) -> Option<u32> {
        match self {
            Self::Integer { bits, .. } => Some(*bits),
            Self::Float(Float::BF16) => Some(16),
            Self::Float(float) => float.name()[1..].split('E').next()?.parse().ok(),
            Self::OtherFloat("tf32") => Some(19),
            Self::OtherFloat(name) => name[1..].parse().ok(),
            Self::Complex(part) => part.bits()?.checked_mul(2),
            Self::Index | Self::Other(_) => None,
        }
    }
    /// The sets that it is in.
    #[inline]
    pub fn sets(&self) -> Elements {
        match self {
            Self::Float(Float::F32 | Float::F64) => Elements::FLOAT.or(Elements::F32_OR_F64),
            Self::Float(_) => Elements::FLOAT,
            Self::Integer { bits, sign } => integer_sets(*bits, *sign),
            Self::Index => Elements::INDEX,
            Self::Complex(part) if matches!(**part, Self::Float(Float::F32 | Float::F64)) => {
                Elements::COMPLEX
            }
            _ if self.is_foreign() => Elements::ALL,
            Self::OtherFloat(_) | Self::Complex(_) | Self::Other(_) => Elements::NONE,
        }
    }
}

const fn integer_sets(bits: u32, sign: Sign) -> Elements {
    let width = match (bits, sign) {
        (1, Sign::Signless) => Elements::BOOL,
        (32, Sign::Signless) => Elements::SIGNLESS.or(Elements::I32),
        (32, Sign::Unsigned) => Elements::UNSIGNED.or(Elements::UI32),
        (2 | 4 | 8 | 16 | 64, Sign::Signless) => Elements::SIGNLESS,
        (2 | 4 | 8 | 16 | 64, Sign::Unsigned) => Elements::UNSIGNED,
        _ => Elements::NONE,
    };
    width.or(Elements::ANY_INTEGER)
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Float(float) => f.write_str(float.name()),
            Self::OtherFloat(name) => f.write_str(name),
            Self::Integer { bits, sign: Sign::Signless } => write!(f, "i{bits}"),
            Self::Integer { bits, sign: Sign::Signed } => write!(f, "si{bits}"),
            Self::Integer { bits, sign: Sign::Unsigned } => write!(f, "ui{bits}"),
            Self::Index => f.write_str("index"),
            Self::Complex(part) => write!(f, "complex<{part}>"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

/// A set of element types, as a union of the classes that definitions of ops use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Elements(u16);

impl Elements {
    /// None.
    pub const NONE: Self = Self(0);
    /// All.
    pub const ALL: Self = Self(u16::MAX);
    /// Floats of `StableHLO`.
    pub const FLOAT: Self = Self(1);
    /// `f32`, `f64`.
    pub const F32_OR_F64: Self = Self(2);
    /// `i1`.
    pub const BOOL: Self = Self(4);
    /// `i2` to `i64`.
    pub const SIGNLESS: Self = Self(8);
    /// `ui2` to `ui64`.
    pub const UNSIGNED: Self = Self(16);
    /// Both.
    pub const INTEGER: Self = Self::SIGNLESS.or(Self::UNSIGNED);
    /// `complex<f32>`, `complex<f64>`.
    pub const COMPLEX: Self = Self(32);
    /// Quantized with one scale.
    pub const QUANTIZED: Self = Self(64);
    /// Quantized with scales along a dim.
    pub const PER_AXIS: Self = Self(128);
    /// `index`.
    pub const INDEX: Self = Self(256);
    /// `i32`.
    pub const I32: Self = Self(512);
    /// `ui32`.
    pub const UI32: Self = Self(1024);
    /// Integers of MLIR, of any width.
    pub const ANY_INTEGER: Self = Self(2048);

    /// The union of both sets.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// Whether they have an element in common.
    #[inline]
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
    /// MLIR's name of one of the sets above.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FLOAT => "4/6/8/16/32/64-bit float",
            Self::F32_OR_F64 => "32/64-bit float",
            Self::BOOL => "bool",
            Self::SIGNLESS => "2/4/8/16/32/64-bit signless integer",
            Self::INTEGER => "2/4/8/16/32/64-bit integer",
            Self::COMPLEX => "complex type with 32/64-bit float elements",
            Self::QUANTIZED => "per-tensor integer quantized",
            Self::PER_AXIS => "per-axis integer quantized",
            Self::INDEX => "index",
            Self::I32 => "32-bit signless integer",
            Self::UI32 => "32-bit unsigned integer",
            _ => "integer",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back() {
        let texts = ["f32", "bf16", "i1", "ui8", "si4", "index", "complex<f64>", "f8E4M3B11FNUZ"];
        for text in texts.into_iter().chain(["tf32", "none", "!quant.uniform<i8:f32, 2.0>"]) {
            assert_eq!(Element::parse(text).to_string(), text);
        }
    }
    #[test]
    fn floats_with_names_of_their_own() {
        for (float, name) in [(Float::F32, "f32"), (Float::BF16, "bf16"), (Float::F64, "f64")] {
            assert_eq!(float.name(), name);
        }
    }
    #[test]
    fn widths() {
        let bits = |text| Element::parse(text).bits();
        assert_eq!(bits("f8E4M3FN"), Some(8));
        assert_eq!(bits("complex<f64>"), Some(128));
        assert_eq!(bits("i1"), Some(1));
        assert_eq!(bits("index"), None);
    }
    #[test]
    fn sets_of_elements() {
        assert!(Element::parse("i32").sets().meets(Elements::INTEGER));
        assert!(!Element::parse("i1").sets().meets(Elements::INTEGER));
        assert!(!Element::parse("si32").sets().meets(Elements::INTEGER));
        assert!(!Element::parse("i3").sets().meets(Elements::INTEGER));
        assert!(!Element::parse("complex<bf16>").sets().meets(Elements::COMPLEX));
    }
}
