//! The parser of the grammar: its position in the text, and the program's aliases.

use crate::error::{Code, Diagnostic, Result, Span};
use crate::ir::Program;
use crate::mlir::cursor::Cursor;
use crate::shardy::Version;

/// The deepest nesting of attributes, types and locations.
const MAX_DEPTH: u32 = 1000;

/// A position in the text, and the state that the grammar depends on.
pub(in crate::mlir) struct Grammar<'c, 'a> {
    pub cursor: &'c mut Cursor<'a>,
    /// The program with the aliases; if `None`, every alias is accepted.
    program: Option<&'c Program>,
    pub(super) depth: u32,
    /// The end of the outermost attribute, and the start of the type that follows it.
    pub typed: Option<(usize, usize)>,
    /// Whether Shardy's attributes are checked here, because they are not parsed later.
    pub(super) reads_shardy: bool,
}

impl<'c, 'a> Grammar<'c, 'a> {
    pub fn new(cursor: &'c mut Cursor<'a>, program: Option<&'c Program>) -> Self {
        Self { cursor, program, depth: 0, typed: None, reads_shardy: false }
    }
    /// The version of Shardy by which the text is read.
    pub(super) fn shardy(&self) -> Version {
        self.program.map_or(Version::NEWEST, Program::shardy)
    }
    /// Checks Shardy's attributes here, because they are not parsed later.
    pub fn reading_shardy(self) -> Self {
        Self { reads_shardy: true, ..self }
    }
    /// Whether there is an attribute or type alias called `name`, `#` or `!` included.
    pub(super) fn is_alias(&self, name: &str) -> bool {
        self.has_no_aliases() || self.alias_text(name).is_some()
    }
    /// Whether aliases are accepted without a look-up.
    pub(super) fn has_no_aliases(&self) -> bool {
        self.program.is_none()
    }
    /// The definition of the alias called `name`, `#` or `!` included.
    pub(super) fn alias_text(&self, name: &str) -> Option<&'c str> {
        let program = self.program?;
        self.alias_span(name).map(|span| program.text().get(span))
    }
    /// The span of the definition of the alias called `name`.
    pub(super) fn alias_span(&self, name: &str) -> Option<Span> {
        let program = self.program?;
        program.strings().find(name).and_then(|id| program.alias(id))
    }
    /// Runs `step` one nesting level deeper.
    pub(super) fn nested<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            let message = format!("attributes and types nest deeper than {MAX_DEPTH} levels");
            let span = self.cursor.here();
            return Err(Diagnostic::new(Code::NestedTooDeeply, message).at(span).into());
        }
        self.depth += 1;
        let done = step(self)?;
        self.depth -= 1;
        Ok(done)
    }
    /// `item, item, ...` in brackets, or empty brackets.
    pub fn list(
        &mut self,
        open: u8,
        close: u8,
        mut item: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.cursor.expect(open)?;
        if self.cursor.eat(close) {
            return Ok(());
        }
        loop {
            item(self)?;
            if !self.cursor.eat(b',') {
                return self.cursor.expect(close);
            }
        }
    }
}
