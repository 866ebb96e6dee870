//! The attributes of an op by name, with their values and texts.

use super::element::Element;
use crate::index::OpId;
use crate::ir::{OpTraits, Program, Span};
use crate::mlir::{attributes, past_space, text_is_of, AttrValue, Field, Fields};
use std::cell::OnceCell;

/// An attribute of an op.
#[derive(Clone, Debug)]
pub struct Attribute<'a> {
    /// Its name in the generic form.
    pub name: &'a str,
    /// Its parsed value.
    pub value: AttrValue<'a>,
    /// Its text; `None` if it is in the op's custom syntax, where the parser accepts only
    /// attributes of the right kind.
    pub text: Option<&'a str>,
    /// Whether it is in the properties of an op in generic form, `<{...}>`.
    pub is_property: bool,
    /// Its integers, if it is a list of them; computed when first needed.
    ints: OnceCell<Vec<i64>>,
    /// The sizes and the element type of its dense elements; computed when first needed.
    dense: OnceCell<Option<(Vec<i64>, Element)>>,
}

impl<'a> Attribute<'a> {
    /// Attribute `name` with this value and text.
    const fn new(name: &'a str, value: AttrValue<'a>, text: Option<&'a str>) -> Self {
        Self {
            name,
            value,
            text,
            is_property: false,
            ints: OnceCell::new(),
            dense: OnceCell::new(),
        }
    }
    /// Its text, approximately as MLIR prints it.
    fn printed(&self) -> String {
        let text = self.text.unwrap_or_default().trim();
        match self.number_type() {
            Some(ty) if !text.contains(':') && !matches!(text, "true" | "false") => {
                format!("{text} : {ty}")
            }
            Some(ty) => match text.split_once(':') {
                Some((value, _)) => format!("{} : {ty}", value.trim()),
                None => text.to_owned(),
            },
            None if text.is_empty() => "unit".to_owned(),
            None => text.to_owned(),
        }
    }
    /// MLIR's error if it is a property of another class than the stored one.
    pub fn not_stored(&self) -> String {
        format!("Invalid attribute `{}` in property conversion: {}", self.name, self.printed())
    }
    /// The type of a number: the one after the colon in its text, or MLIR's default.
    pub fn number_type(&self) -> Option<Element> {
        let text = self.text?;
        let default = match self.value {
            AttrValue::Int(_) => "i64",
            AttrValue::Bool(_) => "i1",
            AttrValue::Float(_) => "f64",
            _ => return None,
        };
        Some(Element::parse(text.rsplit_once(':').map_or(default, |(_, ty)| past_space(ty))))
    }
    /// The element type of `array<type: ...>`.
    pub fn array_type(&self) -> Option<&'a str> {
        let text = self.text?.trim_start().strip_prefix("array")?.trim_start();
        let body = text.strip_prefix('<')?.strip_suffix('>')?;
        Some(past_space(body.split_once(':').map_or(body, |(ty, _)| ty)).trim_end())
    }
    /// The sizes and the element type of `dense<...> : tensor<...>`.
    pub fn dense_type(&self) -> Option<(&[i64], &Element)> {
        let AttrValue::Dense { ty, .. } = &self.value else { return None };
        let known = self.dense.get_or_init(|| dense_type(ty));
        known.as_ref().map(|(sizes, element)| (&sizes[..], element))
    }
    /// The integers in `dense<...>`; a splat is repeated for each element of the type.
    pub fn dense_ints(&self) -> Option<Vec<i64>> {
        ints_of_type(&self.value, self.dense_type()?.0)
    }
    /// Whether it is `#dialect.name<...>` or `#dialect<name ...>`.
    pub fn is_of(&self, dialect: &str, name: &str) -> bool {
        let Some(text) = self.text else { return true };
        text_is_of(text, dialect, name)
    }
}

