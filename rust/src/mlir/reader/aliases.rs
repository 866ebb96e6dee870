//! What stands between ops: aliases, resource sections; and locations, which are stepped over.

use super::parser::Parser;
use crate::error::{Result, Span};
use crate::mlir::cursor::syntax;
use crate::mlir::grammar::skip_type;

impl Parser<'_> {
    /// Reads `loc(...)` if it is next; the span of what is between the parentheses.
    pub(super) fn skip_location(&mut self) -> Result<Span> {
        self.cursor.skip_space();
        let bytes = self.cursor.text().as_bytes();
        if !bytes.get(self.cursor.pos..).is_some_and(|rest| rest.starts_with(b"loc")) {
            return Ok(Span::EMPTY);
        }
        let start = self.cursor.pos;
        if !self.cursor.eat_keyword("loc") || self.cursor.next_byte() != b'(' {
            self.cursor.pos = start;
            return Ok(Span::EMPTY);
        }
        let open = self.cursor.pos;
        self.program.note_locations();
        self.grammar().location()?;
        Ok(Span::new(open as u32 + 1, self.cursor.pos as u32 - 1))
    }
    /// Reads `#name = ...` or `!name = ...`.
    pub(super) fn parse_alias_definition(&mut self) -> Result<()> {
        let start = self.cursor.pos;
        self.cursor.pos += 1;
        let name = self.cursor.ssa_name();
        if name.is_empty() {
            return Err(self.cursor.expected("the name of an alias"));
        }
        let name = self.cursor.since(start);
        self.cursor.expect(b'=')?;
        self.cursor.skip_space();
        let body = self.cursor.pos;
        if name.starts_with('!') {
            skip_type(&mut self.cursor)?;
        } else {
            self.grammar().attribute()?;
        }
        let span = self.cursor.span_since(body);
        let id = self.program.intern(name);
        self.program.define_alias(id, span);
        self.program.note_definition(self.cursor.span_since(start));
        self.last_end = self.cursor.pos as u32;
        Ok(())
    }
    /// Reads `{-# ... #-}`.
    pub(super) fn skip_resources(&mut self) -> Result<()> {
        let start = self.cursor.pos;
        self.cursor.pos += 3;
        loop {
            match self.cursor.next_byte() {
                b'"' => {
                    self.cursor.string()?;
                }
                b'#' if self.cursor.eat_str("#-}") => break,
                0 if self.cursor.at_end() => {
                    let open = Span::new(start as u32, start as u32 + 3);
                    return Err(syntax(open, "expected '#-}' after this").into());
                }
                _ => self.cursor.pos += 1,
            }
        }
        self.program.note_definition(self.cursor.span_since(start));
        self.last_end = self.cursor.pos as u32;
        Ok(())
    }
}
