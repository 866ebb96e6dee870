//! Kinds of attributes: the values that an attribute of an op may have, and MLIR's description of
//! them.

use super::attributes::Attribute;
use super::element::{Element, Float, Sign};
use crate::mlir::{text_is_of, AttrValue};

/// A kind of attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// An integer of this width in bits and at least this value.
    Int(u32, Least),
    /// A 32-bit float.
    F32,
    /// `true` or `false`.
    Bool,
    /// A unit attribute.
    Unit,
    /// A string.
    Str,
    /// A string or a dictionary.
    StrOrDict,
    /// A dictionary.
    Dict,
    /// A list of any attributes.
    Array,
    /// `array<i64: ...>`
    I64Array,
    /// `array<i32: ...>`
    I32Array,
    /// `array<i1: ...>`
    BoolArray,
    /// `dense<...> : tensor<...xi64>`
    I64Elements,
    /// Elements of any type.
    Elements,
    /// An attribute with a type.
    Typed,
    /// `#dialect<name CASE>` or `#dialect.name<...>`: dialect, name, and MLIR's description.
    Of(&'static str, &'static str, &'static str),
    /// A list of precisions of this dialect.
    Precisions(&'static str),
    /// The API version of a custom call.
    ApiVersion,
    /// `dense<...>` groups, or a mesh with axes.
    ReplicaGroups,
    /// `@name`
    Symbol,
    /// `[@a, @b]`
    Symbols,
    /// A list of permutations as `dense<...> : tensor<...xindex>`.
    Layouts,
    /// A list of pairs of parts of results and operands.
    Aliases,
}

/// A lower bound of an integer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Least {
    /// No bound.
    Any,
    /// 0
    NonNegative,
    /// 1
    Positive,
}

/// `i64`.
pub const I64: Kind = Kind::Int(64, Least::Any);
/// `i64` from 0.
pub const INDEX: Kind = Kind::Int(64, Least::NonNegative);
/// `i64` from 1.
pub const COUNT: Kind = Kind::Int(64, Least::Positive);

