//! What stands between ops: aliases, resource sections; and locations, which are stepped over.

use crate::error::{Code, Diagnostic, Result, Span};
use crate::mlir::cursor::{syntax, Cursor};
use crate::mlir::reader::parser::Parser;
use crate::mlir::reader::types::skip_type;

impl Parser<'_> {
    /// Reads `loc(...)` if it is next; the span of what is between the parentheses.
    pub(in crate::mlir) fn skip_location(&mut self) -> Result<Span> {
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
        self.program.has_locations = true;
        self.grammar().location()?;
        Ok(Span::new(open as u32 + 1, self.cursor.pos as u32 - 1))
    }
    /// Reads `#name = ...` or `!name = ...`.
    pub(in crate::mlir) fn parse_alias_definition(&mut self) -> Result<()> {
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
        let id = self.program.strings.intern(name);
        self.program.aliases.insert(id, span);
        self.program.alias_definitions.push(self.cursor.span_since(start));
        self.last_end = self.cursor.pos as u32;
        Ok(())
    }
    /// The body of type alias `name`, which is used at `span`.
    pub(in crate::mlir) fn alias_body(&mut self, name: &str, span: Span) -> Result<Span> {
        if let Some(&body) =
            self.program.strings.find(name).and_then(|id| self.program.aliases.get(&id))
        {
            return Ok(body);
        }
        if !self.has_all_aliases {
            self.has_all_aliases = true;
            self.find_type_aliases();
            return self.alias_body(name, span);
        }
        let message = format!("there is no type alias {name}");
        Err(Diagnostic::new(Code::UnknownSymbol, message).at(span).into())
    }
    /// Looks ahead for type aliases that are defined after their use.
    pub(in crate::mlir) fn find_type_aliases(&mut self) {
        let text = self.cursor.text();
        let mut offset = 0;
        for line in text.split_inclusive('\n') {
            let start = offset + line.len() - line.trim_start().len();
            offset += line.len();
            if text.as_bytes().get(start) != Some(&b'!') {
                continue;
            }
            let mut cursor = Cursor::new(text, start + 1);
            cursor.ssa_name();
            let name = cursor.since(start);
            if !cursor.eat(b'=') {
                continue;
            }
            cursor.skip_space();
            let body = cursor.pos;
            if skip_type(&mut cursor).is_ok() {
                let id = self.program.strings.intern(name);
                self.program.aliases.insert(id, cursor.span_since(body));
            }
        }
    }
    /// Reads `{-# ... #-}`.
    pub(in crate::mlir) fn skip_resources(&mut self) -> Result<()> {
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
        self.program.alias_definitions.push(self.cursor.span_since(start));
        self.last_end = self.cursor.pos as u32;
        Ok(())
    }
}
