//! Parses names of operands and results.

use super::parser::Parser;
use super::parts::PendingResult;
use crate::error::Result;
use crate::mlir::cursor::syntax;
use crate::mlir::names::NameUse;

impl<'a> Parser<'a> {
    /// Reads `%a, %b:2 =`.
    pub(super) fn parse_result_names(&mut self) -> Result<()> {
        loop {
            self.cursor.skip_space();
            let offset = self.cursor.pos as u32;
            let name = self.parse_ssa_name()?;
            let mut count = 1;
            if self.cursor.eat(b':') {
                self.cursor.skip_space();
                let at = self.cursor.pos;
                let number = self.cursor.digits().filter(|&n| (1..1 << 28).contains(&n));
                let Some(number) = number else {
                    let span = self.cursor.here_from(at);
                    return Err(syntax(span, "expected integer number of results").into());
                };
                count = number as u32;
            }
            self.parts.results.push(PendingResult { name, count, offset });
            if !self.cursor.eat(b',') {
                break;
            }
        }
        self.cursor.expect_for(b'=', "after SSA name")?;
        self.cursor.skip_space();
        Ok(())
    }
    /// Reads `%name` and returns `name`.
    pub(super) fn parse_ssa_name(&mut self) -> Result<&'a str> {
        self.cursor.skip_space();
        if self.cursor.peek() != b'%' {
            return Err(self.cursor.expected("SSA operand"));
        }
        self.cursor.pos += 1;
        let name = self.cursor.ssa_name();
        if name.is_empty() {
            return Err(syntax(self.cursor.here(), "invalid SSA name").into());
        }
        Ok(name)
    }
    /// Reads `%name` or `%name#2` onto the stack of operands.
    #[inline]
    pub(super) fn parse_operand(&mut self) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let name = self.parse_ssa_name()?;
        let mut number = 0;
        let end = self.cursor.pos;
        // `#2` is a token of its own, possibly after white space or a comment.
        let is_apart = matches!(self.cursor.peek(), b' ' | b'\n' | b'\t' | b'\r' | b'/');
        if is_apart && self.cursor.next_byte() != b'#' {
            self.cursor.pos = end;
        }
        if self.cursor.peek() == b'#' {
            number = self.parse_result_number()?;
        }
        let span = self.cursor.span_since(start);
        self.parts.operands.push(NameUse { name, number, span });
        Ok(())
    }
    /// Reads `#2`.
    fn parse_result_number(&mut self) -> Result<u32> {
        let start = self.cursor.pos;
        self.cursor.pos += 1;
        if let Some(number) = self.cursor.digits().and_then(|n| u32::try_from(n).ok()) {
            return Ok(number);
        }
        self.cursor.pos = start + 1;
        let next = self.cursor.peek();
        let is_name = next.is_ascii_alphanumeric() || b"$._-".contains(&next);
        self.cursor.ssa_name();
        let says =
            if is_name { "invalid SSA value result number" } else { "invalid attribute name" };
        Err(syntax(self.cursor.span_since(start), says).into())
    }
    /// Reads operands separated by commas, up to `)`; the opening bracket was read.
    pub(super) fn parse_operands(&mut self) -> Result<()> {
        if self.cursor.next_byte() == b'%' {
            self.parse_operand()?;
            while self.cursor.eat(b',') {
                self.parse_operand()?;
            }
        }
        self.cursor.expect_for(b')', "to end operand list")
    }
}
