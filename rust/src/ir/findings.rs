//! What a program says that makes no sense, found where it was read.

use crate::error::{Code, Diagnostic};
use crate::index::OpId;
use rustc_hash::FxHashSet;

/// What is wrong with what a program says.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The mistakes.
    pub problems: Vec<Diagnostic>,
    /// Ops with attributes that are no good: other mistakes in them may be consequences.
    pub malformed: FxHashSet<OpId>,
    /// Whether something could not be read, so that it is not known what else there is.
    pub is_unreadable: bool,
}

impl Findings {
    /// Adds a mistake in `op`.
    pub fn add(&mut self, op: OpId, problem: Diagnostic) {
        self.is_unreadable |= matches!(problem.code, Code::Syntax | Code::InvalidMesh);
        self.problems.push(problem);
        self.malformed.insert(op);
    }
}
