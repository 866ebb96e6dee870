//! Types: text to [`Type`].
//!
//! The text of a type is looked up before it is parsed, so that each type is parsed once.

use super::mesh_tensor::{body, is_mesh_tensor, respaced};
use crate::error::{Code, Diagnostic, Result, Span};
use crate::index::TypeId;
use crate::ir::{element_bits, ElementType, Program, Type};
use crate::mlir::cursor::{syntax, Cursor};
use crate::mlir::grammar::{skip_attribute, skip_type, split_tensor, Grammar, TensorParts};
use memchr::memchr2;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::fmt::Write as _;

/// The deepest nesting of tuples.
const MAX_TUPLE_DEPTH: usize = 128;

/// The types that have appeared so far, by their texts.
#[derive(Default)]
pub(super) struct Types<'a> {
    ids: FxHashMap<&'a str, TypeId>,
}

impl<'a> Types<'a> {
    /// Reads a type.
    pub fn read(&mut self, cursor: &mut Cursor<'a>, program: &mut Program) -> Result<TypeId> {
        cursor.skip_space();
        let start = cursor.pos;
        let rest = cursor.text().as_bytes().get(start..).unwrap_or(&[]);
        if let Some(found) =
            rest.strip_prefix(b"tensor<").and_then(|rest| memchr2(b'>', b'<', rest))
        {
            let end = start + "tensor<".len() + found + 1;
            let text = cursor.text().get(start..end).unwrap_or("");
            if let Some(&id) = self.ids.get(text) {
                cursor.pos = end;
                return Ok(id);
            }
            let parts = split_tensor(cursor, Some(program))?;
            let mut new = NewType { types: self, program, text: cursor.text() };
            return new.tensor(cursor.since(start), start, parts);
        }
        Grammar::new(cursor, Some(program)).ty()?;
        let mut new = NewType { types: self, program, text: cursor.text() };
        new.type_of(cursor.since(start), start, 0)
    }
    /// Reads one or more types separated by commas.
    pub fn read_some(
        &mut self,
        cursor: &mut Cursor<'a>,
        program: &mut Program,
        to: &mut Vec<TypeId>,
    ) -> Result<()> {
        loop {
            to.push(self.read(cursor, program)?);
            if !cursor.eat(b',') {
                return Ok(());
            }
        }
    }
    /// Reads types up to `)`; the opening parenthesis was read already.
    pub fn read_list(
        &mut self,
        cursor: &mut Cursor<'a>,
        program: &mut Program,
        to: &mut Vec<TypeId>,
    ) -> Result<()> {
        if cursor.eat(b')') {
            return Ok(());
        }
        self.read_some(cursor, program, to)?;
        cursor.expect(b')')
    }
    /// Parses the types after `->`: one, or several in parentheses.
    pub fn read_results(
        &mut self,
        cursor: &mut Cursor<'a>,
        program: &mut Program,
        to: &mut Vec<TypeId>,
    ) -> Result<()> {
        if cursor.eat(b'(') {
            return self.read_list(cursor, program, to);
        }
        to.push(self.read(cursor, program)?);
        Ok(())
    }
}

/// Parses types whose texts appear for the first time.
struct NewType<'t, 'a> {
    types: &'t mut Types<'a>,
    program: &'t mut Program,
    /// The whole text.
    text: &'a str,
}

