//! Errors in attributes that the parser finds and the verifier reports.

use crate::error::{Code, Diagnostic, Span};
use crate::index::{BlockId, OpId};
use rustc_hash::FxHashSet;

/// The errors that the parser has found in the attributes of a program.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The errors.
    pub problems: Vec<Diagnostic>,
    /// Ops with malformed attributes: other errors in them may be consequences.
    pub malformed: FxHashSet<OpId>,
    /// Known ops with `properties` that are not a dictionary or that they do not have, and the
    /// spans of these.
    pub properties: Vec<(OpId, Span)>,
    /// Ops with their successor blocks in the order of the text; `None` if successors were not
    /// searched.
    pub successors: Option<Vec<(OpId, BlockId)>>,
    /// Whether something could not be parsed, so that there may be more errors.
    pub is_unreadable: bool,
}

impl Findings {
    /// Adds an error in `op`.
    pub fn add(&mut self, op: OpId, problem: Diagnostic) {
        self.is_unreadable |= matches!(problem.code, Code::Syntax | Code::InvalidMesh);
        self.problems.push(problem);
        self.malformed.insert(op);
    }
}
