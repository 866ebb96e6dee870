//! Types.

use super::position::Grammar;
use crate::error::{Result, Span};
use crate::mlir::cursor::Cursor;

/// The names of floating-point types.
const FLOATS: [&str; 19] = [
    "f32",
    "bf16",
    "f16",
    "f64",
    "tf32",
    "f80",
    "f128",
    "f8E5M2",
    "f8E4M3",
    "f8E4M3FN",
    "f8E5M2FNUZ",
    "f8E4M3FNUZ",
    "f8E4M3B11FNUZ",
    "f8E3M4",
    "f8E8M0FNU",
    "f4E2M1FN",
    "f6E2M3FN",
    "f6E3M2FN",
    "f4E2M1",
];
/// The widest integer type.
const MAX_BITS: u64 = 16_777_215;

/// Whether `name` is a floating-point type.
pub(super) fn is_float(name: &str) -> bool {
    FLOATS.contains(&name)
}

/// Whether `name` is a type that is written as one word.
fn is_scalar(name: &str) -> bool {
    let digits = ["i", "si", "ui"].iter().find_map(|prefix| {
        let digits = name.strip_prefix(prefix)?;
        (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(digits)
    });
    digits.is_some_and(|bits| bits.parse().is_ok_and(|bits: u64| bits <= MAX_BITS))
        || is_float(name)
        || matches!(name, "index" | "none" | "token")
}

impl Grammar<'_, '_> {
    /// A type.
    pub fn ty(&mut self) -> Result<()> {
        self.type_or("non-function type")
    }
    /// A type; the error names `what` is expected.
    pub(super) fn type_or(&mut self, what: &str) -> Result<()> {
        self.nested(|grammar| grammar.type_here(what))
    }
    fn type_here(&mut self, what: &str) -> Result<()> {
        match self.cursor.next_byte() {
            b'(' => {
                self.list(b'(', b')', Self::ty)?;
                self.cursor.expect_arrow()?;
                if self.cursor.next_byte() != b'(' {
                    return self.plain_type("non-function type");
                }
                self.list(b'(', b')', Self::ty)
            }
            _ => self.plain_type(what),
        }
    }
    /// A type that is not a function type.
    fn plain_type(&mut self, what: &str) -> Result<()> {
        self.cursor.skip_space();
        if self.cursor.peek() == b'!' {
            return self.dialect_type();
        }
        let start = self.cursor.pos;
        match self.cursor.name() {
            "tensor" => self.tensor().map(|_| ()),
            "tuple" => self.list(b'<', b'>', Self::plain_type_nested),
            "complex" => {
                self.cursor.expect(b'<')?;
                self.plain_type_nested()?;
                self.cursor.expect(b'>')
            }
            "vector" | "memref" if self.cursor.peek() == b'<' => self.cursor.skip_balanced(),
            name if is_scalar(name) => Ok(()),
            _ => {
                self.cursor.pos = start;
                Err(self.cursor.expected(what))
            }
        }
    }
    fn plain_type_nested(&mut self) -> Result<()> {
        self.nested(|grammar| grammar.plain_type("non-function type"))
    }
    /// `<2x?xf32, encoding>`.
    fn tensor(&mut self) -> Result<TensorParts> {
        expect_in(self.cursor, b'<', "tensor type")?;
        let shape = dims(self.cursor)?;
        self.cursor.skip_space();
        let start = self.cursor.pos;
        self.plain_type_nested()?;
        let element = self.cursor.span_since(start);
        let mut encoding = None;
        if self.cursor.eat(b',') && self.cursor.next_byte() != b'>' {
            let start = self.cursor.pos;
            self.attribute()?;
            encoding = Some(self.cursor.span_since(start));
        }
        expect_in(self.cursor, b'>', "tensor type")?;
        Ok(TensorParts { shape, element, encoding })
    }
    /// `!alias`, `!dialect.name<...>` or `!dialect<...>`.
    fn dialect_type(&mut self) -> Result<()> {
        let start = self.cursor.pos;
        self.cursor.pos += 1;
        let name = alias_name(self.cursor);
        if name.is_empty() {
            return Err(self.cursor.expected("the name of a type"));
        }
        if self.cursor.peek() == b'<' {
            return self.cursor.skip_body();
        }
        let whole = self.cursor.since(start);
        if name.contains('.') || self.is_alias(whole) {
            return Ok(());
        }
        let span = self.cursor.span_since(start);
        let message = format!("undefined symbol alias id '{name}'");
        Err(crate::Diagnostic::new(crate::Code::UnknownSymbol, message).at(span).into())
    }
}

/// A name after `#` or `!`.
pub(super) fn alias_name<'a>(cursor: &mut Cursor<'a>) -> &'a str {
    let start = cursor.pos;
    let name = cursor.ssa_name();
    // `->` is no part of a name.
    if name.ends_with('-') && cursor.peek() == b'>' {
        cursor.pos -= 1;
    }
    cursor.since(start)
}

/// Steps over `byte`, which `what` requires here.
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
            b'0'..=b'9' => {
                let at = cursor.pos;
                let dim = cursor.digits().and_then(|dim| i64::try_from(dim).ok());
                let span = cursor.span_since(at);
                let too_large = || {
                    let code = crate::Code::UnsupportedType;
                    crate::Diagnostic::new(code, "a dim is too large").at(span)
                };
                Some(dim.ok_or_else(too_large)?)
            }
            _ => return Ok(Some(shape)),
        };
        shape.push(dim);
        expect_in(cursor, b'x', "dimension list")?;
    }
}

/// The parts of a ranked or unranked tensor type.
pub(in crate::mlir) struct TensorParts {
    /// Its dims, `None` if it has no rank.
    pub shape: Option<Vec<Option<i64>>>,
    pub element: Span,
    pub encoding: Option<Span>,
}

/// Steps over `tensor<...>` and takes it apart; whether aliases in it are defined is left open.
pub(in crate::mlir) fn split_tensor(cursor: &mut Cursor<'_>) -> Result<TensorParts> {
    cursor.pos += "tensor".len();
    Grammar::new(cursor, None).nested(Grammar::tensor)
}

/// Steps over a type, without checking that aliases in it are defined.
pub(in crate::mlir) fn skip_type(cursor: &mut Cursor<'_>) -> Result<()> {
    cursor.skip_space();
    Grammar::new(cursor, None).ty()
}
