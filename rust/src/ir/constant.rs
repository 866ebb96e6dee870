//! The values of constants, in a form that can be compared.

use super::{OpFlags, OpText, Program};
use crate::index::OpId;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

/// The value of a constant, without its type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ConstantValue<'a> {
    /// All elements are the floating-point number with these bits, as `f64`.
    Splat(u64),
    /// All elements have this value, which is not a floating-point number; as written.
    Element(&'a str),
    /// Any other value, as written.
    Text(&'a str),
}

impl<'a> ConstantValue<'a> {
    /// The value that is written as `text`.
    pub fn parse(text: &'a str) -> Self {
        let value = text.rsplit_once(':').map_or(text, |(value, _)| value).trim();
        let inner = value.strip_prefix("dense<").and_then(|value| value.strip_suffix('>'));
        match inner.and_then(only_element) {
            Some(element) => float(element).map_or(Self::Element(element), Self::Splat),
            None => Self::Text(value),
        }
    }
    /// Whether all elements are zero.
    pub fn is_zero(self) -> bool {
        match self {
            Self::Splat(bits) => f64::from_bits(bits) == 0.0,
            Self::Element(text) => text == "0" || text == "false",
            Self::Text(_) => false,
        }
    }
}

impl Program {
    /// The value of `op`, a constant.
    pub fn constant_value(&self, op: OpId) -> ConstantValue<'_> {
        ConstantValue::parse(self.constant_text(op))
    }
    /// The value of `op`, a constant, as it is written, maybe with a type.
    pub fn constant_text(&self, op: OpId) -> &str {
        let attr = self.op_attrs(op).iter().find(|attr| self.strings.get(attr.name) == "value");
        attr.map_or_else(|| self.written_value(op), |attr| self.text.get(attr.value))
    }
    /// Whether `op`, a constant, is written in custom syntax, with the value after the dictionary: in the
    /// generic form a colon follows the dictionary.
    pub fn has_written_value(&self, op: OpId) -> bool {
        let OpText { span, dict, .. } = self.printing.ops[op];
        let bytes = self.text.get(span).as_bytes();
        let mut at = dict.end.saturating_sub(span.start) as usize;
        while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\t' | b'\r')) {
            at += 1;
        }
        bytes.get(at) != Some(&b':')
    }
    /// The text of `op` between its dictionary and its location.
    fn written_value(&self, op: OpId) -> &str {
        let OpText { span, dict, loc } = self.printing.ops[op];
        let start = dict.end.saturating_sub(span.start) as usize;
        let text = self.text.get(span).get(start..).unwrap_or_default();
        if self.printing.flags[op].has(OpFlags::LOC_CHANGED) {
            return without_location(text);
        }
        if loc.is_empty() {
            return text;
        }
        let len = loc.start.saturating_sub(dict.end) as usize;
        let text = text.get(..len).unwrap_or(text).trim_end();
        let text = text.strip_suffix('(').unwrap_or(text).trim_end();
        text.strip_suffix("loc").unwrap_or(text)
    }
    /// A hash of the value of `op`.
    pub fn constant_hash(&self, op: OpId) -> u64 {
        let mut hasher = FxHasher::default();
        self.constant_value(op).hash(&mut hasher);
        hasher.finish()
    }
}

/// `text`, an attribute and its type, without the location that may follow them.
fn without_location(text: &str) -> &str {
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        if in_string {
            in_string = is_escaped || byte != b'"';
            is_escaped = byte == b'\\' && !is_escaped;
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' | b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'l' if depth == 0 && text[at..].starts_with("loc(") => return text[..at].trim_end(),
            _ => {}
        }
    }
    text
}

/// The value of all elements of `dense<inner>` if they are equal: `1` for `1` and for `[[1, 1]]`.
fn only_element(inner: &str) -> Option<&str> {
    let inner = inner.trim();
    if !inner.starts_with('[') {
        return Some(inner);
    }
    if inner.contains(['"', '(']) {
        return None;
    }
    let elements = inner.split(['[', ',', ']']).map(str::trim);
    let mut elements = elements.filter(|element| !element.is_empty());
    let first = elements.next()?;
    let number = float(first);
    let is_same = |other: &str| other == first || (number.is_some() && float(other) == number);
    elements.all(is_same).then_some(first)
}

/// The bits of a number with a decimal point or an exponent.
fn float(element: &str) -> Option<u64> {
    let is_float = element.len() < 40
        && element.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'))
        && !element.contains('x');
    let number: f64 = element.parse().ok().filter(|_| is_float)?;
    Some(number.to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splats_are_compared_as_numbers() {
        let value = ConstantValue::parse;
        assert_eq!(value("dense<1.0>"), value("dense<1.000000e+00>"));
        assert_ne!(value("dense<1.0>"), value("dense<-1.0>"));
        assert_eq!(value("dense<1> : tensor<i32>"), ConstantValue::Element("1"));
        assert_eq!(value("dense<0x7FC00000>"), ConstantValue::Element("0x7FC00000"));
    }

    #[test]
    fn locations_are_no_part_of_values() {
        let text = " dense<\"loc(\\\" >\"> : tensor<1x!a.b> loc(\"a\"(\"f.py\":1:2))";
        assert_eq!(without_location(text), " dense<\"loc(\\\" >\"> : tensor<1x!a.b>");
        assert_eq!(without_location(" dense<1> : tensor<i32>"), " dense<1> : tensor<i32>");
    }

    #[test]
    fn lists_of_one_element_are_splats() {
        let value = ConstantValue::parse;
        assert_eq!(value("dense<[2]>"), value("dense<2>"));
        assert_eq!(value("dense<[[1.0], [1.000000e+00]]>"), value("dense<1.0>"));
        assert_eq!(value("dense<[1, 2]>"), ConstantValue::Text("dense<[1, 2]>"));
        assert_eq!(value("dense<[]>"), ConstantValue::Text("dense<[]>"));
    }
}
