//! Parses definitions of aliases, and resource sections.

use super::parser::Parser;
use crate::error::Result;
use crate::mlir::cursor::syntax;

impl Parser<'_> {
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
        if !self.cursor.eat(b'=') {
            let kind = kind_of(name);
            return Err(self.cursor.expected(&format!("'=' in {kind} alias definition")));
        }
        self.cursor.skip_space();
        let body = self.cursor.pos;
        if name.starts_with('!') {
            self.grammar().ty()?;
        } else {
            self.grammar().reading_shardy().attribute()?;
        }
        let span = self.cursor.span_since(body);
        // An alias of an alias gets that alias's definition.
        let known = self.program.strings().find(self.text_at(span));
        let span = known.and_then(|id| self.program.alias(id)).unwrap_or(span);
        let id = self.program.intern(name);
        self.program.define_alias(id, span);
        self.program.note_definition(self.cursor.span_since(start));
        self.last_end = self.cursor.pos as u32;
        Ok(())
    }
    /// Checks that `name`, `#` or `!` included, is a valid alias name and not defined yet.
    fn check_new_alias(&self, name: &str) -> Result<()> {
        let (kind, bare) = (kind_of(name), &name[1..]);
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
        self.grammar().resources()?;
        self.program.note_definition(self.cursor.span_since(start));
        self.last_end = self.cursor.pos as u32;
        Ok(())
    }
}

/// MLIR's word for the kind of the alias `name`, which has its sigil.
fn kind_of(name: &str) -> &'static str {
    if name.starts_with('!') {
        "type"
    } else {
        "attribute"
    }
}
