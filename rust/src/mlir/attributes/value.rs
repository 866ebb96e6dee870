//! Attribute values, parsed from the text of attributes.
//!
//! Attributes are stored as text, and parsed when they are used. [`AttrValue::parse`] never fails:
//! text of an unknown form is [`AttrValue::Other`]. Values borrow from the text.
//!
//! | text | value |
//! | --- | --- |
//! | `5 : i64`, `-1` | `Int` |
//! | `true` | `Bool` |
//! | `array<i64: 1, 2>` | `Ints` |
//! | `array<i1: true>` | `DenseArray` of `Bool` |
//! | `dense<[[1, 2]]> : tensor<1x2xi64>` | `Dense` with its type; a splat has one element |
//! | `#stablehlo.dot<lhs_contracting_dimensions = [1]>` | `Struct` `stablehlo.dot` with that field |
//! | `#stablehlo<precision DEFAULT>` | `Keyword` `DEFAULT` |

use super::cursor::{Aliases, AttrCursor};
use crate::inline_list::InlineList;
use std::borrow::Cow;

/// Fields of a dictionary or a structured attribute, in order.
pub type Fields<'a> = Vec<(&'a str, AttrValue<'a>)>;

/// An attribute of an op, in a form chosen by the caller: a name, a value, and possibly more.
pub trait Field<'a> {
    /// An attribute with this name and value.
    fn new(name: &'a str, value: AttrValue<'a>) -> Self;
    /// Its name.
    fn name(&self) -> &'a str;
    /// Its value, mutable.
    fn value_mut(&mut self) -> &mut AttrValue<'a>;
}

impl<'a> Field<'a> for (&'a str, AttrValue<'a>) {
    fn new(name: &'a str, value: AttrValue<'a>) -> Self {
        (name, value)
    }
    fn name(&self) -> &'a str {
        self.0
    }
    fn value_mut(&mut self) -> &mut AttrValue<'a> {
        &mut self.1
    }
}

/// The value of an attribute.
#[derive(Clone, PartialEq, Debug)]
pub enum AttrValue<'a> {
    /// An integer; its type is dropped.
    Int(i64),
    /// A floating-point number; its type is dropped.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
    /// A string, unescaped.
    Str(Cow<'a, str>),
    /// A symbol reference without its leading `@`.
    Symbol(Cow<'a, str>),
    /// `[a, b]`.
    Array(Vec<AttrValue<'a>>),
    /// `array<i64: 1, 2>`: an array of integers and nothing else.
    Ints(InlineList<i64, 4>),
    /// `array<i1: true, false>`, `array<f32: 1.0>`.
    DenseArray(Vec<AttrValue<'a>>),
    /// `{a = 1}`.
    Dict(Fields<'a>),
    /// An attribute of a dialect with named fields.
    Struct {
        /// Dialect and mnemonic without `#`: `stablehlo.gather`.
        name: Cow<'a, str>,
        /// The fields that are written.
        fields: Fields<'a>,
    },
    /// `dense<...> : type`.
    Dense {
        /// The elements in row-major order; one for a splat.
        elements: Vec<AttrValue<'a>>,
        /// The text of the type, empty if there is none.
        ty: &'a str,
    },
    /// A type.
    Type(&'a str),
    /// A case of an enumeration.
    Keyword(&'a str),
    /// A unit attribute.
    Unit,
    /// Anything else, as text.
    Other(&'a str),
}

impl<'a> AttrValue<'a> {
    /// Parses `text`; aliases are [`AttrValue::Other`].
    pub fn parse(text: &'a str) -> Self {
        Self::parse_with(text, &|_| None)
    }
    /// Parses `text`, with aliases resolved.
    pub fn parse_with(text: &'a str, aliases: Aliases<'_, 'a>) -> Self {
        if text.trim().is_empty() {
            return Self::Unit;
        }
        let mut cursor = AttrCursor::new(text, aliases);
        match cursor.value() {
            Some(value) if cursor.at_end() => value,
            _ => Self::Other(text),
        }
    }
    /// The value of an integer.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Bool(value) => Some(i64::from(*value)),
            _ => None,
        }
    }
    /// The value of a boolean; MLIR writes `i1` as 0 and 1 too.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            Self::Int(value) => Some(*value != 0),
            _ => None,
        }
    }
    /// The text of a string, symbol, keyword.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) | Self::Symbol(text) => Some(text),
            Self::Keyword(text) => Some(text),
            _ => None,
        }
    }
    /// The elements of an array of any kind but [`AttrValue::Ints`].
    pub fn items(&self) -> Option<&[AttrValue<'a>]> {
        match self {
            Self::Array(items) | Self::DenseArray(items) => Some(items),
            Self::Dense { elements, .. } => Some(elements),
            _ => None,
        }
    }
    /// The integers of an array of any kind; `None` if an element is not an integer. MLIR prints
    /// arrays of more than 100 elements as hexadecimal bytes, which are decoded.
    pub fn as_ints(&self) -> Option<Vec<i64>> {
        match self {
            Self::Ints(ints) => Some(ints.to_vec()),
            Self::Dense { elements, ty } if ty.trim_end().ends_with("xi64>") => match &elements[..]
            {
                [AttrValue::Str(bytes)] => ints_of_bytes(bytes),
                elements => elements.iter().map(AttrValue::as_int).collect(),
            },
            _ => self.items()?.iter().map(AttrValue::as_int).collect(),
        }
    }
    /// The fields of a dictionary or structured attribute.
    pub fn fields(&self) -> Option<&[(&'a str, AttrValue<'a>)]> {
        match self {
            Self::Dict(fields) | Self::Struct { fields, .. } => Some(fields),
            _ => None,
        }
    }
    /// The field `name` of a dictionary or structured attribute.
    pub fn field(&self, name: &str) -> Option<&AttrValue<'a>> {
        self.fields()?.iter().find(|(field, _)| *field == name).map(|(_, value)| value)
    }
    /// The integers of field `name`; empty if the field is not in the text.
    pub fn int_list_field(&self, name: &str) -> Option<Vec<i64>> {
        self.field(name).map_or(Some(Vec::new()), AttrValue::as_ints)
    }
}

