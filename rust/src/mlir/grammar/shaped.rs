//! Types with elements: tensors, vectors, buffers, complex numbers, tuples.

use super::position::Grammar;
use super::types::TypeKind;
use crate::error::{Code, Diagnostic, Result, Span};
use crate::ir::Program;
use crate::mlir::cursor::{syntax, Cursor};
use crate::shardy::Change;

impl Grammar<'_, '_> {
    /// `<2x?xf32, encoding>`.
    pub(super) fn tensor(&mut self) -> Result<TensorParts> {
        expect_in(self.cursor, b'<', "tensor type")?;
        let shape = dims(self.cursor)?;
        let element =
            self.element_type(TypeKind::is_tensor_element, "invalid tensor element type")?;
        let mut encoding = None;
        if self.cursor.eat(b',') && self.cursor.next_byte() != b'>' {
            let start = self.cursor.pos;
            self.attribute()?;
            let span = self.cursor.span_since(start);
            self.check_bounds(shape.as_deref(), element, span)?;
            if shape.is_none() {
                let message = "cannot apply encoding to unranked tensor";
                return Err(syntax(span, message).into());
            }
            encoding = Some(span);
        }
        expect_in(self.cursor, b'>', "tensor type")?;
        Ok(TensorParts { shape, element, encoding })
    }
    /// The type of elements for which `is_right` holds.
    fn element_type(&mut self, is_right: fn(TypeKind) -> bool, problem: &str) -> Result<Span> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        self.ty()?;
        let span = self.cursor.span_since(start);
        if self.has_no_aliases() || is_right(self.kind_since(start)) {
            return Ok(span);
        }
        Err(syntax(span, problem).into())
    }
    /// `<f32, i32>`.
    pub(super) fn tuple(&mut self) -> Result<()> {
        expect_in(self.cursor, b'<', "tuple type")?;
        if self.cursor.eat(b'>') {
            return Ok(());
        }
        loop {
            self.ty()?;
            if !self.cursor.eat(b',') {
                return expect_in(self.cursor, b'>', "tuple type");
            }
        }
    }
    /// `<f32>`.
    pub(super) fn complex(&mut self) -> Result<()> {
        expect_in(self.cursor, b'<', "complex type")?;
        self.element_type(TypeKind::is_part, "invalid element type for complex")?;
        expect_in(self.cursor, b'>', "complex type")
    }
    /// `<2x[4]xf32>` of the vector type at `start`.
    pub(super) fn vector(&mut self, start: usize) -> Result<()> {
        expect_in(self.cursor, b'<', "vector type")?;
        let mut sizes = Vec::new();
        loop {
            let is_scalable = self.cursor.eat(b'[');
            if !self.cursor.next_byte().is_ascii_digit() {
                if is_scalable {
                    return Err(self.cursor.expected("non-function type"));
                }
                break;
            }
            sizes.push(size(self.cursor)?);
            if is_scalable && !self.cursor.eat(b']') {
                return Err(self.cursor.expected("']' closing scalable dimension"));
            }
            expect_in(self.cursor, b'x', "dimension list")?;
        }
        if sizes.contains(&0) {
            let sizes: Vec<String> = sizes.iter().map(i64::to_string).collect();
            let sizes = sizes.join(", ");
            let message = format!("vector types must have positive constant sizes but got {sizes}");
            return Err(syntax(self.cursor.span_since(start), message).into());
        }
        let problem = "failed to verify 'elementType': VectorElementTypeInterface instance";
        self.element_type(TypeKind::is_vector_element, problem)?;
        expect_in(self.cursor, b'>', "vector type")
    }
    /// `<2x?xf32, layout, memory space>`.
    pub(super) fn buffer(&mut self) -> Result<()> {
        expect_in(self.cursor, b'<', "memref type")?;
        let shape = dims(self.cursor)?;
        self.element_type(TypeKind::is_buffer_element, "invalid memref element type")?;
        let mut has_space = false;
        while self.cursor.eat(b',') {
            self.cursor.skip_space();
            let start = self.cursor.pos;
            if matches!(self.cursor.peek(), b'>' | b',') {
                return Err(self.cursor.expected("list element"));
            }
            self.attribute()?;
            let span = self.cursor.span_since(start);
            let text = self.cursor.since(start);
            let rank = shape.as_ref().map(Vec::len);
            if is_layout(text) {
                if let Some(problem) = layout_problem(text, rank) {
                    return Err(syntax(span, problem).into());
                }
                continue;
            }
            if std::mem::replace(&mut has_space, true) {
                let message = "multiple memory spaces specified in memref type";
                return Err(syntax(span, message).into());
            }
            if text.starts_with('[') && !self.shardy().has(Change::ListsAsMemorySpaces) {
                return Err(syntax(span, "unsupported memory space Attribute").into());
            }
        }
        expect_in(self.cursor, b'>', "memref type")
    }
}

