//! Parses attribute values.

use super::conv_dims::conv_dims;
use super::cursor::{parse_int, AttrCursor};
use super::value::{AttrValue, Fields};
use crate::inline_list::InlineList;
use crate::mlir::grammar::known_case;
use std::borrow::Cow;

/// The deepest nesting of attributes.
const MAX_DEPTH: u32 = 64;

impl<'a> AttrCursor<'_, 'a> {
    /// `{a = 1, b}`.
    pub fn dict(&mut self) -> Option<Fields<'a>> {
        self.list("{", "}", Self::entry)
    }
    fn entry(&mut self) -> Option<(&'a str, AttrValue<'a>)> {
        let name = if self.peek()? == b'"' {
            let start = self.place + 1;
            self.string()?;
            self.text.get(start..self.place - 1)?
        } else {
            self.word()?
        };
        let value = if self.eat("=") { self.value()? } else { AttrValue::Unit };
        Some((name, value))
    }
    /// A case of an enumeration, as a word or in quotes.
    pub fn case(&mut self) -> Option<AttrValue<'a>> {
        if self.peek()? != b'"' {
            return self.word().map(AttrValue::Keyword);
        }
        Some(match self.string()? {
            Cow::Borrowed(word) => AttrValue::Keyword(word),
            Cow::Owned(word) => match known_case(&word) {
                Some(case) => AttrValue::Keyword(case),
                None => AttrValue::Str(word.into()),
            },
        })
    }
    /// Any attribute, with the type that may follow it.
    pub fn value(&mut self) -> Option<AttrValue<'a>> {
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let value = self.untyped_value();
        self.depth -= 1;
        value
    }
    fn untyped_value(&mut self) -> Option<AttrValue<'a>> {
        match self.peek()? {
            b'[' => self.list("[", "]", Self::value).map(AttrValue::Array),
            b'{' => self.dict().map(AttrValue::Dict),
            b'"' => {
                let text = self.string()?;
                self.type_suffix();
                Some(AttrValue::Str(text))
            }
            b'@' => self.symbol().map(AttrValue::Symbol),
            b'#' => self.dialect_attribute(),
            b'0'..=b'9' | b'-' | b'+' => self.numeric(),
            b'(' => {
                let start = self.place;
                self.sub_axis_info().or_else(|| {
                    self.place = start;
                    self.type_text().map(AttrValue::Type)
                })
            }
            b'!' => self.type_text().map(AttrValue::Type),
            _ => self.named_value(),
        }
    }
    /// `(pre_size)size`, the sub-axis in a `StableHLO` axis reference.
    fn sub_axis_info(&mut self) -> Option<AttrValue<'a>> {
        self.expect("(")?;
        let pre_size = parse_int(self.number())?;
        self.expect(")")?;
        let size = parse_int(self.number())?;
        let fields = [("pre_size", pre_size), ("size", size)];
        let fields = fields.map(|(name, value)| (name, AttrValue::Int(value)));
        Some(AttrValue::Struct {
            name: Cow::Borrowed("stablehlo.sub_axis_info"),
            fields: fields.to_vec(),
        })
    }
    fn numeric(&mut self) -> Option<AttrValue<'a>> {
        if let Some(int) = self.short_decimal() {
            self.type_suffix();
            return Some(AttrValue::Int(int));
        }
        let number = self.number();
        self.type_suffix();
        let float = || number.parse().ok().map(AttrValue::Float);
        parse_int(number).map(AttrValue::Int).or_else(float)
    }
    /// The text of the type in `: type`, if that comes next; else empty.
    fn type_suffix(&mut self) -> &'a str {
        if self.eat(":") {
            self.type_text().unwrap_or("")
        } else {
            ""
        }
    }
    /// A value that starts with a word.
    fn named_value(&mut self) -> Option<AttrValue<'a>> {
        let start = self.place;
        match self.word()? {
            "true" => Some(AttrValue::Bool(true)),
            "false" => Some(AttrValue::Bool(false)),
            "unit" => Some(AttrValue::Unit),
            "array" if self.rest().starts_with('<') => {
                self.expect("<")?;
                self.word()?;
                self.dense_array()
            }
            "dense" if self.rest().starts_with('<') => self.dense(),
            "loc" | "affine_map" | "affine_set" | "dense_resource" | "sparse" | "distinct" => {
                self.balanced_suffixes()?;
                self.type_suffix();
                Some(AttrValue::Other(&self.text[start..self.place]))
            }
            _ => {
                self.place = start;
                self.type_text().map(AttrValue::Type)
            }
        }
    }
    fn dense_array(&mut self) -> Option<AttrValue<'a>> {
        if self.eat(">") {
            return Some(AttrValue::Ints(InlineList::new()));
        }
        if let Some(ints) = self.int_list(b':', b'>') {
            return Some(AttrValue::Ints(ints));
        }
        let items = self.list(":", ">", Self::value)?;
        Some(AttrValue::DenseArray(items))
    }
    fn dense(&mut self) -> Option<AttrValue<'a>> {
        self.expect("<")?;
        let mut elements = Vec::new();
        if !self.eat(">") {
            self.dense_elements(&mut elements)?;
            self.expect(">")?;
        }
        Some(AttrValue::Dense { elements, ty: self.type_suffix() })
    }
    /// Nested lists of elements, flattened, without recursion.
    fn dense_elements(&mut self, elements: &mut Vec<AttrValue<'a>>) -> Option<()> {
        let mut depth = 0_u32;
        loop {
            match self.peek()? {
                b'[' => {
                    depth += 1;
                    self.skip_char();
                    continue;
                }
                b']' => {}
                b'(' => elements.push(self.complex()?),
                _ => elements.push(self.untyped_element()?),
            }
            while depth > 0 && self.eat("]") {
                depth -= 1;
            }
            if depth == 0 {
                return Some(());
            }
            self.expect(",")?;
        }
    }
    fn untyped_element(&mut self) -> Option<AttrValue<'a>> {
        match self.peek()? {
            b'"' => self.string().map(AttrValue::Str),
            b'0'..=b'9' | b'-' | b'+' => {
                if let Some(int) = self.short_decimal() {
                    return Some(AttrValue::Int(int));
                }
                let number = self.number();
                let float = || number.parse().ok().map(AttrValue::Float);
                parse_int(number).map(AttrValue::Int).or_else(float)
            }
            _ => match self.word()? {
                "true" => Some(AttrValue::Bool(true)),
                "false" => Some(AttrValue::Bool(false)),
                _ => None,
            },
        }
    }
    /// `(re, im)`.
    fn complex(&mut self) -> Option<AttrValue<'a>> {
        self.list("(", ")", Self::untyped_element).map(AttrValue::Array)
    }
    /// `#alias`, `#dialect.name<...>`, `#dialect<name ...>`.
    fn dialect_attribute(&mut self) -> Option<AttrValue<'a>> {
        let start = self.place;
        self.expect("#")?;
        let name = self.word()?;
        if !self.rest().starts_with('<') {
            let whole = &self.text[start..self.place];
            return Some(match (self.aliases)(whole) {
                Some(text) => self.alias_value(text),
                None if name.contains('.') => {
                    AttrValue::Struct { name: name.into(), fields: Vec::new() }
                }
                None => AttrValue::Other(whole),
            });
        }
        let body_start = self.place + 1;
        if let Some(case) = self.case_of(name) {
            self.type_suffix();
            return Some(AttrValue::Keyword(case));
        }
        if let Some(fields) = self.fields_of(name) {
            self.type_suffix();
            return Some(AttrValue::Struct { name: name.into(), fields });
        }
        self.balanced()?;
        let body = self.text.get(body_start..self.place - 1)?;
        let whole = &self.text[start..self.place];
        self.type_suffix();
        let value = self.inside(body, |inner| inner.dialect_body(name));
        Some(value.unwrap_or(AttrValue::Other(whole)))
    }
    /// `<precision DEFAULT>` after `#stablehlo`, if it comes next: the case of an enumeration,
    /// which is the usual form of dialect attributes.
    fn case_of(&mut self, dialect: &str) -> Option<&'a str> {
        let start = self.place;
        self.place += 1;
        let name = self.word().filter(|name| !dialect.contains('.') && *name != "conv");
        let case = match name.and_then(|_| self.case()) {
            Some(AttrValue::Keyword(case)) if self.eat(">") => Some(case),
            _ => None,
        };
        if case.is_none() {
            self.place = start;
        }
        case
    }
    /// `<a = 1, b = [2]>` after `#dialect.name`, if it comes next: the form of most other dialect
    /// attributes.
    fn fields_of(&mut self, name: &str) -> Option<Fields<'a>> {
        if !name.contains('.') || name == "stablehlo.conv" {
            return None;
        }
        let start = (self.place, self.aliases_left);
        self.place += 1;
        let fields = self.fields_until(|cursor| cursor.eat(">"));
        if fields.is_none() {
            (self.place, self.aliases_left) = start;
        }
        fields
    }
    /// `a = 1, b = [2]`, not empty, until `is_end` holds; a trailing comma is allowed.
    fn fields_until(&mut self, is_end: impl Fn(&mut Self) -> bool) -> Option<Fields<'a>> {
        let mut fields = Vec::new();
        loop {
            let name = self.word()?;
            self.expect("=")?;
            fields.push((name, self.value()?));
            let is_more = self.eat(",");
            if is_end(self) {
                return Some(fields);
            }
            is_more.then_some(())?;
        }
    }
    fn alias_value(&mut self, text: &'a str) -> AttrValue<'a> {
        if self.aliases_left == 0 {
            return AttrValue::Other(text);
        }
        self.aliases_left -= 1;
        self.inside(text, Self::value).unwrap_or(AttrValue::Other(text))
    }
    /// Parses `text`, a part of this attribute's text, with `read`.
    fn inside<T>(&mut self, text: &'a str, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let mut inner = Self { text, place: 0, ..*self };
        let read = read(&mut inner);
        self.aliases_left = inner.aliases_left;
        read
    }
    /// The contents of the angle brackets of a dialect's attribute.
    fn dialect_body(&mut self, name: &'a str) -> Option<AttrValue<'a>> {
        let mut name: Cow<'a, str> = name.into();
        if !name.contains('.') {
            name = format!("{name}.{}", self.word()?).into();
        }
        if name == "stablehlo.conv" && !self.eat("raw") {
            return conv_dims(self);
        }
        self.eat("<");
        if self.at_end() {
            return Some(AttrValue::Struct { name, fields: Vec::new() });
        }
        let fields_start = self.place;
        if let Some(fields) = self.struct_fields() {
            return Some(AttrValue::Struct { name, fields });
        }
        self.place = fields_start;
        let case = self.case()?;
        self.at_end().then_some(case)
    }
    /// `a = 1, b = [2]` to the end or a last `>`; a trailing comma is allowed.
    pub fn struct_fields(&mut self) -> Option<Fields<'a>> {
        self.fields_until(|cursor| {
            cursor.eat(">");
            cursor.at_end()
        })
    }
}
