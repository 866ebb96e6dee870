//! Checks the elements of `dense<...>` against the shape and the element type of the attribute.

use super::number::{float_bits, IntegerRange, Number, Place};
use super::shaped::split_tensor;
use crate::error::{Result, Span};
use crate::mlir::cursor::{syntax, Cursor};

/// The elements between the brackets of `dense<...>`.
#[derive(Default)]
pub(super) struct Found<'a> {
    /// The sizes of the nested lists; empty for a lone element.
    pub shape: Vec<usize>,
    /// The number of elements; each part of a complex number counts.
    pub count: usize,
    /// The first float, the largest hexadecimal number, and the most negative and the largest
    /// integer.
    numbers: [Option<(Number, Span)>; 4],
    /// All numbers, if they are needed.
    pub all: Option<Vec<Number>>,
    /// The first `true` or `false`.
    word: Option<Span>,
    /// The first string.
    pub string: Option<(&'a str, Span)>,
    /// The first number or word.
    first: Option<Span>,
}

impl Found<'_> {
    /// Nothing found yet; all numbers will be kept.
    pub fn with_all_numbers() -> Self {
        Self { all: Some(Vec::new()), ..Self::default() }
    }
    /// Notes `true` or `false`.
    pub fn note_word(&mut self, span: Span) {
        self.first.get_or_insert(span);
        self.word.get_or_insert(span);
    }
    /// Notes a number.
    pub fn note(&mut self, number: Number, span: Span) {
        self.first.get_or_insert(span);
        if let Some(all) = &mut self.all {
            all.push(number);
        }
        let slot = match number {
            Number::Float(_) => 0,
            Number::Hex(..) => 1,
            Number::Integer(true, _) => 2,
            Number::Integer(false, _) => 3,
        };
        let is_larger = |old: Number| match (old, number) {
            (Number::Integer(_, old), Number::Integer(_, new))
            | (Number::Hex(_, old), Number::Hex(_, new)) => new > old,
            _ => false,
        };
        if self.numbers[slot].is_none_or(|(old, _)| is_larger(old)) {
            self.numbers[slot] = Some((number, span));
        }
    }
    /// The span and the error message of an element that a type `element` in `text` cannot have, if
    /// any.
    pub fn wrong_element(&self, text: &str, element: &str) -> Option<(Span, String)> {
        let range = IntegerRange::of(element);
        let said = |span: Span, text: &str| Some((span, text.to_owned()));
        if let Some((_, span)) = self.string {
            return match range {
                IntegerRange::Nothing => None,
                IntegerRange::Floats => said(span, "expected floating point literal"),
                IntegerRange::Bits(..) => said(span, "integer constant out of range for type"),
            };
        }
        if range == IntegerRange::Nothing {
            let span = self.first?;
            let token = text.get(span.start as usize..span.end as usize).unwrap_or("");
            let token = token.trim_start_matches(['-', ' ']);
            return Some((span, format!("expected string token, got {token}")));
        }
        if let Some(span) = self.word.filter(|_| element != "i1") {
            let message = if range == IntegerRange::Floats {
                "expected floating point literal"
            } else {
                "expected i1 type for 'true' or 'false' values"
            };
            return said(span, message);
        }
        let wrong = |&(number, span): &(Number, Span)| {
            said(span, number.problem(element, Place::Elements)?)
        };
        let all = self.numbers.iter().flatten().filter_map(wrong);
        all.min_by_key(|(span, _)| span.start)
    }
}

/// Whether the type at `ty` of `text` has a shape, or may have one since it is a dialect's. Types
/// of `StableHLO` have no shape.
pub(super) fn is_shaped(text: &str, ty: Span) -> bool {
    let name = text.get(ty.start as usize..ty.end as usize).unwrap_or("");
    ["tensor", "vector", "memref", "!"].iter().any(|start| name.starts_with(start))
        && !name.starts_with("!stablehlo")
}

/// A tensor type, or a buffer or vector type.
pub(super) struct ShapedType {
    pub shape: Vec<i64>,
    /// Its element type without white space.
    pub element: String,
    /// Its text without white space.
    pub name: String,
}

impl ShapedType {
    /// The type at `ty` of the elements at `span`; `None` if its element type is not known. Fails
    /// if it has no static shape.
    pub fn read(text: &str, span: Span, ty: Span) -> Result<Option<Self>> {
        let fail = |at: Span, problem: &str| Err(syntax(at, problem).into());
        let name = text.get(ty.start as usize..ty.end as usize).unwrap_or("");
        if !is_shaped(text, ty) {
            return fail(ty, "elements literal must be a shaped type");
        }
        let is_foreign = name.starts_with('!');
        let has_layout = name.contains('#') && !name.starts_with("tensor");
        if is_foreign || has_layout || name.contains('[') {
            // Types of dialects, and scalable vectors.
            return Ok(None);
        }
        let Ok(parts) = split_tensor(&mut Cursor::new(text, ty.start as usize), None) else {
            // A buffer with a layout or memory space.
            return Ok(None);
        };
        let shape: Option<Vec<i64>> = parts.shape.and_then(|shape| shape.into_iter().collect());
        let Some(shape) = shape else {
            return fail(span, "elements literal type must have static shape");
        };
        let element = text.get(parts.element.start as usize..parts.element.end as usize);
        let element: String = element.unwrap_or("").split_whitespace().collect();
        Ok(Some(Self { shape, element, name: name.split_whitespace().collect() }))
    }
}

