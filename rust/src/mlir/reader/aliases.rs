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
        self.check_new_alias(name)?;
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
    /// Checks that `name`, `#` or `!` included, may be that of an alias, and is not yet.
    fn check_new_alias(&self, name: &str) -> Result<()> {
        let (kind, bare) = (if name.starts_with('!') { "type" } else { "attribute" }, &name[1..]);
        let is_known = |id| self.program.alias(id).is_some();
        let message = if bare.contains('.') {
            format!("{kind} names with a '.' are reserved for dialect-defined names")
        } else if self.program.strings().find(name).is_some_and(is_known) {
            format!("redefinition of {kind} alias id '{bare}'")
        } else {
            return Ok(());
        };
        let start = self.cursor.pos - name.len();
        Err(syntax(self.cursor.span_since(start), message).into())
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