impl<'a> NewType<'_, 'a> {
    /// The type with the text `text`, at offset `start`.
    fn type_of(&mut self, text: &'a str, start: usize, depth: usize) -> Result<TypeId> {
        if let Some(&id) = self.types.ids.get(text) {
            return Ok(id);
        }
        let span = Span::new(start as u32, (start + text.len()) as u32);
        if depth > MAX_TUPLE_DEPTH {
            let message = format!("tuples nest deeper than {MAX_TUPLE_DEPTH} levels");
            return Err(Diagnostic::new(Code::NestedTooDeeply, message).at(span).into());
        }
        if inside(text, "tensor").is_some() {
            let parts = split_tensor(&mut Cursor::new(self.text, start), None)?;
            return self.tensor(text, start, parts);
        }
        let id = if is_mesh_tensor(text) {
            self.mesh_tensor(text, start, depth)?
        } else if let Some(inner) = inside(text, "tuple") {
            let ty = self.tuple_type(inner, start + text.len() - 1 - inner.len(), depth)?;
            self.intern(ty, span)
        } else if is_alias(text) {
            let body = self.alias_body(text, span)?;
            let mut cursor = Cursor::new(self.text, body.start as usize);
            skip_type(&mut cursor)?;
            let body_text = cursor.since(body.start as usize);
            self.type_of(body_text, body.start as usize, depth + 1)?
        } else {
            let plain: String = text.split_whitespace().collect();
            let name = self.program.intern(&plain);
            self.program.intern_type_at(Type::Other(name), span)
        };
        self.types.ids.insert(text, id);
        Ok(id)
    }
    /// The type of tensors on a mesh with the text `text`, at offset `start`.
    fn mesh_tensor(&mut self, text: &'a str, start: usize, depth: usize) -> Result<TypeId> {
        let skipped = text.len() - body(text).map_or(0, str::len);
        let mut cursor = Cursor::new(self.text, start + skipped);
        cursor.expect(b'<')?;
        let mesh = self.attribute(&mut cursor)?;
        // The name is kept without its attribute type.
        let mesh = mesh.rfind('"').map_or(&*mesh, |end| &mesh[..=end]);
        let mut printed = format!("!mpmd.mesh_tensor<{mesh}, ");
        cursor.expect(b',')?;
        cursor.skip_space();
        let at = cursor.pos;
        skip_type(&mut cursor)?;
        let tensor = self.type_of(cursor.since(at), at, depth + 1)?;
        let Type::RankedTensor { shape, .. } = self.program.types()[tensor].clone() else {
            let message = format!(
                "invalid kind of type specified: expected builtin.tensor, but found '{}'",
                self.program.type_text(tensor)
            );
            return Err(syntax(cursor.span_since(at), message).into());
        };
        printed.push_str(self.program.type_text(tensor));
        while cursor.eat(b',') {
            let key = if cursor.eat_keyword("sharding") { "sharding" } else { "memory_kind" };
            if key == "memory_kind" {
                cursor.expect_keyword(key)?;
            }
            cursor.expect(b'=')?;
            let value = self.attribute(&mut cursor)?;
            let value = value.strip_prefix("#sdy.sharding").unwrap_or(&value);
            let _ = write!(printed, ", {key}={value}");
        }
        printed.push('>');
        let text = self.program.intern(&printed);
        Ok(self.program.intern_type(Type::MeshTensor { shape, tensor, text }, &printed))
    }
    /// The attribute at `cursor`, with aliases resolved, as MLIR prints it.
    fn attribute(&self, cursor: &mut Cursor<'a>) -> Result<String> {
        cursor.skip_space();
        let start = cursor.pos;
        if cursor.peek() == b'<' {
            cursor.skip_balanced()?;
        } else {
            skip_attribute(cursor)?;
        }
        Ok(respaced(self.program.resolved_alias(cursor.since(start))))
    }
    /// The elements of a tuple.
    fn tuple_type(&mut self, inner: &'a str, start: usize, depth: usize) -> Result<Type> {
        let mut cursor = Cursor::new(self.text, start);
        let end = start + inner.len();
        let mut elements = Vec::new();
        cursor.skip_space();
        while cursor.pos < end {
            let at = cursor.pos;
            skip_type(&mut cursor)?;
            elements.push(self.type_of(cursor.since(at), at, depth + 1)?);
            cursor.skip_space();
            if cursor.pos < end {
                cursor.expect(b',')?;
            }
            cursor.skip_space();
        }
        Ok(Type::Tuple(elements))
    }
    /// The tensor type of `text`, at offset `start`, with these parts.
    fn tensor(&mut self, text: &'a str, start: usize, parts: TensorParts) -> Result<TypeId> {
        if let Some(&id) = self.types.ids.get(text) {
            return Ok(id);
        }
        let ty = self.tensor_type(parts)?;
        let span = Span::new(start as u32, (start + text.len()) as u32);
        let id = self.intern(ty, span);
        self.types.ids.insert(text, id);
        Ok(id)
    }
    /// The id of `ty`, whose text is at `span`.
    fn intern(&mut self, ty: Type, span: Span) -> TypeId {
        match spaced(self.text_at(span)) {
            Cow::Borrowed(_) => self.program.intern_type_at(ty, span),
            Cow::Owned(text) => self.program.intern_type(ty, &text),
        }
    }
    fn tensor_type(&mut self, parts: TensorParts) -> Result<Type> {
        let element = self.text_at(parts.element);
        let Some(shape) = parts.shape else {
            return Ok(Type::UnrankedTensor(self.program.intern(element)));
        };
        let element = self.element_type(element, parts.element.start as usize)?;
        let encoding = parts.encoding.map(|span| {
            let text = self.text.get(span.start as usize..span.end as usize).unwrap_or("");
            self.program.intern(text)
        });
        Ok(Type::RankedTensor { shape, element, encoding })
    }
    fn element_type(&mut self, text: &'a str, start: usize) -> Result<ElementType> {
        let mut text = text;
        if is_alias(text) {
            let span = Span::new(start as u32, (start + text.len()) as u32);
            let body = self.alias_body(text, span)?;
            text = self.text_at(body);
        }
        let text = spaced(text);
        Ok(ElementType { text: self.program.intern(&text), bits: element_bits(&text) })
    }
    /// The text at `span` without white space around it.
    fn text_at(&self, span: Span) -> &'a str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("").trim()
    }
    /// The body of type alias `name`, which is used at `span` and must be defined before.
    fn alias_body(&mut self, name: &str, span: Span) -> Result<Span> {
        let program = &*self.program;
        program.strings().find(name).and_then(|id| program.alias(id)).ok_or_else(|| {
            let message = format!("undefined symbol alias id '{}'", &name[1..]);
            Diagnostic::new(Code::UnknownSymbol, message).at(span).into()
        })
    }
}