impl Kind {
    /// MLIR's name of the kind.
    pub fn name(self) -> String {
        let fixed = match self {
            Self::Int(bits, least) => {
                let least = match least {
                    Least::Any => "",
                    Least::NonNegative => " whose value is non-negative",
                    Least::Positive => " whose value is positive",
                };
                return format!("{bits}-bit signless integer attribute{least}");
            }
            Self::F32 => "32-bit float attribute",
            Self::Bool => "bool attribute",
            Self::Unit => "unit attribute",
            Self::Str => "string attribute",
            Self::StrOrDict => "string attribute or dictionary of named attribute values",
            Self::Dict => "dictionary of named attribute values",
            Self::Array => "array attribute",
            Self::I64Array => "i64 dense array attribute",
            Self::I32Array => "i32 dense array attribute",
            Self::BoolArray => "i1 dense array attribute",
            Self::I64Elements => "64-bit signless integer elements attribute",
            Self::Elements => "constant vector/tensor attribute",
            Self::Typed => "TypedAttr instance",
            Self::Of(_, _, says) => says,
            Self::Precisions(_) => "Precision Config attribute",
            Self::ApiVersion => "Custom call API version",
            Self::ReplicaGroups => {
                "64-bit signless integer elements attribute or mesh and axes based replica groups \
                 representation."
            }
            Self::Symbol => "flat symbol reference attribute",
            Self::Symbols => "flat symbol ref array attribute",
            Self::Layouts => "Array of layout (1D tensor of index type) attributes",
            Self::Aliases => "Aliasing attribute for outputs and operands of CustomCall",
        };
        fixed.to_owned()
    }
    /// Whether `attribute` has the class in which MLIR stores a property of this kind, so that MLIR
    /// keeps it; its value may still be invalid.
    pub fn stores(self, attribute: &Attribute<'_>) -> bool {
        match self {
            Self::Int(..) | Self::ApiVersion => {
                matches!(attribute.value, AttrValue::Int(_) | AttrValue::Bool(_))
            }
            Self::F32 => matches!(attribute.value, AttrValue::Float(_)) || is_float(attribute),
            Self::Array | Self::Precisions(_) | Self::Symbols | Self::Layouts | Self::Aliases => {
                matches!(attribute.value, AttrValue::Array(_))
            }
            Self::StrOrDict | Self::ReplicaGroups => true,
            Self::I64Elements => {
                let element = attribute.dense_type().map(|(_, element)| element);
                attribute.text.is_none()
                    || element
                        .is_some_and(|element| element.is_integer() || *element == Element::Index)
            }
            Self::Symbol => matches!(attribute.value, AttrValue::Symbol(_)),
            Self::Bool
            | Self::Unit
            | Self::Str
            | Self::Dict
            | Self::I64Array
            | Self::I32Array
            | Self::BoolArray
            | Self::Elements
            | Self::Typed
            | Self::Of(..) => self.admits(attribute),
        }
    }
    /// Whether `attribute` is of this kind.
    pub fn admits(self, attribute: &Attribute<'_>) -> bool {
        let Some(text) = attribute.text else { return self.admits_value(&attribute.value) };
        match self {
            Self::Int(bits, _) => {
                let ty = Some(Element::Integer { bits, sign: Sign::Signless });
                attribute.number_type() == ty && self.admits_value(&attribute.value)
            }
            Self::ApiVersion => {
                attribute.number_type() == Some(Element::I32) && self.admits_value(&attribute.value)
            }
            Self::F32 => is_float(attribute),
            Self::Bool => attribute.number_type() == Some(Element::BOOL),
            Self::I64Array => attribute.array_type() == Some("i64"),
            Self::I32Array => attribute.array_type() == Some("i32"),
            Self::BoolArray => attribute.array_type() == Some("i1"),
            Self::I64Elements => is_dense_of_i64(attribute),
            Self::Elements => {
                ["dense", "sparse"].iter().any(|start| text.trim_start().starts_with(start))
            }
            Self::Typed => matches!(
                attribute.value,
                AttrValue::Int(_)
                    | AttrValue::Bool(_)
                    | AttrValue::Float(_)
                    | AttrValue::Str(_)
                    | AttrValue::Dense { .. }
                    | AttrValue::Struct { .. }
                    | AttrValue::Other(_)
            ),
            Self::Of(dialect, name, _) => text_is_of(text, dialect, name),
            Self::ReplicaGroups => {
                is_dense_of_i64(attribute)
                    || text_is_of(text, "stablehlo", "replica_group_mesh_axes")
            }
            Self::Unit
            | Self::Str
            | Self::StrOrDict
            | Self::Dict
            | Self::Array
            | Self::Precisions(_)
            | Self::Symbol
            | Self::Symbols
            | Self::Layouts
            | Self::Aliases => self.admits_value(&attribute.value),
        }
    }
    /// Whether `value` is of this kind, as far as that does not depend on its type.
    fn admits_value(self, value: &AttrValue<'_>) -> bool {
        let all = |of_kind: &dyn Fn(&AttrValue<'_>) -> bool| match value {
            AttrValue::Array(items) => items.iter().all(of_kind),
            _ => false,
        };
        match self {
            Self::Int(_, Least::NonNegative) => value.as_int().is_some_and(|value| value >= 0),
            Self::Int(_, Least::Positive) => value.as_int().is_some_and(|value| value > 0),
            Self::ApiVersion => value.as_int().is_some_and(|value| (0..=4).contains(&value)),
            Self::Unit => matches!(value, AttrValue::Unit),
            Self::Str => matches!(value, AttrValue::Str(_)),
            Self::StrOrDict => matches!(value, AttrValue::Str(_) | AttrValue::Dict(_)),
            Self::Dict => matches!(value, AttrValue::Dict(_)),
            Self::Array => matches!(value, AttrValue::Array(_)),
            Self::Precisions(_) => {
                all(&|item| matches!(item, AttrValue::Keyword("DEFAULT" | "HIGH" | "HIGHEST")))
            }
            Self::Symbol => is_flat_symbol(value),
            Self::Symbols => all(&is_flat_symbol),
            Self::Layouts => all(&|item| {
                let AttrValue::Dense { ty, .. } = item else { return false };
                let ty = ty.trim().trim_start_matches("tensor<").trim_end_matches('>');
                // One dim with elements of type `index`.
                ty.split_once('x').is_some_and(|(size, element)| {
                    element == "index" && size.bytes().all(|byte| byte.is_ascii_digit())
                })
            }),
            Self::Aliases => all(
                &|item| matches!(item, AttrValue::Struct { name, .. } if name == "stablehlo.output_operand_alias"),
            ),
            // For these kinds only the type or the text matters: see `admits`.
            Self::Int(_, Least::Any)
            | Self::F32
            | Self::Bool
            | Self::I64Array
            | Self::I32Array
            | Self::BoolArray
            | Self::I64Elements
            | Self::Elements
            | Self::Typed
            | Self::Of(..)
            | Self::ReplicaGroups => true,
        }
    }
}

fn is_flat_symbol(value: &AttrValue<'_>) -> bool {
    matches!(value, AttrValue::Symbol(name) if !name.contains("::"))
}

/// Whether `attribute` is a number of type `f32`; hexadecimal digits are floats too.
fn is_float(attribute: &Attribute<'_>) -> bool {
    attribute.number_type().is_some_and(|ty| ty == Element::Float(Float::F32))
}

fn is_dense_of_i64(attribute: &Attribute<'_>) -> bool {
    attribute.dense_type().is_some_and(|(_, ty)| *ty == Element::I64)
}