/// The 64-bit integers of `0x0100000000000000...`, least significant byte first.
fn ints_of_bytes(text: &str) -> Option<Vec<i64>> {
    let digits = text.strip_prefix("0x")?;
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    (digits.len() % 16 == 0).then_some(())?;
    (0..digits.len())
        .step_by(16)
        .map(|start| {
            let bytes: Option<Vec<u8>> = (0..8).map(|at| byte(start + 2 * at)).collect();
            Some(i64::from_le_bytes(bytes?.try_into().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_integers() {
        let value =
            AttrValue::parse("dense<\"0x0100000000000000FFFFFFFFFFFFFFFF\"> : tensor<1x2xi64>");
        assert_eq!(value.as_ints(), Some(vec![1, -1]));
        for odd in ["\"0x01\"", "\"0x010000000000000G\"", "\"01\""] {
            assert_eq!(AttrValue::parse(&format!("dense<{odd}> : tensor<1xi64>")).as_ints(), None);
        }
    }
    #[test]
    fn scalars() {
        assert_eq!(AttrValue::parse("5 : i64"), AttrValue::Int(5));
        assert_eq!(AttrValue::parse("-1"), AttrValue::Int(-1));
        assert_eq!(AttrValue::parse("0x1F : i32"), AttrValue::Int(31));
        assert_eq!(AttrValue::parse("1.5e+00 : f32"), AttrValue::Float(1.5));
        assert_eq!(AttrValue::parse("true"), AttrValue::Bool(true));
        assert_eq!(AttrValue::parse(""), AttrValue::Unit);
        assert_eq!(AttrValue::parse("unit"), AttrValue::Unit);
        assert_eq!(AttrValue::parse(r#""a\"\41""#), AttrValue::Str("a\"A".into()));
        assert_eq!(AttrValue::parse("@foo::@bar"), AttrValue::Symbol("foo::@bar".into()));
        assert_eq!(AttrValue::parse("@\"f o\""), AttrValue::Symbol("f o".into()));
        assert_eq!(AttrValue::parse("f32"), AttrValue::Type("f32"));
        assert_eq!(AttrValue::parse("tensor<2x3xf32>"), AttrValue::Type("tensor<2x3xf32>"));
    }

    #[test]
    fn lists() {
        assert_eq!(AttrValue::parse("array<i64: 1, -2>").as_ints(), Some(vec![1, -2]));
        assert_eq!(AttrValue::parse("array<i64>").as_ints(), Some(vec![]));
        assert_eq!(AttrValue::parse("array<i1: true, false>").as_ints(), Some(vec![1, 0]));
        let dense = AttrValue::parse("dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>");
        assert_eq!(dense.as_ints(), Some(vec![1, 2, 3, 4]));
        assert_eq!(AttrValue::parse("dense<0> : tensor<2x2xi64>").as_ints(), Some(vec![0]));
        assert_eq!(AttrValue::parse("dense<> : tensor<0x2xi64>").as_ints(), Some(vec![]));
        let nested = AttrValue::parse("[[], {a = 1, b}, \"x\"]");
        assert_eq!(nested.items().map(<[_]>::len), Some(3));
    }

    #[test]
    fn structured() {
        let dims = AttrValue::parse("#stablehlo.dot<lhs_batching_dimensions = [0], x = 3>");
        assert_eq!(dims.int_list_field("lhs_batching_dimensions"), Some(vec![0]));
        assert_eq!(dims.int_list_field("rhs_batching_dimensions"), Some(vec![]));
        assert_eq!(dims.field("x").and_then(AttrValue::as_int), Some(3));
        assert_eq!(AttrValue::parse("#stablehlo<fft_type IRFFT>"), AttrValue::Keyword("IRFFT"));
        assert_eq!(AttrValue::parse("#stablehlo<transpose NO>").as_str(), Some("NO"));
        let conv = AttrValue::parse("#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>");
        assert_eq!(conv.field("input_feature_dimension").and_then(AttrValue::as_int), Some(2));
        assert_eq!(conv.int_list_field("kernel_spatial_dimensions"), Some(vec![0]));
    }

    #[test]
    fn aliases_are_resolved() {
        let aliases = |name: &str| (name == "#dims").then_some("array<i64: 7>");
        assert_eq!(AttrValue::parse_with("#dims", &aliases).as_ints(), Some(vec![7]));
        assert_eq!(AttrValue::parse_with("#other", &aliases), AttrValue::Other("#other"));
    }

    #[test]
    fn aliases_of_aliases_end() {
        let aliases = |name: &str| match name {
            "#a" => Some("[#a, #a, #a]"),
            _ => Some("[#b, #b, #b, #b, #b, #b, #b, #b]"),
        };
        for text in ["#a", "#b", "[#a, #b]"] {
            assert!(matches!(AttrValue::parse_with(text, &aliases), AttrValue::Array(_)));
        }
    }

    #[test]
    fn nonsense_is_other() {
        let deep = "[".repeat(100_000);
        for text in
            ["[1", "array<i64: ", "\"", "#", "@", "dense<[", "{a = }", "1 2", &deep, "é", "#a<"]
        {
            assert_eq!(AttrValue::parse(text), AttrValue::Other(text));
        }
    }
}
