//! What attributes, types and locations look like: steps over them, and refuses what MLIR refuses.
//!
//! Most of a program's attributes are never read. They stay text, but text that is an attribute:
//! whatever is accepted here is accepted by MLIR's parser. What stands inside attributes of dialects
//! that the engine does not know is bracketed text, as it is to MLIR for dialects it does not know.
//!
//! Source: MLIR's language reference, and `StableHLO`'s attribute definitions.

mod dialect;
mod elements;
mod location;
mod number;
mod types;
mod value;

pub(super) use dialect::cases;
pub(super) use types::split_tensor;

use super::cursor::Cursor;
use crate::error::{Code, Diagnostic, Result, Span};
use crate::ir::Program;

/// How deep attributes, types and locations may nest.
const MAX_DEPTH: u32 = 1000;

/// A position in the text, and what is needed to know what is well formed there.
pub(super) struct Grammar<'c, 'a> {
    pub cursor: &'c mut Cursor<'a>,
    /// Where aliases are looked up; without it any alias will do.
    program: Option<&'c Program>,
    depth: u32,
    /// Where the outermost attribute ends, and where the type that follows it starts.
    pub typed: Option<(usize, usize)>,
}

impl<'c, 'a> Grammar<'c, 'a> {
    pub fn new(cursor: &'c mut Cursor<'a>, program: Option<&'c Program>) -> Self {
        Self { cursor, program, depth: 0, typed: None }
    }
    /// Whether there is an attribute or type alias called `name`, `#` or `!` included.
    fn is_alias(&self, name: &str) -> bool {
        let find =
            |program: &Program| Some(program.aliases.contains_key(&program.strings.find(name)?));
        self.program.is_none_or(|program| find(program).unwrap_or(false))
    }
    /// Does `step` one level deeper.
    fn nested(&mut self, step: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if self.depth >= MAX_DEPTH {
            let message = format!("attributes and types nest deeper than {MAX_DEPTH} levels");
            let span = self.cursor.here();
            return Err(Diagnostic::new(Code::NestedTooDeeply, message).at(span).into());
        }
        self.depth += 1;
        step(self)?;
        self.depth -= 1;
        Ok(())
    }
    /// The type of the attribute that ends at `end`, after the colon.
    fn type_of(&mut self, end: usize) -> Result<Span> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        if self.depth == 1 {
            self.typed = Some((end, start));
        }
        self.ty()?;
        Ok(self.cursor.span_since(start))
    }
    /// `item, item, ...` in brackets, or nothing in them.
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
