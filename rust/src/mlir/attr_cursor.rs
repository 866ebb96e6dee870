//! Reads attribute values from text, in MLIR's attribute syntax.
//!
//! Every reader returns `None` and leaves the cursor anywhere if the text is not what it expects.
//! Nesting is limited, so that hostile text cannot exhaust the stack.

use super::attr_value::{Aliases, AttrValue, Fields};
use super::conv_dims::conv_dims;
use std::borrow::Cow;

/// How deep attributes may nest.
const MAX_DEPTH: u32 = 64;

/// A place in the text of an attribute.
pub struct AttrCursor<'r, 'a> {
    text: &'a str,
    place: usize,
    depth: u32,
    aliases: Aliases<'r, 'a>,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.' | b'-')
}

impl<'r, 'a> AttrCursor<'r, 'a> {
    /// A cursor at the start of `text`.
    pub fn new(text: &'a str, aliases: Aliases<'r, 'a>) -> Self {
        Self { text, place: 0, depth: 0, aliases }
    }
    /// Whether nothing but white space is left.
    pub fn at_end(&mut self) -> bool {
        self.peek().is_none()
    }
    /// The byte that comes next, after white space.
    pub fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.place).is_some_and(u8::is_ascii_whitespace) {
            self.place += 1;
        }
        bytes.get(self.place).copied()
    }
    /// What is left of the text.
    pub fn rest(&self) -> &'a str {
        self.text.get(self.place..).unwrap_or("")
    }
    /// Skips `token` if it comes next.
    pub fn eat(&mut self, token: &str) -> bool {
        self.peek();
        let found = self.rest().starts_with(token);
        if found {
            self.place += token.len();
        }
        found
    }
    /// Skips one byte, or one character if it is not ASCII.
    pub fn skip_char(&mut self) {
        self.place += self.rest().chars().next().map_or(0, char::len_utf8);
    }
    fn expect(&mut self, token: &str) -> Option<()> {
        self.eat(token).then_some(())
    }
    /// A word of letters, digits, `_`, `$`, `.` and `-`, not empty.
    pub fn word(&mut self) -> Option<&'a str> {
        self.peek();
        let rest = self.rest();
        let mut len = rest.bytes().position(|byte| !is_word(byte)).unwrap_or(rest.len());
        if rest.as_bytes().get(len) == Some(&b'>') && rest[..len].ends_with('-') {
            len -= 1;
        }
        self.place += len;
        (len > 0).then(|| &rest[..len])
    }
    /// An integer in decimal or hexadecimal.
    pub fn int(&mut self) -> Option<i64> {
        self.peek();
        parse_int(self.number())
    }
    fn number(&mut self) -> &'a str {
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let mut len = usize::from(bytes.first().is_some_and(|byte| matches!(byte, b'-' | b'+')));
        while let Some(&byte) = bytes.get(len) {
            let is_exponent_sign =
                matches!(byte, b'-' | b'+') && len > 0 && matches!(bytes[len - 1], b'e' | b'E');
            if !(byte.is_ascii_alphanumeric() || byte == b'.' || is_exponent_sign) {
                break;
            }
            len += 1;
        }
        self.place += len;
        &rest[..len]
    }
    /// A string in quotes, unescaped.
    pub fn string(&mut self) -> Option<Cow<'a, str>> {
        self.expect("\"")?;
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let mut end = 0;
        while *bytes.get(end)? != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let body = rest.get(..end)?;
        self.place += end + 1;
        Some(if body.contains('\\') { unescape(body).into() } else { body.into() })
    }
    /// `open`, values read by `item` with commas in between, `close`.
    pub fn list<T>(
        &mut self,
        open: &str,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        self.expect(open)?;
        let mut items = Vec::new();
        if self.eat(close) {
            return Some(items);
        }
        loop {
            items.push(item(self)?);
            if self.eat(close) {
                return Some(items);
            }
            self.expect(",")?;
        }
    }
    /// `[1, 2]`.
    pub fn ints(&mut self) -> Option<Vec<i64>> {
        self.list("[", "]", Self::int)
    }
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
            b'!' | b'(' => self.type_text().map(AttrValue::Type),
            _ => self.named_value(),
        }
    }
    fn numeric(&mut self) -> Option<AttrValue<'a>> {
        let number = self.number();
        self.type_suffix();
        let float = || number.parse().ok().map(AttrValue::Float);
        parse_int(number).map(AttrValue::Int).or_else(float)
    }
    /// `: type`, if it comes next; its text.
    fn type_suffix(&mut self) -> &'a str {
        if self.eat(":") {
            self.type_text().unwrap_or("")
        } else {
            ""
        }
    }
    /// `@name`, `@"na me"`, with nested references.
    pub fn symbol(&mut self) -> Option<Cow<'a, str>> {
        self.expect("@")?;
        if self.rest().starts_with('"') {
            return self.string();
        }
        let rest = self.rest();
        let is_part = |byte: u8| is_word(byte) || matches!(byte, b':' | b'@');
        let len = rest.bytes().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        self.place += len;
        (len > 0).then(|| rest[..len].into())
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
            return Some(AttrValue::DenseArray(Vec::new()));
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
    /// Nested lists of elements, flattened. Brackets are counted, not recursed into.
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
        self.balanced()?;
        let body = self.text.get(body_start..self.place - 1)?;
        let whole = &self.text[start..self.place];
        self.type_suffix();
        Some(self.dialect_body(name, body).unwrap_or(AttrValue::Other(whole)))
    }
    fn alias_value(&self, text: &'a str) -> AttrValue<'a> {
        let mut inner = AttrCursor { text, place: 0, depth: self.depth, aliases: self.aliases };
        inner.value().unwrap_or(AttrValue::Other(text))
    }
    fn dialect_body(&self, name: &'a str, body: &'a str) -> Option<AttrValue<'a>> {
        let mut inner =
            AttrCursor { text: body, place: 0, depth: self.depth, aliases: self.aliases };
        let mut name: Cow<'a, str> = name.into();
        if !name.contains('.') {
            name = format!("{name}.{}", inner.word()?).into();
        }
        if name == "stablehlo.conv" && !inner.eat("raw") {
            return conv_dims(&mut inner);
        }
        inner.eat("<");
        if inner.at_end() {
            return Some(AttrValue::Struct { name, fields: Vec::new() });
        }
        let fields_start = inner.place;
        if let Some(fields) = inner.struct_fields() {
            return Some(AttrValue::Struct { name, fields });
        }
        inner.place = fields_start;
        let keyword = inner.word()?;
        inner.at_end().then_some(AttrValue::Keyword(keyword))
    }
    /// `a = 1, b = [2]` to the end or a last `>`.
    pub fn struct_fields(&mut self) -> Option<Fields<'a>> {
        let mut fields = Vec::new();
        loop {
            let name = self.word()?;
            self.expect("=")?;
            fields.push((name, self.value()?));
            if !self.eat(",") {
                self.eat(">");
                return self.at_end().then_some(fields);
            }
        }
    }
    /// The text of a type: words, `!`, and what is bracketed after them; `->` and what follows.
    pub fn type_text(&mut self) -> Option<&'a str> {
        self.peek()?;
        let start = self.place;
        self.single_type()?;
        while self.eat("->") {
            self.peek()?;
            self.single_type()?;
        }
        Some(self.text[start..self.place].trim_end())
    }
    fn single_type(&mut self) -> Option<()> {
        if self.peek()? == b'(' {
            return self.balanced();
        }
        self.eat("!");
        self.word()?;
        if self.rest().starts_with('<') {
            self.balanced()
        } else {
            Some(())
        }
    }
    fn balanced_suffixes(&mut self) -> Option<()> {
        while self.rest().starts_with(['<', '(']) {
            self.balanced()?;
        }
        Some(())
    }
    /// Skips a bracket that comes next with everything up to its match.
    pub fn balanced(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        let mut closers = Vec::new();
        loop {
            let byte = *bytes.get(self.place)?;
            match byte {
                b'<' => closers.push(b'>'),
                b'(' => closers.push(b')'),
                b'[' => closers.push(b']'),
                b'{' => closers.push(b'}'),
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'-' if bytes.get(self.place + 1) == Some(&b'>') => self.place += 1,
                b'>' | b')' | b']' | b'}' if closers.pop() != Some(byte) => return None,
                _ => {}
            }
            self.place += 1;
            if closers.is_empty() {
                return Some(());
            }
        }
    }
}

fn parse_int(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    match digits.strip_prefix("0x") {
        Some(hex) => {
            u64::from_str_radix(hex, 16).ok().map(|value| (value as i64).wrapping_mul(sign))
        }
        None => text.parse().ok(),
    }
}

/// Resolves `\\`, `\"`, `\n`, `\t` and two hex digits; bytes that are no UTF-8 are replaced.
fn unescape(body: &str) -> String {
    let mut bytes = Vec::with_capacity(body.len());
    let mut rest = body.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let hex = tail.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        match (tail.first(), hex.and_then(|pair| u8::from_str_radix(pair, 16).ok())) {
            (Some(b'n'), _) => bytes.push(b'\n'),
            (Some(b't'), _) => bytes.push(b'\t'),
            (Some(_), Some(value)) => {
                bytes.push(value);
                rest = &tail[1..];
            }
            (Some(&other), None) => bytes.push(other),
            (None, _) => {}
        }
        rest = rest.get(1..).unwrap_or(&[]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
