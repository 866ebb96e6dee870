//! Locations of ops and arguments. They are stepped over; of those that are aliases, which may be defined further
//! down, the names are kept until everything has been read.

use super::parser::Parser;
use crate::error::{Diagnostic, Result, Span};
use crate::ir::Program;
use crate::mlir::grammar::problem_of_alias;
use rustc_hash::FxHashSet;

/// The aliases that locations consist of.
#[derive(Default)]
pub(super) struct LocationAliases<'a> {
    /// Those that were seen, and whether as the location of an argument: MLIR resolves these later.
    seen: FxHashSet<(&'a str, bool)>,
    /// Where each of them stands first.
    uses: Vec<Span>,
}

impl LocationAliases<'_> {
    /// What is wrong with them, now that all aliases of `program` are defined.
    pub fn problems(&self, program: &Program) -> Vec<Diagnostic> {
        let problem = |&span: &Span| {
            let name = program.strings().find(program.text().get(span));
            let body = name.and_then(|id| program.alias(id));
            problem_of_alias(body.map(|body| program.text().get(body)))
                .map(|problem| problem.at(span))
        };
        self.uses.iter().filter_map(problem).collect()
    }
}

impl Parser<'_> {
    /// Reads the location of an op, `loc(...)`, if it is next; the span of what is between the parentheses.
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
        if !bytes.get(self.cursor.pos..).is_some_and(|rest| rest.starts_with(b"loc")) {
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
        if self.location_aliases.seen.insert((self.text_at(span), is_argument)) {
            self.location_aliases.uses.push(span);
        }
        true
    }
}