/// Whether the attribute `text` is the layout of a buffer.
fn is_layout(text: &str) -> bool {
    text.starts_with("affine_map") || text.starts_with("strided")
}

/// The error if the layout `text` does not fit a buffer of this rank.
fn layout_problem(text: &str, rank: Option<usize>) -> Option<String> {
    let Some(rank) = rank else {
        return Some("cannot have affine map for unranked memref type".to_owned());
    };
    let is_map = text.starts_with("affine_map");
    let (open, close) = if is_map { ('(', ')') } else { ('[', ']') };
    let list = text.split_once(open).and_then(|(_, rest)| rest.split_once(close));
    let list = list.map_or("", |(list, _)| list.trim());
    let count = if list.is_empty() { 0 } else { list.split(',').count() };
    if count == rank {
        return None;
    }
    Some(if is_map {
        format!("memref layout mismatch between rank and affine map: {rank} != {count}")
    } else {
        "expected the number of strides to match the rank".to_owned()
    })
}

/// Steps over `byte`, which is required in `what`.
fn expect_in(cursor: &mut Cursor<'_>, byte: u8, what: &str) -> Result<()> {
    if cursor.eat(byte) {
        return Ok(());
    }
    Err(cursor.expected(&format!("'{}' in {what}", byte as char)))
}

/// Reads `2x?x` or `*x` in front of an element type; `None` is an unranked tensor.
fn dims(cursor: &mut Cursor<'_>) -> Result<Option<Vec<Option<i64>>>> {
    let mut shape = Vec::with_capacity(4);
    if cursor.eat(b'*') {
        expect_in(cursor, b'x', "dimension list")?;
        return Ok(None);
    }
    loop {
        let dim = match cursor.next_byte() {
            b'?' => {
                cursor.pos += 1;
                None
            }
            b'0'..=b'9' => Some(size(cursor)?),
            _ => return Ok(Some(shape)),
        };
        shape.push(dim);
        expect_in(cursor, b'x', "dimension list")?;
    }
}

/// Reads the size of a dim right here.
fn size(cursor: &mut Cursor<'_>) -> Result<i64> {
    let start = cursor.pos;
    let size = cursor.digits().and_then(|size| i64::try_from(size).ok());
    let too_large = || {
        let span = cursor.span_since(start);
        Diagnostic::new(Code::UnsupportedType, "invalid dimension: it is too large").at(span)
    };
    Ok(size.ok_or_else(too_large)?)
}

/// The parts of a ranked or unranked tensor type.
pub(in crate::mlir) struct TensorParts {
    /// Its dims, `None` if it has no rank.
    pub shape: Option<Vec<Option<i64>>>,
    pub element: Span,
    pub encoding: Option<Span>,
}

/// Parses `tensor<...>`, or the corresponding part of a vector or buffer type; without `program`,
/// checks only its form.
pub(in crate::mlir) fn split_tensor(
    cursor: &mut Cursor<'_>,
    program: Option<&Program>,
) -> Result<TensorParts> {
    cursor.name();
    Grammar::new(cursor, program).nested(Grammar::tensor)
}