/// The sizes and the element type in the text of a static tensor type.
fn dense_type(text: &str) -> Option<(Vec<i64>, Element)> {
    let text = text.trim();
    let body = text.strip_prefix("tensor").or_else(|| text.strip_prefix("vector"))?;
    let mut rest = past_space(past_space(body).strip_prefix('<')?.strip_suffix('>')?);
    let mut sizes = Vec::new();
    while let Some((size, after)) = rest.split_once('x') {
        let Ok(size) = size.trim().parse() else { break };
        sizes.push(size);
        rest = after;
    }
    Some((sizes, Element::parse(rest)))
}

/// The integers in a `dense<...>` value; a splat is repeated for each element of the type.
pub fn dense_ints(value: &AttrValue<'_>) -> Option<Vec<i64>> {
    let AttrValue::Dense { ty, .. } = value else { return None };
    ints_of_type(value, &dense_type(ty)?.0)
}

/// The integers in `value`, a `dense<...>` of these sizes; a splat is repeated for each of them.
fn ints_of_type(value: &AttrValue<'_>, sizes: &[i64]) -> Option<Vec<i64>> {
    let AttrValue::Dense { .. } = value else { return None };
    let count = sizes.iter().try_fold(1_usize, |n, &size| n.checked_mul(size.try_into().ok()?))?;
    let ints = value.as_ints()?;
    match ints[..] {
        [splat] if count > 1 && count <= MAX_SPLAT => Some(vec![splat; count]),
        _ => Some(ints),
    }
}

/// Splats of more elements than this are not expanded.
const MAX_SPLAT: usize = 1 << 20;

impl<'a> Field<'a> for Attribute<'a> {
    fn new(name: &'a str, value: AttrValue<'a>) -> Self {
        Self::new(name, value, None)
    }
    fn name(&self) -> &'a str {
        self.name
    }
    fn value_mut(&mut self) -> &mut AttrValue<'a> {
        &mut self.value
    }
}

/// All attributes of an op.
#[derive(Clone, Debug, Default)]
pub struct Attributes<'a>(Vec<Attribute<'a>>);

impl<'a> Attributes<'a> {
    /// The attributes of `op`, in generic or custom syntax.
    pub fn of(program: &'a Program, op: OpId) -> Self {
        let mut all: Vec<Attribute<'a>> = attributes(program, op, own_syntax(program, op));
        let outside = program.op_dict_span(op);
        for (attribute, attr) in all.iter_mut().zip(program.op_attrs(op)) {
            let span = attr.value;
            attribute.text = Some(program.resolved_alias(program.text().get(span)));
            attribute.is_property =
                outside.is_some_and(|dict| span.start < dict.start || dict.end < span.end);
        }
        if program.has_traits(op, OpTraits::CONSTANT_LIKE) && has_own_elements(program, op) {
            let value = AttrValue::Other(program.constant_text(op));
            all.push(Attribute::new("value", value, None));
        }
        Self(all)
    }
    /// Attributes with these names and values.
    pub fn new(fields: Fields<'a>) -> Self {
        let attribute = |(name, value)| Attribute::new(name, value, None);
        Self(fields.into_iter().map(attribute).collect())
    }
    /// MLIR's error for the properties of an op of this name, one of which it cannot store.
    pub fn invalid(&self, op: &str, problem: &str) -> String {
        let properties = self.iter().filter(|attribute| attribute.is_property);
        let mut all: Vec<String> = properties
            .map(|attribute| match attribute.printed() {
                text if text == "unit" => attribute.name.to_owned(),
                text => format!("{} = {text}", attribute.name),
            })
            .collect();
        all.sort();
        format!("invalid properties {{{}}} for op {op}: {problem}", all.join(", "))
    }
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Attribute<'a>> {
        self.0.iter()
    }
    /// The attribute `name`.
    #[inline]
    pub fn get(&self, name: &str) -> Option<&Attribute<'a>> {
        // Names mostly differ in their lengths or first bytes.
        let [len, first] = outline(name);
        let is_alike = |other: &str| outline(other) == [len, first];
        self.0.iter().find(|attribute| is_alike(attribute.name) && attribute.name == name)
    }
    /// The value of attribute `name`.
    pub fn value(&self, name: &str) -> Option<&AttrValue<'a>> {
        self.get(name).map(|attribute| &attribute.value)
    }
    /// The integer of attribute `name`.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.value(name)?.as_int()
    }
    /// The integers in attribute `name`; empty if there is no such attribute.
    pub fn ints(&self, name: &str) -> &[i64] {
        let Some(attribute) = self.get(name) else { return &[] };
        match &attribute.value {
            AttrValue::Ints(ints) => ints,
            value => attribute.ints.get_or_init(|| value.as_ints().unwrap_or_default()),
        }
    }
    /// Whether attribute `name` exists and is true.
    pub fn is_true(&self, name: &str) -> bool {
        self.value(name).and_then(AttrValue::as_bool).unwrap_or(false)
    }
    /// The keyword of enum attribute `name`.
    pub fn word(&self, name: &str) -> Option<&str> {
        self.value(name)?.as_str()
    }
}

