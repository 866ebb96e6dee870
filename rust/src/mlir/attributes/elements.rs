//! The elements of dense attributes as bytes, in the layout of `NumPy` and `ml_dtypes`.
//!
//! Elements are little-endian and row-major. `i1` and types narrower than a byte take one byte, in
//! which signed integers are sign-extended. A decimal float is parsed as 64 bits and rounded to its
//! type, as MLIR does; a hexadecimal one gives the bits.

use super::value::AttrValue;

/// The format of a type's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scalar {
    Bool,
    /// The number of bits, and whether the type is signed.
    Integer(u32, bool),
    /// The bits of the exponent, the bits of the mantissa, the exponent bias, and the encoding of
    /// numbers out of range.
    Float(u32, u32, i32, Beyond),
}

/// The encoding of a number that is too large for a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beyond {
    /// Infinity, with the sign of the number.
    Infinite,
    /// NaN, whose bits after the sign are all ones; it is the only NaN of the format.
    Nan,
    /// The bits of a negative zero, which stand for NaN in this format.
    NegativeZero,
    /// The largest finite number, with the sign of the number.
    Largest,
}
use Beyond::{Infinite, Largest, Nan, NegativeZero};

impl Scalar {
    /// The scalar type that MLIR calls `name`.
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "i1" => Self::Bool,
            "index" => Self::Integer(64, true),
            "f64" => Self::Float(11, 52, 1023, Infinite),
            "f32" => Self::Float(8, 23, 127, Infinite),
            "f16" => Self::Float(5, 10, 15, Infinite),
            "bf16" => Self::Float(8, 7, 127, Infinite),
            "f8E5M2" => Self::Float(5, 2, 15, Infinite),
            "f8E5M2FNUZ" => Self::Float(5, 2, 16, NegativeZero),
            "f8E4M3" => Self::Float(4, 3, 7, Infinite),
            "f8E4M3FN" => Self::Float(4, 3, 7, Nan),
            "f8E4M3FNUZ" => Self::Float(4, 3, 8, NegativeZero),
            "f8E4M3B11FNUZ" => Self::Float(4, 3, 11, NegativeZero),
            "f8E3M4" => Self::Float(3, 4, 3, Infinite),
            "f8E8M0FNU" => Self::Float(8, 0, 127, Infinite),
            "f6E2M3FN" => Self::Float(2, 3, 1, Largest),
            "f6E3M2FN" => Self::Float(3, 2, 3, Largest),
            "f4E2M1FN" => Self::Float(2, 1, 1, Largest),
            _ => {
                let (digits, is_signed) = match name.strip_prefix("ui") {
                    Some(digits) => (digits, false),
                    None => (name.strip_prefix("si").or_else(|| name.strip_prefix('i'))?, true),
                };
                let bits = digits.parse().ok().filter(|bits| (2..=64).contains(bits))?;
                Self::Integer(bits, is_signed)
            }
        })
    }
    fn bits(self) -> u32 {
        match self {
            Self::Bool => 1,
            Self::Integer(bits, _) => bits,
            Self::Float(11, 52, ..) => 64,
            // `f8E8M0FNU` is an exponent only, without a sign bit.
            Self::Float(exponent, 0, ..) => exponent,
            Self::Float(exponent, mantissa, ..) => 1 + exponent + mantissa,
        }
    }
    fn bytes(self) -> usize {
        (self.bits() as usize).div_ceil(8).next_power_of_two()
    }
    /// The bits of `value`, an element of this type.
    fn encode(self, value: &AttrValue<'_>) -> Option<u64> {
        Some(match (self, value) {
            (Self::Bool, _) => u64::from(value.as_bool()?),
            (Self::Integer(bits, is_signed), AttrValue::Int(value)) => {
                extend(*value as u64, bits, is_signed)
            }
            (Self::Float(..), AttrValue::Int(bits)) => *bits as u64,
            (Self::Float(exponent, mantissa, bias, beyond), AttrValue::Float(value)) => {
                round(*value, (exponent, mantissa, bias), beyond)
            }
            _ => return None,
        })
    }
}

