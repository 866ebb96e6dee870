//! Locations that are aliases. These may be defined later in the text, so that they are checked at
//! the end.

use crate::error::{Diagnostic, Span};
use crate::ir::Program;
use crate::mlir::grammar::problem_of_alias;
use rustc_hash::FxHashSet;

/// The locations of ops and arguments that are aliases.
#[derive(Default)]
pub(super) struct LocationAliases<'a> {
    /// The aliases that were used, and whether for an argument: MLIR resolves those later.
    seen: FxHashSet<(&'a str, bool)>,
    /// The span of the first use of each.
    uses: Vec<Span>,
}

impl<'a> LocationAliases<'a> {
    /// Records that `name`, at `span`, is the location of an op or an argument.
    pub fn note(&mut self, name: &'a str, is_argument: bool, span: Span) {
        if self.seen.insert((name, is_argument)) {
            self.uses.push(span);
        }
    }
    /// The errors in them, after all aliases of `program` are defined.
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