/// The length of `name` and its first byte.
#[inline]
fn outline(name: &str) -> [usize; 2] {
    [name.len(), name.as_bytes().first().map_or(0, |&byte| byte.into())]
}

/// Whether `op`, a constant, has its elements in custom syntax.
fn has_own_elements(program: &Program, op: OpId) -> bool {
    let is_attribute = |name| program.str(name) == "value";
    !program.op_attrs(op).iter().any(|attr| is_attribute(attr.name))
        && program.has_written_value(op)
}

/// The text of `op` in custom syntax from its name to its dictionary; empty in the generic form.
fn own_syntax(program: &Program, op: OpId) -> Span {
    if let Some(signature) = program.signature(op).get().map(|id| &program.signatures()[id]) {
        // If the example has no custom syntax, the attributes are in the dictionaries of all ops
        // with this signature.
        if signature.example == op || signature.syntax.is_empty() {
            return signature.syntax;
        }
    }
    let Some(name) = program.name_span(op) else { return Span::EMPTY };
    match program.op_dict_span(op) {
        Some(dict) if dict.start >= name.end => Span::new(name.end, dict.start),
        _ => Span::EMPTY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(text: &str) -> Attribute<'_> {
        Attribute::new("a", AttrValue::parse(text), Some(text))
    }
    #[test]
    fn types_of_numbers() {
        let ty = |text| attribute(text).number_type().map(|ty| ty.to_string());
        assert_eq!(ty("5 : i32").as_deref(), Some("i32"));
        assert_eq!(ty("5").as_deref(), Some("i64"));
        assert_eq!(ty("true").as_deref(), Some("i1"));
        assert_eq!(ty("\"a\""), None);
    }
    #[test]
    fn arrays_and_elements() {
        assert_eq!(attribute("array<i64: 1, 2>").array_type(), Some("i64"));
        assert_eq!(attribute("array<i32>").array_type(), Some("i32"));
        assert_eq!(attribute("[1]").array_type(), None);
        let dense = attribute("dense<3> : tensor<1x2xi64>");
        assert_eq!(dense.dense_ints(), Some(vec![3, 3]));
        assert_eq!(dense.dense_type().map(|(sizes, _)| sizes), Some(&[1, 2][..]));
        let hex = attribute("dense<\"0x01000000000000000200000000000000\"> : tensor<2xi64>");
        assert_eq!(hex.dense_ints(), Some(vec![1, 2]));
    }
    #[test]
    fn dialects_and_names() {
        assert!(attribute("#stablehlo.dot<>").is_of("stablehlo", "dot"));
        assert!(attribute("#stablehlo<precision DEFAULT>").is_of("stablehlo", "precision"));
        assert!(!attribute("#stablehlo.dot_algorithm<>").is_of("stablehlo", "dot"));
        assert!(!attribute("#chlo.dot<>").is_of("stablehlo", "dot"));
    }
}
