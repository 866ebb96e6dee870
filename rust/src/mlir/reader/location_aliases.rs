//! Aliases that locations consist of: they may be defined further down, so they are kept until everything has been
//! read.

use crate::error::{Diagnostic, Span};
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

impl<'a> LocationAliases<'a> {
    /// Records that `name`, at `span`, is the location of an op or an argument.
    pub fn note(&mut self, name: &'a str, is_argument: bool, span: Span) {
        if self.seen.insert((name, is_argument)) {
            self.uses.push(span);
        }
    }
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
