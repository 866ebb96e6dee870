//! Number literals, and the ranges of number types.

use crate::mlir::cursor::Cursor;

/// A number literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    /// `1`, `-1`: whether it is negative, and its absolute value, saturated.
    Integer(bool, u128),
    /// `0x1F`, an integer or the bits of a float: whether it is negative, and its absolute value,
    /// saturated.
    Hex(bool, u128),
    /// `1.5e3`, `-1.5e3`: whether it is negative.
    Float(bool),
}

/// Where a number is; MLIR's error messages depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// `1 : i32`
    Attribute,
    /// `dense<1> : tensor<i32>`
    Elements,
    /// `array<i32: 1>`
    Array,
}

/// The integers that are values of a type.
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
        Some(Self::Float(is_negative))
    }
    pub fn is_float(self) -> bool {
        matches!(self, Self::Float(_))
    }
    const fn is_negative(self) -> bool {
        matches!(self, Self::Hex(true, _) | Self::Integer(true, _) | Self::Float(true))
    }
    /// The error message if a number of type `ty` cannot be this one.
    pub fn problem(self, ty: &str, place: Place) -> Option<&'static str> {
        let says = |messages: [&'static str; 3]| Some(messages[place as usize]);
        match (self, IntegerRange::of(ty)) {
            (Self::Float(_), IntegerRange::Nothing) => {
                Some("floating point value not valid for specified type")
            }
            (_, IntegerRange::Nothing) => Some("integer literal not valid for specified type"),
            (_, IntegerRange::Floats) => self.float_problem(ty),
            _ if self.is_negative() && ty.starts_with("ui") && place == Place::Elements => {
                Some("expected unsigned integer elements, but parsed negative value")
            }
            (Self::Float(_), IntegerRange::Bits(..)) => says([
                "floating point value not valid for specified type",
                "expected integer elements, but parsed floating-point",
                "expected integer literal",
            ]),
            _ if self.is_negative() && ty.starts_with("ui") && place == Place::Attribute => {
                Some("negative integer literal not valid for unsigned integer type")
            }
            (_, IntegerRange::Bits(bits, is_signed)) if !self.fits(bits, is_signed) => says([
                "integer constant out of range for attribute",
                "integer constant out of range for type",
                "integer constant out of range",
            ]),
            _ => None,
        }
    }
    fn float_problem(self, ty: &str) -> Option<&'static str> {
        match self {
            Self::Float(_) => None,
            Self::Integer(..) => {
                Some("unexpected decimal integer literal for a floating point value")
            }
            Self::Hex(true, _) => Some("hexadecimal float literal should not have a leading minus"),
            Self::Hex(_, bits) => {
                let is_too_wide = bits.checked_shr(float_bits(ty)).unwrap_or(0) != 0;
                is_too_wide.then_some("hexadecimal float constant out of range for type")
            }
        }
    }
    /// Whether an integer type of this many bits has this value. As in MLIR, `-0` is invalid.
    fn fits(self, bits: u32, is_signed: bool) -> bool {
        let (Self::Integer(is_negative, value) | Self::Hex(is_negative, value)) = self else {
            return false;
        };
        if bits == 0 {
            return !is_negative && value == 0;
        }
        // Integer types that are wider than `u128` are not checked.
        let half = bits.checked_sub(1).filter(|_| bits < 128).map(|bits| 1_u128 << bits);
        let is_below = |end: Option<u128>| end.is_none_or(|end| value < end);
        if is_negative {
            value != 0 && half.is_none_or(|half| value <= half)
        } else if is_signed {
            is_below(half)
        } else {
            is_below(half.map(|half| half * 2))
        }
    }
}

/// The number of bits of the float type `ty`.
pub(super) fn float_bits(ty: &str) -> u32 {
    if ty == "tf32" {
        return 19;
    }
    crate::ir::element_bits(ty).unwrap_or(128)
}

fn skip_digits(cursor: &mut Cursor<'_>) {
    while cursor.peek().is_ascii_digit() {
        cursor.pos += 1;
    }
}