/// The lowest `bits` of `value`, sign-extended if `is_signed`, else zero-extended.
fn extend(value: u64, bits: u32, is_signed: bool) -> u64 {
    let unused = 64 - bits;
    if is_signed {
        (((value << unused) as i64) >> unused) as u64
    } else {
        value << unused >> unused
    }
}

/// The bits of the float nearest to `value`, in the format with these numbers of bits and this
/// bias. In a format without a sign bit, a sign is added to the highest bit of the exponent, as in
/// MLIR.
fn round(value: f64, (exponent_bits, mantissa_bits, bias): (u32, u32, i32), beyond: Beyond) -> u64 {
    if (exponent_bits, mantissa_bits) == (11, 52) {
        return value.to_bits();
    }
    let width = exponent_bits + mantissa_bits;
    let sign_bit = 1_u64 << if mantissa_bits == 0 { width - 1 } else { width };
    let (size, all) = (value.abs(), (1_u64 << width) - 1);
    let infinity = all >> mantissa_bits << mantissa_bits;
    let bits = if size == 0.0 {
        0
    } else if size.is_finite() {
        // Subnormal doubles are far smaller than the smallest number of each format.
        let exponent = ((size.to_bits() >> 52) as i32 - 1023).max(1 - bias);
        let unit = 2_f64.powi(exponent - mantissa_bits as i32);
        let units = (size / unit).round_ties_even() as u64;
        (((exponent + bias - 1) as u64) << mantissa_bits) + units
    } else {
        u64::MAX
    };
    let bits = match beyond {
        Infinite => bits.min(infinity),
        Nan | Largest => bits.min(all),
        NegativeZero if bits > all => return sign_bit,
        NegativeZero if bits == 0 => return 0,
        NegativeZero => bits,
    };
    let is_negative = if mantissa_bits == 0 { value < 0.0 } else { value.is_sign_negative() };
    bits | if is_negative { sign_bit } else { 0 }
}

/// The bytes of `value`, a dense attribute with `count` elements of type `element`; the bytes of
/// one element if it is a splat. `None` for other attributes.
pub fn element_bytes(value: &AttrValue<'_>, element: &str, count: usize) -> Option<Vec<u8>> {
    let AttrValue::Dense { elements, .. } = value else { return None };
    let part = element.strip_prefix("complex<").and_then(|part| part.strip_suffix('>'));
    let scalar = Scalar::of(part.unwrap_or(element).trim())?;
    let width = if part.is_some() { 2 } else { 1 };
    if let [AttrValue::Str(text)] = elements.as_slice() {
        return raw_bytes(text, scalar, width, count);
    }
    if elements.len() != count && elements.len() != 1 {
        return None;
    }
    let size = scalar.bytes();
    let mut bytes = Vec::with_capacity(elements.len() * size * width);
    let mut push = |value: &AttrValue<'_>| {
        bytes.extend_from_slice(&scalar.encode(value)?.to_le_bytes()[..size]);
        Some(())
    };
    for element in elements {
        match (element, part) {
            (AttrValue::Array(parts), Some(_)) if parts.len() == 2 => {
                parts.iter().try_for_each(&mut push)?;
            }
            (_, Some(_)) => return None,
            (value, None) => push(value)?,
        }
    }
    Some(bytes)
}

