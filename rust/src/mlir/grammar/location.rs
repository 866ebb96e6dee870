//! The grammar of locations, which may be nested to any depth.

use super::position::Grammar;
use crate::error::{Code, Diagnostic, Result};
use crate::mlir::cursor::syntax;

/// An incomplete location, by the part that comes next.
enum Open {
    /// The callee of a call site.
    Callee,
    /// The caller of a call site.
    Caller,
    /// One of the locations in a fused location.
    Fused,
    /// The location that a name is attached to, as in `loc("name"(child))`.
    Child,
}

impl Grammar<'_, '_> {
    /// `(location)`, after the word `loc`; `what` is what MLIR calls it there.
    pub fn location(&mut self, what: &str) -> Result<()> {
        self.token(b'(', &format!("in {what}"))?;
        self.place()?;
        self.token(b')', &format!("in {what}"))
    }
    /// Consumes `byte`, or fails with a message that it is missing `there`.
    fn token(&mut self, byte: u8, there: &str) -> Result<()> {
        if self.cursor.eat(byte) {
            return Ok(());
        }
        Err(self.cursor.expected(&format!("'{}' {there}", byte as char)))
    }
    /// The contents of the parentheses.
    fn place(&mut self) -> Result<()> {
        let mut open = Vec::new();
        loop {
            if let Some(inside) = self.start_of_place()? {
                open.push(inside);
            } else if !self.ends_of_places(&mut open)? {
                return Ok(());
            }
        }
    }
    /// A location up to the first nested location, which comes next; `None` if there is none.
    fn start_of_place(&mut self) -> Result<Option<Open>> {
        match self.cursor.next_byte() {
            b'"' => return self.named_place(),
            b'#' => return self.place_alias().map(|()| None),
            _ => {}
        }
        let start = self.cursor.pos;
        match self.cursor.name() {
            "unknown" => Ok(None),
            "callsite" => self.token(b'(', "in callsite location").map(|()| Some(Open::Callee)),
            "fused" => {
                if self.cursor.eat(b'<') {
                    self.attribute()?;
                    self.token(b'>', "after fused location metadata")?;
                }
                self.token(b'[', "in fused location")?;
                Ok(if self.cursor.eat(b']') { None } else { Some(Open::Fused) })
            }
            _ => {
                self.cursor.pos = start;
                Err(self.cursor.expected("location instance"))
            }
        }
    }
    /// The text after a complete location inside those that are `open`; returns whether another
    /// location comes next.
    fn ends_of_places(&mut self, open: &mut Vec<Open>) -> Result<bool> {
        while let Some(last) = open.pop() {
            match last {
                Open::Callee => {
                    if !self.cursor.eat_keyword("at") {
                        return Err(self.cursor.expected("'at' in callsite location"));
                    }
                    open.push(Open::Caller);
                    return Ok(true);
                }
                Open::Caller => self.token(b')', "in callsite location")?,
                Open::Fused if self.cursor.eat(b',') => {
                    open.push(Open::Fused);
                    return Ok(true);
                }
                Open::Fused => self.token(b']', "in fused location")?,
                Open::Child => self.token(b')', "after child location of NameLoc")?,
            }
        }
        Ok(false)
    }
    /// `"name"`, `"name"(` with a location after it, `"file":line:column`, `"file":line:column to line:column`.
    fn named_place(&mut self) -> Result<Option<Open>> {
        self.cursor.string()?;
        if self.cursor.eat(b':') {
            return self.line_and_column().map(|()| None);
        }
        Ok(self.cursor.eat(b'(').then_some(Open::Child))
    }
    /// `line`, `line:column`, or a range of them.
    fn line_and_column(&mut self) -> Result<()> {
        self.ordinal("line")?;
        if !self.cursor.eat(b':') {
            return Ok(());
        }
        self.ordinal("column")?;
        if !self.cursor.eat_keyword("to") {
            return Ok(());
        }
        if self.cursor.next_byte().is_ascii_digit() {
            self.ordinal("line")?;
        }
        if !self.cursor.eat(b':') {
            let what = "either integer or `:` post `to` in FileLineColRange";
            return Err(self.cursor.expected(what));
        }
        self.ordinal("column")
    }
    /// The number of a line or column: an integer of 32 bits.
    fn ordinal(&mut self, what: &str) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        if self.cursor.unsigned().is_some_and(|number| u32::try_from(number).is_ok()) {
            return Ok(());
        }
        self.cursor.pos = start;
        Err(self.cursor.expected(&format!("integer {what} number in FileLineColRange")))
    }
    /// `#name` of a location that was defined before.
    fn place_alias(&mut self) -> Result<()> {
        let start = self.cursor.pos;
        self.dialect_attribute()?;
        let text = self.cursor.since(start);
        let found = self.alias_text(text);
        if self.has_no_aliases() || found.is_some_and(is_location) {
            return Ok(());
        }
        let message = format!("expected location attribute, but got {}", found.unwrap_or(text));
        Err(syntax(self.cursor.span_since(start), message).into())
    }
}

/// Whether `text`, of an attribute, is that of a location.
fn is_location(text: &str) -> bool {
    text.strip_prefix("loc").is_some_and(|rest| rest.trim_start().starts_with('('))
}

/// The error for `loc(#alias)`, where `text` is the alias's definition: the alias may be undefined,
/// or may not be a location.
pub(in crate::mlir) fn problem_of_alias(text: Option<&str>) -> Option<Diagnostic> {
    match text {
        Some(text) if is_location(text) => None,
        Some(text) => {
            let message = format!("expected location, but found '{text}'");
            Some(Diagnostic::new(Code::Syntax, message))
        }
        None => {
            let message = "operation location alias was never defined";
            let problem = Diagnostic::new(Code::UnknownSymbol, message);
            Some(problem.with_hint("define it at the top level: #name = loc(...)"))
        }
    }
}
