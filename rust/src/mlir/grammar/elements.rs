//! Elements of constants: `dense<...>`, `array<...>`, `sparse<...>`, `dense_resource<...>`.

use super::number::{IntegerRange, Number};
use super::position::Grammar;
use super::types::split_tensor;
use crate::error::{Result, Span};
use crate::mlir::cursor::{syntax, Cursor};

/// The elements between the brackets of `dense<...>`.
#[derive(Default)]
struct Found {
    /// The sizes of the nested lists; one of them may be empty.
    shape: Vec<usize>,
    /// The first number of each kind, the most negative and the largest integer.
    numbers: [Option<(Number, Span)>; 4],
    has_bool: Option<Span>,
    /// Elements in a string: bytes in hexadecimal digits if they start like that.
    string: Option<(bool, Span)>,
}

impl Found {
    fn note(&mut self, number: Number, span: Span) {
        let slot = match number {
            Number::Float => 0,
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
}

impl Grammar<'_, '_> {
    /// `<elements> : type`.
    pub(super) fn dense(&mut self) -> Result<()> {
        let start = self.cursor.pos;
        self.cursor.expect(b'<')?;
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
        self.type_of(end)
    }
    /// An element, or nested lists of them; without recursion.
    fn elements(&mut self, found: &mut Found) -> Result<()> {
        // The number of items so far of each open list.
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
        let message = "the lists of elements differ in their sizes or depths";
        syntax(self.cursor.here(), message).into()
    }
    fn element(&mut self, found: &mut Found) -> Result<()> {
        let start = self.cursor.pos;
        match self.cursor.next_byte() {
            b'"' => {
                let text = self.cursor.string()?;
                let is_hex = text
                    .strip_prefix("0x")
                    .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
                found.string = Some((is_hex, self.cursor.span_since(start)));
                Ok(())
            }
            b'(' => {
                self.cursor.pos += 1;
                self.scalar(found)?;
                self.cursor.expect(b',')?;
                self.scalar(found)?;
                self.cursor.expect(b')')
            }
            _ => self.scalar(found),
        }
    }
    fn scalar(&mut self, found: &mut Found) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        if let Some(number) = Number::read(self.cursor) {
            found.note(number, self.cursor.span_since(start));
            return Ok(());
        }
        self.cursor.pos = start;
        if matches!(self.cursor.name(), "true" | "false") {
            found.has_bool.get_or_insert(self.cursor.span_since(start));
            return Ok(());
        }
        self.cursor.pos = start;
        Err(self.cursor.expected("an element"))
    }
    /// `<type: elements>`.
    pub(super) fn dense_array(&mut self) -> Result<()> {
        self.cursor.expect(b'<')?;
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let ty = self.cursor.name();
        let range = IntegerRange::of(ty);
        if ty == "index" || range == IntegerRange::Nothing {
            self.cursor.pos = start;
            return Err(self.cursor.expected("an integer or float type"));
        }
        if self.cursor.eat(b'>') {
            return Ok(());
        }
        self.cursor.expect(b':')?;
        loop {
            self.array_element(ty, range)?;
            if !self.cursor.eat(b',') {
                return self.cursor.expect(b'>');
            }
        }
    }
    fn array_element(&mut self, ty: &str, range: IntegerRange) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        if ty == "i1" {
            if matches!(self.cursor.name(), "true" | "false") {
                return Ok(());
            }
            return Err(self.cursor.expected("'true' or 'false'"));
        }
        let Some(number) = Number::read(self.cursor) else {
            return Err(self.cursor.expected("a number"));
        };
        match number.problem(range) {
            Some(problem) => Err(syntax(self.cursor.span_since(start), problem).into()),
            None => Ok(()),
        }
    }
    /// `<indices, values> : type`.
    pub(super) fn sparse(&mut self) -> Result<()> {
        self.cursor.expect(b'<')?;
        if !self.cursor.eat(b'>') {
            let mut found = Found::default();
            self.elements(&mut found)?;
            self.cursor.expect(b',')?;
            self.elements(&mut found)?;
            self.cursor.expect(b'>')?;
        }
        self.elements_type().map(|_| ())
    }
    /// `<name> : type`.
    pub(super) fn resource(&mut self) -> Result<()> {
        self.cursor.expect(b'<')?;
        self.key("resource", true)?;
        self.cursor.expect(b'>')?;
        let ty = self.elements_type()?;
        if is_shaped(self.cursor.text(), ty) {
            return Ok(());
        }
        Err(syntax(ty, "`dense_resource` expected a shaped type").into())
    }
}

/// Whether the type at `ty` of `text` has a shape, or is of a dialect and may have one.
fn is_shaped(text: &str, ty: Span) -> bool {
    let name = text.get(ty.start as usize..ty.end as usize).unwrap_or("");
    ["tensor", "vector", "memref", "!"].iter().any(|start| name.starts_with(start))
}

/// Checks that a type, if it is a tensor's, can have the elements `found`; `None` if there are none.
fn check(text: &str, found: Option<&Found>, span: Span, ty: Span) -> Result<()> {
    let fail = |at: Span, problem: &str| Err(syntax(at, problem).into());
    let name = text.get(ty.start as usize..ty.end as usize).unwrap_or("");
    if !name.starts_with("tensor<") {
        let is_shaped = is_shaped(text, ty);
        return if is_shaped { Ok(()) } else { fail(ty, "elements need a type with a shape") };
    }
    let tensor = split_tensor(&mut Cursor::new(text, ty.start as usize))?;
    let shape = tensor.shape.unwrap_or_else(|| vec![None]);
    let Some(shape) = shape.into_iter().collect::<Option<Vec<i64>>>() else {
        return fail(span, "elements literal type must have static shape");
    };
    let Some(found) = found else {
        let is_empty = shape.contains(&0);
        return if is_empty {
            Ok(())
        } else {
            fail(span, "elements are missing: the type has some")
        };
    };
    let element = text.get(tensor.element.start as usize..tensor.element.end as usize);
    let element = element.unwrap_or("").trim();
    if let Some((is_hex, at)) = found.string {
        let holds_numbers = IntegerRange::of(element) != IntegerRange::Nothing;
        if holds_numbers && !is_hex {
            return fail(at, "bytes are hexadecimal digits after 0x");
        }
        return Ok(());
    }
    let fits = found.shape.iter().zip(&shape).all(|(&found, &dim)| i64::try_from(found) == Ok(dim));
    if !found.shape.is_empty() && (found.shape.len() != shape.len() || !fits) {
        // The dims inside an empty list are not known.
        let is_empty = found.shape.contains(&0) && shape.contains(&0);
        if !is_empty {
            return fail(span, "the lists of elements have not the shape of the type");
        }
    }
    let part = element.strip_prefix("complex<").and_then(|part| part.strip_suffix('>'));
    let range = IntegerRange::of(part.unwrap_or(element).trim());
    if range == IntegerRange::Nothing {
        return Ok(());
    }
    if let Some(at) = found.has_bool.filter(|_| element != "i1") {
        return fail(at, "'true' and 'false' are elements of type i1");
    }
    for (number, at) in found.numbers.into_iter().flatten() {
        if let Some(problem) = number.problem(range) {
            return fail(at, problem);
        }
    }
    Ok(())
}