/// The bytes of `0x0123…`, as in memory; elements of `i1` may be packed.
fn raw_bytes(text: &str, scalar: Scalar, width: usize, count: usize) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x")?.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let mut bytes: Vec<u8> = digits.chunks(2).map(byte).collect::<Option<_>>()?;
    let one = scalar.bytes() * width;
    if scalar == Scalar::Bool && bytes.len() != count && bytes.len() == count.div_ceil(8) {
        return Some((0..count).map(|at| bytes[at / 8] >> (at % 8) & 1).collect());
    }
    if bytes.len() != one && bytes.len() != count * one {
        return None;
    }
    match scalar {
        Scalar::Bool => {
            for byte in &mut bytes {
                *byte = u8::from(*byte != 0);
            }
        }
        Scalar::Integer(bits @ 2..8, is_signed) => {
            for byte in &mut bytes {
                *byte = extend(u64::from(*byte), bits, is_signed) as u8;
            }
        }
        _ => {}
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str, element: &str, count: usize) -> Option<Vec<u8>> {
        element_bytes(&AttrValue::parse(text), element, count)
    }

    #[test]
    fn integers_are_little_endian() {
        assert_eq!(bytes("dense<[1, -2]> : t", "i16", 2), Some(vec![1, 0, 254, 255]));
        assert_eq!(bytes("dense<18446744073709551615> : t", "ui64", 4), Some(vec![255; 8]));
        assert_eq!(bytes("dense<0xFFFFFFFFFFFFFFFE> : t", "i64", 1).map(|b| b[0]), Some(254));
        assert_eq!(bytes("dense<[true, false]> : t", "i1", 2), Some(vec![1, 0]));
        assert_eq!(bytes("dense<[-1, 7]> : t", "i4", 2), Some(vec![255, 7]));
        assert_eq!(bytes("dense<[15, 7]> : t", "ui4", 2), Some(vec![15, 7]));
        assert_eq!(bytes("dense<[1, 2, 3]> : t", "i8", 2), None);
    }

    #[test]
    fn floats_are_rounded_once_from_64_bits() {
        let one = |text: &str, ty: &str| {
            let bytes = bytes(&format!("dense<{text}> : t"), ty, 1).unwrap_or_default();
            bytes.iter().rev().fold(0_u64, |bits, &byte| bits << 8 | u64::from(byte))
        };
        assert_eq!(one("1.5", "f32"), u64::from(1.5_f32.to_bits()));
        assert_eq!(one("-1.0e-40", "f32"), u64::from((-1.0e-40_f32).to_bits()));
        assert_eq!(one("0.1", "f64"), 0.1_f64.to_bits());
        assert_eq!(one("0x7FC00000", "f32"), 0x7FC0_0000);
        assert_eq!(one("-0.0", "bf16"), 0x8000);
        // A tie between 1 and the next number, and a number just above the next tie.
        assert_eq!(one("1.00390625", "bf16"), 0x3F80);
        assert_eq!(one("1.01171875", "bf16"), 0x3F82);
        assert_eq!(one("65520.0", "f16"), 0x7C00);
        assert_eq!(one("6.0e-8", "f16"), 1);
        assert_eq!(one("448.0", "f8E4M3FN"), 0x7E);
        assert_eq!(one("0.015625", "f8E4M3FN"), 0x08);
        assert_eq!(one("2.0", "f8E8M0FNU"), 128);
        assert_eq!(one("-6.0", "f4E2M1FN"), 0xF);
        // Out of range: infinity, NaN, the largest number. Some formats have no negative zero.
        assert_eq!(one("-256.0", "f8E4M3"), 0xF8);
        assert_eq!((one("464.0", "f8E4M3FN"), one("465.0", "f8E4M3FN")), (0x7E, 0x7F));
        assert_eq!((one("-256.0", "f8E4M3FNUZ"), one("-0.0", "f8E4M3FNUZ")), (0x80, 0));
        assert_eq!((one("-1e-9", "f8E5M2FNUZ"), one("-9.0", "f6E2M3FN")), (0, 0x3F));
        assert_eq!(one("1.0", "f8E5M2FNUZ"), 16 << 2);
    }

    #[test]
    fn raw_bytes_are_those_in_memory() {
        assert_eq!(bytes("dense<\"0x0A000000FF\"> : t", "i32", 2), None);
        let text = "dense<\"0x0A000000FF000000\"> : t";
        assert_eq!(bytes(text, "i32", 2), Some(vec![10, 0, 0, 0, 255, 0, 0, 0]));
        assert_eq!(bytes("dense<\"0x05\"> : t", "i1", 3), Some(vec![1, 0, 1]));
        assert_eq!(bytes("dense<\"0x0100FF\"> : t", "i1", 3), Some(vec![1, 0, 1]));
        assert_eq!(bytes("dense<(1.0, -1.0)> : t", "complex<f32>", 9).map(|b| b.len()), Some(8));
    }
}
