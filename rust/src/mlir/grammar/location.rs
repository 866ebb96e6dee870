//! Locations.

use super::position::Grammar;
use super::types::alias_name;
use crate::error::Result;

impl Grammar<'_, '_> {
    /// `(location)`, after the word `loc`.
    pub fn location(&mut self) -> Result<()> {
        self.cursor.expect(b'(')?;
        self.place()?;
        self.cursor.expect(b')')
    }
    /// What stands in the parentheses.
    fn place(&mut self) -> Result<()> {
        self.nested(Self::place_here)
    }
    fn place_here(&mut self) -> Result<()> {
        match self.cursor.next_byte() {
            b'"' => return self.named_place(),
            b'#' => return self.place_alias(),
            _ => {}
        }
        let start = self.cursor.pos;
        match self.cursor.name() {
            "unknown" => Ok(()),
            "callsite" => {
                self.cursor.expect(b'(')?;
                self.place()?;
                self.cursor.expect_keyword("at")?;
                self.place()?;
                self.cursor.expect(b')')
            }
            "fused" => {
                if self.cursor.eat(b'<') {
                    self.attribute()?;
                    self.cursor.expect(b'>')?;
                }
                self.list(b'[', b']', Self::place)
            }
            _ => {
                self.cursor.pos = start;
                Err(self.cursor.expected("a location"))
            }
        }
    }
    /// `"name"`, `"name"(place)`, `"file":line:column`, `"file":line:column to line:column`.
    fn named_place(&mut self) -> Result<()> {
        self.cursor.string()?;
        match self.cursor.next_byte() {
            b'(' => self.location(),
            b':' => {
                self.line_and_column()?;
                if self.cursor.eat_keyword("to") {
                    self.range_end()?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
    /// `:line:column`, or `:line`.
    fn line_and_column(&mut self) -> Result<()> {
        self.cursor.expect(b':')?;
        self.cursor.natural()?;
        if self.cursor.next_byte() == b':' {
            self.cursor.pos += 1;
            self.cursor.natural()?;
        }
        Ok(())
    }
    /// `line:column`, or `:column`.
    fn range_end(&mut self) -> Result<()> {
        if self.cursor.next_byte() != b':' {
            self.cursor.natural()?;
        }
        self.cursor.expect(b':')?;
        self.cursor.natural()
    }
    /// `#loc3`, which may be defined later.
    fn place_alias(&mut self) -> Result<()> {
        self.cursor.pos += 1;
        if alias_name(self.cursor).is_empty() {
            return Err(self.cursor.expected("the name of a location"));
        }
        if self.cursor.peek() == b'<' {
            return self.cursor.skip_balanced();
        }
        Ok(())
    }
}
