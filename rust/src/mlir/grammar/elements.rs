//! Elements of constants: `dense<...>`, `array<...>`, `sparse<...>`, `dense_resource<...>`.

use super::literal::{check, is_shaped, Found};
use super::number::{float_bits, IntegerRange, Number, Place};
use super::position::Grammar;
use super::sparse::check_sparse;
use crate::error::{Result, Span};
use crate::mlir::cursor::syntax;

impl<'a> Grammar<'_, 'a> {
    /// `<elements> : type`.
    pub(super) fn dense(&mut self) -> Result<()> {
        let start = self.cursor.pos;
        if !self.cursor.eat(b'<') {
            return Err(self.cursor.expected("'<' after 'dense'"));
        }
        let mut found = None;
        if !self.cursor.eat(b'>') {
            let mut elements = Found::default();
            self.elements(&mut elements)?;
            self.cursor.expect(b'>')?;
            found = Some(elements);
        }
        let span = self.cursor.span_since(start);
        let ty = self.elements_type()?;
        check(self.cursor.text(), found.as_ref(), span, ty)
    }
    /// `: type`; returns the span of the type.
    fn elements_type(&mut self) -> Result<Span> {
        let end = self.cursor.pos;
        self.cursor.expect(b':')?;
        let ty = self.type_of(end)?;
        let alias = self.alias_span(self.cursor.since(ty.start as usize));
        Ok(alias.unwrap_or(ty))
    }
    /// An element, or nested lists of elements, without recursion.
    fn elements(&mut self, found: &mut Found<'a>) -> Result<()> {
        // The number of items so far in each open list.
        let mut open: Vec<usize> = Vec::new();
        let mut element_depth = None;
        loop {
            if self.cursor.eat(b'[') {
                open.push(0);
                if self.cursor.next_byte() != b']' {
                    continue;
                }
            } else {
                if *element_depth.get_or_insert(open.len()) != open.len() {
                    return Err(self.uneven());
                }
                self.element(found)?;
                if let Some(count) = open.last_mut() {
                    *count += 1;
                }
            }
            // Closes the lists that end here.
            loop {
                let Some(&count) = open.last() else { return Ok(()) };
                if self.cursor.eat(b',') {
                    break;
                }
                self.cursor.expect(b']')?;
                open.pop();
                let depth = open.len();
                if found.shape.len() <= depth {
                    found.shape.resize(depth + 1, usize::MAX);
                }
                let size = &mut found.shape[depth];
                if *size != usize::MAX && *size != count {
                    return Err(self.uneven());
                }
                *size = count;
                if let Some(count) = open.last_mut() {
                    *count += 1;
                }
            }
        }
    }
    fn uneven(&self) -> crate::Error {
        let message = "tensor literal is invalid; ranks are not consistent between elements";
        syntax(self.cursor.here(), message).into()
    }
    fn element(&mut self, found: &mut Found<'a>) -> Result<()> {
        let start = self.cursor.pos;
        match self.cursor.next_byte() {
            b'"' => {
                let text = self.cursor.string()?;
                found.string.get_or_insert((text, self.cursor.span_since(start)));
                found.count += 1;
                Ok(())
            }
            b'(' => {
                self.cursor.pos += 1;
                self.scalar(found)?;
                if !self.cursor.eat(b',') {
                    return Err(self.cursor.expected("',' between complex elements"));
                }
                self.scalar(found)?;
                if self.cursor.eat(b')') {
                    return Ok(());
                }
                Err(self.cursor.expected("')' after complex elements"))
            }
            _ => self.scalar(found),
        }
    }
    fn scalar(&mut self, found: &mut Found<'a>) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        found.count += 1;
        if let Some(number) = Number::read(self.cursor) {
            found.note(number, self.cursor.span_since(start));
            return Ok(());
        }
        if self.cursor.pos > start {
            let message = "expected integer or floating point literal";
            return Err(syntax(self.cursor.here(), message).into());
        }
        if matches!(self.cursor.name(), "true" | "false") {
            found.note_word(self.cursor.span_since(start));
            return Ok(());
        }
        self.cursor.pos = start;
        Err(self.cursor.expected("element literal of primitive type"))
    }
    /// `<type: elements>`.
    pub(super) fn dense_array(&mut self) -> Result<()> {
        self.cursor.expect_for(b'<', "after 'array'")?;
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let ty = self.cursor.name();
        let span = self.cursor.span_since(start);
        let bits = match IntegerRange::of(ty) {
            IntegerRange::Bits(bits, _) if ty != "index" => bits,
            IntegerRange::Floats => float_bits(ty),
            _ => {
                self.cursor.pos = start;
                let span = self.type_of(start)?;
                let ty: String = self.cursor.since(start).split_whitespace().collect();
                let message = format!("expected integer or float type, got: '{ty}'");
                return Err(syntax(span, message).into());
            }
        };
        if ty != "i1" && bits % 8 != 0 {
            let message = "element type bitwidth must be a multiple of 8";
            return Err(syntax(span, message).into());
        }
        if self.cursor.eat(b'>') {
            return Ok(());
        }
        if !self.cursor.eat(b':') {
            return Err(self.cursor.expected("':' after dense array type"));
        }
        loop {
            self.array_element(ty)?;
            if self.cursor.eat(b',') {
                continue;
            }
            if self.cursor.eat(b'>') {
                return Ok(());
            }
            let message = "expected '>' to close an array attribute";
            return Err(syntax(self.cursor.here(), message).into());
        }
    }
    fn array_element(&mut self, ty: &str) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let number = Number::read(self.cursor);
        let problem = match number {
            Some(number) if ty != "i1" => number.problem(ty, Place::Array),
            _ => {
                let is_word = number.is_none() && matches!(self.cursor.name(), "true" | "false");
                match IntegerRange::of(ty) {
                    _ if ty == "i1" && is_word => None,
                    _ if number.is_some_and(|number| !number.is_float()) => {
                        Some("expected 'true' or 'false' values for i1 type")
                    }
                    IntegerRange::Bits(..) if is_word => {
                        Some("expected i1 type for 'true' or 'false' values")
                    }
                    IntegerRange::Bits(..) => Some("expected integer literal"),
                    _ => Some("expected floating point literal"),
                }
            }
        };
        match problem {
            Some(problem) => Err(syntax(self.cursor.span_since(start), problem).into()),
            None => Ok(()),
        }
    }
    /// `<indices, values> : type`.
    pub(super) fn sparse(&mut self) -> Result<()> {
        let start = self.cursor.pos;
        self.cursor.expect_for(b'<', "after 'sparse'")?;
        let mut found = None;
        if !self.cursor.eat(b'>') {
            let mut indices = Found::with_all_numbers();
            self.elements(&mut indices)?;
            self.cursor.expect(b',')?;
            let mut values = Found::default();
            self.elements(&mut values)?;
            self.cursor.expect(b'>')?;
            found = Some((indices, values));
        }
        let span = self.cursor.span_since(start);
        let ty = self.elements_type()?;
        check_sparse(self.cursor.text(), found.as_ref(), span, ty)
    }
    /// `<name> : type`.
    pub(super) fn resource(&mut self) -> Result<()> {
        self.cursor.expect_for(b'<', "after 'dense_resource'")?;
        self.key("resource", true)?;
        self.cursor.expect(b'>')?;
        let ty = self.elements_type()?;
        if is_shaped(self.cursor.text(), ty) {
            return Ok(());
        }
        Err(syntax(ty, "`dense_resource` expected a shaped type").into())
    }
}
