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
    /// Known ops with properties of which they have none, or that are no dictionary, with the places of these.
    pub properties: Vec<(OpId, Span)>,
    /// Ops with the blocks that they name as their successors, in the order of the text; `None` if nobody has looked.
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
