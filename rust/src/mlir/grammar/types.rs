//! The grammar of types: of the builtin dialect, and of dialects by their prefix.

use super::position::Grammar;
use crate::error::Result;
use crate::mlir::cursor::{syntax, Cursor};

/// The names of floating-point types.
const FLOATS: [&str; 18] = [
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
];
/// The widest integer type.
const MAX_BITS: u64 = 16_777_215;

/// Whether `name` is a floating-point type.
pub(super) fn is_float(name: &str) -> bool {
    FLOATS.contains(&name)
}

/// Whether `name` is an integer type, whatever its width.
fn is_integer(name: &str) -> bool {
    bits(name).is_some()
}

/// The digits of the width of the integer type `name`; `None` if it is no such type.
fn bits(name: &str) -> Option<&str> {
    let digits = ["i", "si", "ui"].iter().find_map(|prefix| name.strip_prefix(prefix))?;
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(digits)
}

/// Whether `name` is a type that is written as one word.
fn is_scalar(name: &str) -> bool {
    let width = bits(name).and_then(|bits| bits.parse::<u64>().ok());
    width.is_some_and(|bits| bits <= MAX_BITS)
        || is_float(name)
        || matches!(name, "index" | "none" | "token")
}

/// The class of a type, as far as types that contain it check it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TypeKind {
    Integer,
    Float,
    Index,
    Complex,
    Vector,
    /// A ranked tensor.
    Tensor,
    Buffer,
    /// Any other builtin type.
    Other,
    /// A type of `StableHLO`.
    StableHlo,
    /// A type of another dialect.
    Dialect,
}

impl TypeKind {
    /// The class of the type `text`, which is not an alias.
    fn of(text: &str) -> Self {
        let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let body = rest.trim_start().strip_prefix('<').map_or("", str::trim_start);
        match word {
            "" if text.starts_with("!stablehlo") => Self::StableHlo,
            "" if text.starts_with('!') => Self::Dialect,
            "tensor" if !body.starts_with('*') => Self::Tensor,
            "complex" => Self::Complex,
            "vector" => Self::Vector,
            "memref" => Self::Buffer,
            "index" => Self::Index,
            word if is_float(word) => Self::Float,
            "" | "tensor" | "tuple" | "none" | "token" => Self::Other,
            _ => Self::Integer,
        }
    }
    /// Whether it may be the type of the parts of a complex number.
    pub fn is_part(self) -> bool {
        matches!(self, Self::Integer | Self::Float)
    }
    /// Whether a tensor may have elements of it.
    pub fn is_tensor_element(self) -> bool {
        self.is_part() || !matches!(self, Self::Tensor | Self::Buffer | Self::Other)
    }
    /// Whether a vector may have elements of it.
    pub fn is_vector_element(self) -> bool {
        self.is_part() || matches!(self, Self::Index | Self::Dialect)
    }
    /// Whether a buffer may have elements of it.
    pub fn is_buffer_element(self) -> bool {
        !matches!(self, Self::Tensor | Self::Other | Self::StableHlo)
    }
}

impl Grammar<'_, '_> {
    /// A type.
    pub fn ty(&mut self) -> Result<()> {
        self.type_or("non-function type")
    }
    /// A type; the error is that `what` is missing.
    pub(super) fn type_or(&mut self, what: &str) -> Result<()> {
        self.nested(|grammar| grammar.type_here(what))
    }
    fn type_here(&mut self, what: &str) -> Result<()> {
        match self.cursor.next_byte() {
            b'(' => {
                self.list(b'(', b')', Self::ty)?;
                if !self.cursor.eat_str("->") {
                    return Err(self.cursor.expected("'->' in function type"));
                }
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
            "tuple" => self.tuple(),
            "complex" => self.complex(),
            "vector" => self.vector(start),
            "memref" => self.buffer(),
            name if is_scalar(name) => Ok(()),
            name => self.no_type(start, name, what),
        }
    }
    /// The error that `name`, at `start`, is not a type. A separate function, since types nest, and
    /// each level of nesting takes the stack frame of [`Self::plain_type`].
    #[cold]
    #[inline(never)]
    fn no_type(&mut self, start: usize, name: &str, what: &str) -> Result<()> {
        self.cursor.pos = start;
        if !is_integer(name) {
            return Err(self.cursor.expected(what));
        }
        let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
        let message = match digits.parse::<u32>() {
            Ok(_) => format!("integer bitwidth is limited to {MAX_BITS} bits"),
            Err(_) => "invalid integer width".to_owned(),
        };
        let hint = format!("integers have at most {MAX_BITS} bits");
        Err(syntax(self.cursor.here(), message).with_hint(hint).into())
    }
    /// The class of the type that starts at `start` and ends here.
    pub(super) fn kind_since(&self, start: usize) -> TypeKind {
        let text = self.cursor.since(start);
        let alias = if text.starts_with('!') { self.alias_text(text) } else { None };
        TypeKind::of(alias.unwrap_or(text))
    }
}

/// A name after `#` or `!`.
pub(super) fn alias_name<'a>(cursor: &mut Cursor<'a>) -> &'a str {
    let start = cursor.pos;
    let name = cursor.ssa_name();
    // `->` is not part of a name.
    if name.ends_with('-') && cursor.peek() == b'>' {
        cursor.pos -= 1;
    }
    cursor.since(start)
}

/// Steps over a type; does not check that aliases in it are defined.
pub(in crate::mlir) fn skip_type(cursor: &mut Cursor<'_>) -> Result<()> {
    cursor.skip_space();
    Grammar::new(cursor, None).ty()
}
