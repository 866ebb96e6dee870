//! Skips the locations of ops and arguments.

use super::parser::Parser;
use crate::error::{Result, Span};

impl Parser<'_> {
    /// Reads the location of an op, `loc(...)`, if it is next; returns the span between the
    /// parentheses.
    pub(super) fn skip_location(&mut self) -> Result<Span> {
        self.location(false)
    }
    /// Reads the location of an argument, if it is next.
    pub(super) fn skip_argument_location(&mut self) -> Result<()> {
        self.location(true).map(|_| ())
    }
    fn location(&mut self, is_argument: bool) -> Result<Span> {
        self.cursor.skip_space();
        let bytes = self.cursor.text().as_bytes();
        if !matches!(bytes.get(self.cursor.pos..), Some([b'l', b'o', b'c', ..])) {
            return Ok(Span::EMPTY);
        }
        let start = self.cursor.pos;
        if !self.cursor.eat_keyword("loc") {
            self.cursor.pos = start;
            return Ok(Span::EMPTY);
        }
        self.program.note_locations();
        self.cursor.skip_space();
        let open = self.cursor.pos;
        if !self.location_alias(is_argument) {
            self.cursor.pos = open;
            self.grammar().location("location")?;
        }
        Ok(Span::new(open as u32 + 1, self.cursor.pos as u32 - 1))
    }
    /// Reads `(#alias)`; false if something else is here.
    fn location_alias(&mut self, is_argument: bool) -> bool {
        if !self.cursor.eat(b'(') || self.cursor.next_byte() != b'#' {
            return false;
        }
        let start = self.cursor.pos;
        self.cursor.pos += 1;
        let is_dialect = self.cursor.ssa_name().contains('.');
        let span = self.cursor.span_since(start);
        if span.len() < 2 || is_dialect || !self.cursor.eat(b')') {
            return false;
        }
        let name = self.text_at(span);
        self.location_aliases.note(name, is_argument, span);
        true
    }
}
