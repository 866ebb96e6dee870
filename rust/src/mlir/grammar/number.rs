//! Number literals, and the range of numbers of a type.

use crate::mlir::cursor::Cursor;

/// A number literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    /// `1`, `-1`: whether it is negative, and what follows the sign, saturated.
    Integer(bool, u128),
    /// `0x1F`, an integer, or the bits of a float.
    Hex(bool, u128),
    /// `1.5e3`
    Float,
}

/// The integers that a type can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IntegerRange {
    /// Integers of this many bits; whether the type is signed.
    Bits(u32, bool),
    /// None: it is a floating-point type.
    Floats,
    /// None: it has no numbers.
    Nothing,
}

impl IntegerRange {
    /// The range of the scalar type `ty`.
    pub fn of(ty: &str) -> Self {
        let bits = |prefix: &str| ty.strip_prefix(prefix).and_then(|bits| bits.parse().ok());
        if ty == "index" {
            return Self::Bits(64, true);
        }
        if let Some(bits) = bits("si") {
            return Self::Bits(bits, true);
        }
        if let Some(bits) = bits("ui").or_else(|| bits("i")) {
            return Self::Bits(bits, false);
        }
        if super::types::is_float(ty) {
            Self::Floats
        } else {
            Self::Nothing
        }
    }
}

impl Number {
    /// Reads a number, after its sign if it has one.
    pub fn read(cursor: &mut Cursor<'_>) -> Option<Self> {
        let is_negative = cursor.eat(b'-');
        cursor.skip_space();
        let start = cursor.pos;
        if cursor.peek() == b'0'
            && cursor.byte(start + 1) == b'x'
            && cursor.byte(start + 2).is_ascii_hexdigit()
        {
            cursor.pos += 2;
            while cursor.peek().is_ascii_hexdigit() {
                cursor.pos += 1;
            }
            let digits = &cursor.since(start)[2..];
            return Some(Self::Hex(
                is_negative,
                u128::from_str_radix(digits, 16).unwrap_or(u128::MAX),
            ));
        }
        skip_digits(cursor);
        if cursor.pos == start {
            return None;
        }
        if cursor.peek() != b'.' {
            let value = cursor.since(start).parse().unwrap_or(u128::MAX);
            return Some(Self::Integer(is_negative, value));
        }
        cursor.pos += 1;
        skip_digits(cursor);
        let end = cursor.pos;
        if matches!(cursor.peek(), b'e' | b'E') {
            cursor.pos += 1;
            if matches!(cursor.peek(), b'+' | b'-') {
                cursor.pos += 1;
            }
            if cursor.peek().is_ascii_digit() {
                skip_digits(cursor);
            } else {
                cursor.pos = end;
            }
        }
        Some(Self::Float)
    }
    pub fn is_float(self) -> bool {
        self == Self::Float
    }
    /// The error message if a type with this range cannot have the number.
    pub fn problem(self, range: IntegerRange) -> Option<&'static str> {
        match (self, range) {
            (_, IntegerRange::Nothing) => Some("a number of this type"),
            (Self::Float | Self::Hex(..), IntegerRange::Floats) => None,
            (Self::Integer(..), IntegerRange::Floats) => Some("an integer where a float is needed"),
            (Self::Float, IntegerRange::Bits(..)) => Some("a float where an integer is needed"),
            (
                Self::Integer(is_negative, value) | Self::Hex(is_negative, value),
                IntegerRange::Bits(bits, is_signed),
            ) => {
                let half = bits.checked_sub(1).and_then(|bits| 1_u128.checked_shl(bits));
                // Wider integers are not checked.
                let half = half.filter(|_| bits <= 64)?;
                let fits = if is_negative {
                    value <= half
                } else if is_signed {
                    value < half
                } else {
                    value < half * 2
                };
                (!fits).then_some("the integer is out of the range of its type")
            }
        }
    }
}

fn skip_digits(cursor: &mut Cursor<'_>) {
    while cursor.peek().is_ascii_digit() {
        cursor.pos += 1;
    }
}