/// Whether `text`, a type, is an alias.
fn is_alias(text: &str) -> bool {
    text.starts_with('!') && !text.contains(['.', '<'])
}

/// The text between the `<` after `name` and the final `>`.
fn inside<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut cursor = Cursor::new(text.strip_prefix(name)?, 0);
    cursor.eat(b'<').then_some(())?;
    cursor.text()[cursor.pos..].strip_suffix('>')
}

/// `text`, a type, with a space after each comma, as MLIR prints it.
fn spaced(text: &str) -> Cow<'_, str> {
    let mut parts = text.split(", ");
    if !parts.any(|part| part.contains(|c: char| c.is_ascii_whitespace())) {
        return Cow::Borrowed(text);
    }
    let (mut found, mut cursor) = (String::with_capacity(text.len()), Cursor::new(text, 0));
    loop {
        cursor.skip_space();
        let start = cursor.pos;
        if start >= text.len() {
            return Cow::Owned(found);
        }
        if cursor.peek() != b'"' || cursor.string().is_err() {
            cursor.pos = start + text[start..].chars().next().map_or(1, char::len_utf8);
        }
        found.push_str(cursor.since(start));
        if found.ends_with(',') {
            found.push(' ');
        }
    }
}

/// The type of tensors of element `element` and the shape of `like`.
pub(super) fn tensor_with_element(program: &mut Program, like: TypeId, element: &str) -> TypeId {
    let Type::RankedTensor { shape, encoding, .. } = program.types()[like].clone() else {
        return like;
    };
    let name = program.intern(element);
    let element_type = ElementType { text: name, bits: element_bits(element) };
    let dims: String =
        shape.iter().map(|dim| dim.map_or("?x".to_owned(), |dim| format!("{dim}x"))).collect();
    let encoding_text = encoding.map_or(String::new(), |id| format!(", {}", program.str(id)));
    let text = format!("tensor<{dims}{element}{encoding_text}>");
    let ty = Type::RankedTensor { shape, element: element_type, encoding };
    program.intern_type(ty, &text)
}
