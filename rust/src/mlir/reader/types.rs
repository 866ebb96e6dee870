//! Types: text to [`Type`].
//!
//! The text of a type is looked up before it is taken apart, so a type costs a hash of its bytes but
//! for its first appearance.

use crate::error::{Code, Diagnostic, Result, Span};
use crate::index::TypeId;
use crate::ir::{element_bits, ElementType, Type};
use crate::mlir::cursor::{syntax, Cursor};
use crate::mlir::grammar::{split_tensor, Grammar};
use crate::mlir::reader::parser::Parser;
use memchr::memchr2;

/// How deep tuples may nest.
const MAX_TUPLE_DEPTH: usize = 128;

impl<'a> Parser<'a> {
    /// Reads a type.
    pub(in crate::mlir) fn parse_type(&mut self) -> Result<TypeId> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let rest = self.cursor.text().as_bytes().get(start..).unwrap_or(&[]);
        if let Some(found) =
            rest.strip_prefix(b"tensor<").and_then(|rest| memchr2(b'>', b'<', rest))
        {
            let end = start + "tensor<".len() + found + 1;
            let text = self.cursor.text().get(start..end).unwrap_or("");
            if let Some(&id) = self.type_ids.get(text) {
                self.cursor.pos = end;
                return Ok(id);
            }
        }
        skip_type(&mut self.cursor)?;
        let text = self.cursor.since(start);
        self.type_of(text, start, 0)
    }
    /// The type that `text`, at offset `start`, is.
    fn type_of(&mut self, text: &'a str, start: usize, depth: usize) -> Result<TypeId> {
        if let Some(&id) = self.type_ids.get(text) {
            return Ok(id);
        }
        let span = Span::new(start as u32, (start + text.len()) as u32);
        if depth > MAX_TUPLE_DEPTH {
            let message = format!("tuples nest deeper than {MAX_TUPLE_DEPTH} levels");
            return Err(Diagnostic::new(Code::NestedTooDeeply, message).at(span).into());
        }
        let id = if inside(text, "tensor<").is_some() {
            let ty = self.tensor_type(start)?;
            self.program.types.intern(ty, span)
        } else if let Some(inner) = inside(text, "tuple<") {
            let ty = self.tuple_type(inner, start + "tuple<".len(), depth)?;
            self.program.types.intern(ty, span)
        } else if text.starts_with('!') && !text.contains(['.', '<']) {
            let body = self.alias_body(text, span)?;
            let mut cursor = Cursor::new(self.cursor.text(), body.start as usize);
            skip_type(&mut cursor)?;
            let body_text = cursor.since(body.start as usize);
            if depth > 16 {
                return Err(syntax(span, "type aliases refer to each other in a circle").into());
            }
            self.type_of(body_text, body.start as usize, depth + 1)?
        } else {
            let plain: String = text.split_whitespace().collect();
            let name = self.program.strings.intern(&plain);
            self.program.types.intern(Type::Other(name), span)
        };
        self.type_ids.insert(text, id);
        Ok(id)
    }
    /// The elements of a tuple.
    fn tuple_type(&mut self, inner: &'a str, start: usize, depth: usize) -> Result<Type> {
        let mut cursor = Cursor::new(self.cursor.text(), start);
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
    /// The tensor type whose text starts at `start`.
    fn tensor_type(&mut self, start: usize) -> Result<Type> {
        let text = self.cursor.text();
        let parts = split_tensor(text, start)?;
        let element = text.get(parts.element.start as usize..parts.element.end as usize);
        let element = element.unwrap_or("").trim();
        let Some(shape) = parts.shape else {
            return Ok(Type::UnrankedTensor(self.program.strings.intern(element)));
        };
        let element = self.element_type(element, parts.element.start as usize)?;
        let encoding = parts.encoding.map(|span| {
            let text = text.get(span.start as usize..span.end as usize).unwrap_or("");
            self.program.strings.intern(text)
        });
        Ok(Type::RankedTensor { shape, element, encoding })
    }
    fn element_type(&mut self, text: &'a str, start: usize) -> Result<ElementType> {
        let mut text = text;
        let mut hops = 0;
        while text.starts_with('!') && !text.contains(['.', '<']) && hops < 16 {
            let span = Span::new(start as u32, (start + text.len()) as u32);
            let body = self.alias_body(text, span)?;
            text =
                self.cursor.text().get(body.start as usize..body.end as usize).unwrap_or("").trim();
            hops += 1;
        }
        Ok(ElementType { text: self.program.strings.intern(text), bits: element_bits(text) })
    }
    /// The type of tensors of element `element` and the shape of `like`.
    pub(in crate::mlir) fn tensor_with_element(&mut self, like: TypeId, element: &str) -> TypeId {
        let Type::RankedTensor { shape, encoding, .. } = self.program.types[like].clone() else {
            return like;
        };
        let name = self.program.strings.intern(element);
        let element_type = ElementType { text: name, bits: element_bits(element) };
        let dims: String =
            shape.iter().map(|dim| dim.map_or("?x".to_owned(), |dim| format!("{dim}x"))).collect();
        let encoding_text =
            encoding.map_or(String::new(), |id| format!(", {}", self.program.strings.get(id)));
        let text = format!("tensor<{dims}{element}{encoding_text}>");
        let ty = Type::RankedTensor { shape, element: element_type, encoding };
        self.program.intern_type(ty, &text)
    }
    /// Reads `(types) -> types`, appending to the two lists.
    pub(in crate::mlir) fn parse_function_type(
        &mut self,
        inputs: &mut Vec<TypeId>,
        results: &mut Vec<TypeId>,
    ) -> Result<()> {
        self.cursor.expect(b'(')?;
        self.parse_type_list_to(b')', inputs)?;
        self.cursor.expect_arrow()?;
        self.parse_results(results)
    }
    /// Reads what stands after `->`.
    pub(in crate::mlir) fn parse_results(&mut self, results: &mut Vec<TypeId>) -> Result<()> {
        if self.cursor.eat(b'(') {
            return self.parse_type_list_to(b')', results);
        }
        results.push(self.parse_type()?);
        Ok(())
    }
    /// Reads types up to `end`, the opening bracket being read already.
    pub(in crate::mlir) fn parse_type_list_to(
        &mut self,
        end: u8,
        types: &mut Vec<TypeId>,
    ) -> Result<()> {
        if self.cursor.eat(end) {
            return Ok(());
        }
        self.parse_types(types)?;
        self.cursor.expect(end)
    }
    /// Reads one or more types separated by commas.
    pub(in crate::mlir) fn parse_types(&mut self, types: &mut Vec<TypeId>) -> Result<()> {
        loop {
            types.push(self.parse_type()?);
            if !self.cursor.eat(b',') {
                return Ok(());
            }
        }
    }
}

/// What is between `prefix` and the final `>`.
fn inside<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    text.strip_prefix(prefix)?.strip_suffix('>')
}

/// Steps over a type; whether aliases in it are defined is left open.
pub(in crate::mlir) fn skip_type(cursor: &mut Cursor<'_>) -> Result<()> {
    cursor.skip_space();
    Grammar::new(cursor, None).ty()
}
