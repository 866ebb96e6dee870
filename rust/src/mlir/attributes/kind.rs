//! Kinds of attributes that custom syntax expects.

use super::value::AttrValue;

/// A kind of attribute that custom syntax has at a fixed place, where an alias may be used.
#[derive(Clone, Copy, Debug)]
pub enum OwnKind {
    /// `array<i64: ...>`
    Ints,
    /// An integer of this type: `i64`, or `i1` for a boolean.
    Number(&'static str),
    /// `#stablehlo<name ...>` or `#stablehlo.name<...>`
    Of(&'static str),
}

impl OwnKind {
    /// MLIR's error if `text`, an attribute without aliases, is not of this kind.
    pub fn problem(self, text: &str) -> Option<String> {
        let is_right = match self {
            Self::Ints => is_array_of(text, "i64"),
            Self::Of(name) => text_is_of(text, "stablehlo", name),
            Self::Number(needed) => {
                let value = AttrValue::parse(text);
                if let Some(ty) = type_of(&value, text).filter(|ty| *ty != needed) {
                    return Some(format!(
                        "attribute type different than expected: expected '{needed}', but got '{ty}'"
                    ));
                }
                value.as_int().is_some()
            }
        };
        (!is_right).then(|| "invalid kind of attribute specified".to_owned())
    }
}

/// The type of an attribute that has one.
fn type_of<'a>(value: &AttrValue<'a>, text: &'a str) -> Option<&'a str> {
    let written = || text.rsplit_once(':').map(|(_, ty)| past_space(ty).trim_end());
    match value {
        AttrValue::Bool(_) => Some("i1"),
        AttrValue::Int(_) => Some(written().unwrap_or("i64")),
        AttrValue::Float(_) => Some(written().unwrap_or("f64")),
        AttrValue::Dense { ty, .. } => Some(*ty),
        AttrValue::Str(_) => Some("none"),
        _ => None,
    }
}

/// Whether `text` is `array<element>` or `array<element: ...>`.
fn is_array_of(text: &str, element: &str) -> bool {
    let body = text.trim_start().strip_prefix("array").map(past_space);
    let body = body.and_then(|body| body.strip_prefix('<')).map(past_space);
    let rest = body.and_then(|body| body.strip_prefix(element)).map(past_space);
    rest.is_some_and(|rest| rest.starts_with([':', '>']))
}

/// `text` without the white space and the comments at its start.
pub fn past_space(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some(comment) = rest.strip_prefix("//") {
        rest = comment.split_once('\n').map_or("", |(_, after)| after.trim_start());
    }
    rest
}

/// Whether `text` is `#dialect.name<...>` or `#dialect<name ...>`.
pub fn text_is_of(text: &str, dialect: &str, name: &str) -> bool {
    let rest = text.trim_start().strip_prefix('#').and_then(|text| text.strip_prefix(dialect));
    let rest = rest.and_then(|rest| rest.strip_prefix(['.', '<']));
    let rest = rest.and_then(|rest| past_space(rest).strip_prefix(name));
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        let is = |kind: OwnKind, text| kind.problem(text).is_none();
        assert!(is(OwnKind::Ints, "array<i64: 1, 0>") && is(OwnKind::Ints, "array< i64 >"));
        assert!(!is(OwnKind::Ints, "array<i32: 1>") && !is(OwnKind::Ints, "[1]"));
        assert!(is(OwnKind::Number("i64"), "1") && is(OwnKind::Number("i64"), "1 : i64"));
        assert!(!is(OwnKind::Number("i64"), "1 : i32") && !is(OwnKind::Number("i64"), "\"a\""));
        assert!(is(OwnKind::Number("i1"), "true") && is(OwnKind::Number("i1"), "1 : i1"));
        assert!(is(OwnKind::Of("fft_type"), "#stablehlo<fft_type FFT>"));
        assert!(is(OwnKind::Of("fft_type"), "#stablehlo.fft_type<FFT>"));
        assert!(!is(OwnKind::Of("fft_type"), "loc(\"a\")"));
    }
}
