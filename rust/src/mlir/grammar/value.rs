//! The grammar of attributes, MLIR's `attribute-value`.

use super::number::{Number, Place};
use super::position::Grammar;
use crate::error::{Result, Span};
use crate::mlir::cursor::{syntax, Cursor};
use rustc_hash::FxHashSet;

impl Grammar<'_, '_> {
    /// An attribute, with the type that may follow it.
    pub fn attribute(&mut self) -> Result<()> {
        self.nested(Self::attribute_here)
    }
    fn attribute_here(&mut self) -> Result<()> {
        match self.cursor.next_byte() {
            b'[' => self.list(b'[', b']', Self::attribute),
            b'{' => self.dictionary(),
            b'"' => {
                self.cursor.string()?;
                self.optional_type()
            }
            b'@' => self.symbol_path(),
            b'#' => self.dialect_attribute(),
            b'0'..=b'9' | b'-' => self.number(),
            b'!' | b'(' => self.ty(),
            _ => self.named_attribute(),
        }
    }
    /// `{name = value, name}`, with distinct names.
    fn dictionary(&mut self) -> Result<()> {
        let mut names = FxHashSet::default();
        self.list(b'{', b'}', |grammar| {
            grammar.cursor.skip_space();
            let start = grammar.cursor.pos;
            let name = if grammar.cursor.peek() == b'"' {
                grammar.cursor.string()?
            } else {
                grammar.cursor.name()
            };
            if name.is_empty() {
                return Err(grammar.cursor.expected("attribute name"));
            }
            if !names.insert(name) {
                let message = format!("duplicate key '{name}' in dictionary attribute");
                return Err(syntax(grammar.cursor.span_since(start), message).into());
            }
            if grammar.cursor.eat(b'=') {
                return grammar.attribute();
            }
            Ok(())
        })
    }
    /// `@outer::@inner`.
    fn symbol_path(&mut self) -> Result<()> {
        loop {
            self.cursor.symbol()?;
            let end = self.cursor.pos;
            if !self.cursor.eat_str("::") {
                self.cursor.pos = end;
                return Ok(());
            }
        }
    }
    /// The type of the attribute that ends at `end`, after the colon.
    pub(super) fn type_of(&mut self, end: usize) -> Result<Span> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        if self.depth == 1 {
            self.typed = Some((end, start));
        }
        self.ty()?;
        Ok(self.cursor.span_since(start))
    }
    /// `: type`, if it comes next.
    pub(super) fn optional_type(&mut self) -> Result<()> {
        let end = self.cursor.pos;
        if self.cursor.eat(b':') {
            return self.type_of(end).map(|_| ());
        }
        self.cursor.pos = end;
        Ok(())
    }
    fn number(&mut self) -> Result<()> {
        let start = self.cursor.pos;
        let Some(number) = Number::read(self.cursor) else {
            let message = "expected constant integer or floating point value";
            return Err(syntax(self.cursor.here(), message).into());
        };
        let end = self.cursor.pos;
        let mut ty = if number.is_float() { "f64" } else { "i64" };
        if self.cursor.eat(b':') {
            let span = self.type_of(end)?;
            ty = self.cursor.since(span.start as usize);
            if ty.starts_with('!') {
                ty = self.alias_text(ty).unwrap_or(ty);
            }
        } else {
            self.cursor.pos = end;
        }
        // Types of other dialects may be types of numbers, but not those of `StableHLO`.
        let is_open = ty.starts_with('!') && !ty.starts_with("!stablehlo");
        match number.problem(ty, Place::Attribute).filter(|_| !is_open) {
            Some(problem) => Err(syntax(self.cursor.span_since(start), problem).into()),
            None => Ok(()),
        }
    }
    /// An attribute that starts with a word.
    fn named_attribute(&mut self) -> Result<()> {
        let start = self.cursor.pos;
        match self.cursor.name() {
            "true" | "false" | "unit" => Ok(()),
            "dense" => self.dense(),
            "array" => self.dense_array(),
            "sparse" => self.sparse(),
            "dense_resource" => self.resource(),
            "loc" => self.location("inline location"),
            "distinct" => self.distinct(),
            "strided" => self.strided(),
            "affine_map" | "affine_set" if self.cursor.next_byte() == b'<' => {
                self.cursor.skip_balanced()
            }
            _ => {
                self.cursor.pos = start;
                self.type_or("attribute value")
            }
        }
    }
    /// `<[1, ?], offset: ?>`.
    fn strided(&mut self) -> Result<()> {
        self.cursor.expect(b'<')?;
        self.list(b'[', b']', Self::size)?;
        if self.cursor.eat(b',') {
            if !self.cursor.eat_keyword("offset") {
                return Err(self.cursor.expected("'offset' after comma"));
            }
            if !self.cursor.eat(b':') {
                return Err(self.cursor.expected("':' after 'offset'"));
            }
            self.size()?;
        }
        self.cursor.expect(b'>')
    }
    /// `[number]<attribute>`.
    fn distinct(&mut self) -> Result<()> {
        self.cursor.expect(b'[')?;
        self.cursor.skip_space();
        if self.cursor.unsigned().is_none() {
            return Err(self.cursor.expected("distinct ID"));
        }
        self.cursor.expect(b']')?;
        self.cursor.expect(b'<')?;
        if self.cursor.eat(b'>') {
            return Ok(());
        }
        self.attribute()?;
        self.cursor.expect(b'>')
    }
}

/// Steps over an attribute; does not check that aliases in it are defined.
pub(in crate::mlir) fn skip_attribute(cursor: &mut Cursor<'_>) -> Result<()> {
    cursor.skip_space();
    Grammar::new(cursor, None).attribute()
}