/// Checks that the type at `ty` can have the elements at `span`; `found` is `None` for an empty
/// list.
pub(super) fn check(text: &str, found: Option<&Found<'_>>, span: Span, ty: Span) -> Result<()> {
    let Some(ShapedType { shape, element, name }) = ShapedType::read(text, span, ty)? else {
        return Ok(());
    };
    match problem((text, found), &shape, &element, &name) {
        Some((at, problem)) => Err(syntax(at.unwrap_or(span), problem).into()),
        None => Ok(()),
    }
}

/// The error message if the type `ty`, with this shape and element type, cannot have the elements;
/// with the span of the element, if it is about one.
pub(super) fn problem(
    (text, found): (&str, Option<&Found<'_>>),
    shape: &[i64],
    element: &str,
    ty: &str,
) -> Option<(Option<Span>, String)> {
    let count = shape.iter().try_fold(1_i64, |count, &size| count.checked_mul(size));
    let Some(found) = found else {
        let text = format!("parsed zero elements, but type ('{ty}') expected at least 1");
        return (count != Some(0)).then_some((None, text));
    };
    let part = element.strip_prefix("complex<").and_then(|part| part.strip_suffix('>'));
    let range = IntegerRange::of(part.unwrap_or(element));
    if let Some((bytes, at)) = found.string.filter(|_| found.shape.is_empty()) {
        if range != IntegerRange::Nothing {
            return hex_problem(bytes, element, count, ty).map(|text| (Some(at), text));
        }
    }
    let fits = found.shape.iter().zip(shape).all(|(&found, &dim)| i64::try_from(found) == Ok(dim));
    if !found.shape.is_empty() && (found.shape.len() != shape.len() || !fits) {
        let list = |sizes: Vec<String>| sizes.join(", ");
        let has = list(found.shape.iter().map(usize::to_string).collect());
        let needs = list(shape.iter().map(i64::to_string).collect());
        let text =
            format!("inferred shape of elements literal ([{has}]) does not match type ([{needs}])");
        return Some((None, text));
    }
    if part.is_some() {
        let (of, needs) = if found.shape.is_empty() {
            (element, Some(2))
        } else {
            (ty, count.and_then(|count| count.checked_mul(2)))
        };
        if needs.is_none_or(|needs| i64::try_from(found.count) != Ok(needs)) {
            let (has, needs) = (found.count, needs.unwrap_or(i64::MAX));
            let text =
                format!("parsed {has} elements, but type ('{of}') expected {needs} elements");
            return Some((None, text));
        }
    }
    found.wrong_element(text, part.unwrap_or(element)).map(|(at, text)| (Some(at), text))
}

/// The error message if `"0x..."` cannot be `count` elements of type `element`, or a splat of one.
fn hex_problem(bytes: &str, element: &str, count: Option<i64>, ty: &str) -> Option<String> {
    let is_hex = |digits: &&str| {
        digits.len() % 2 == 0 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    };
    let Some(digits) = bytes.strip_prefix("0x").filter(is_hex) else {
        return Some("expected string containing hex digits starting with `0x`".to_owned());
    };
    let has = digits.len() as u128 / 2;
    let each = u128::from(byte_width(element)?);
    let all = count.and_then(|count| u128::try_from(count).ok()).map(|count| count * each);
    let is_right = has == each || all == Some(has);
    (!is_right).then(|| format!("elements hex data size is invalid for provided type: '{ty}'"))
}

/// The bytes in which each element of a type is stored, in hexadecimal digits.
fn byte_width(element: &str) -> Option<u32> {
    if let Some(part) = element.strip_prefix("complex<").and_then(|part| part.strip_suffix('>')) {
        return byte_width(part)?.checked_mul(2);
    }
    let digits = ["si", "ui", "i"].iter().find_map(|prefix| element.strip_prefix(prefix));
    let bits = match digits.and_then(|digits| digits.parse::<u32>().ok()) {
        Some(bits) => bits,
        None if element == "index" => 64,
        None if IntegerRange::of(element) == IntegerRange::Floats => float_bits(element),
        None => return None,
    };
    Some(bits.div_ceil(8).max(1))
}
