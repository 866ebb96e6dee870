//! Verification errors, located by the part of an attribute.
//!
//! Verification works on attributes from any source, so its errors have parts ([`Part`]) instead of
//! spans. The caller converts parts to spans if the attribute has a text.

use crate::error::{Code, Diagnostic, Span};

/// A part of a mesh, sharding or rule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// All of it.
    Whole,
    /// The `n`-th axis of a mesh, or axis ref of a sharding in the order of
    /// [`crate::sharding::TensorSharding::axis_refs`].
    Axis(usize),
    /// The device ids of a mesh.
    DeviceIds,
    /// The `n`-th device id of a mesh.
    DeviceId(usize),
    /// The `n`-th dim of a sharding.
    Dim(usize),
    /// The `n`-th factor of a rule, where its size is given.
    Factor(usize),
    /// The mapping of the `n`-th tensor of a rule, operands first.
    Tensor(usize),
    /// The mapping of a dim of such a tensor.
    TensorDim(usize, usize),
    /// An item of a rule's `n`-th list of special factors (reduction, need-replication,
    /// permutation, blocked).
    Special(usize, usize),
}

/// One mistake in an attribute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The mistake; its spans are unset.
    pub diagnostic: Diagnostic,
    /// The part of the attribute that is wrong.
    pub part: Part,
    /// Another part that the error refers to, with a label.
    pub related: Option<(Part, &'static str)>,
}

impl Problem {
    /// A mistake in `part`.
    pub fn new(code: Code, part: Part, message: impl Into<String>) -> Self {
        Self { diagnostic: Diagnostic::new(code, message), part, related: None }
    }
    /// Adds a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.diagnostic.hint = Some(hint.into());
        self
    }
    /// Adds a second part that the error refers to, with a label.
    #[must_use]
    pub fn with_related(mut self, part: Part, label: &'static str) -> Self {
        self.related = Some((part, label));
        self
    }
    /// The diagnostic, with the spans that `span_of` returns for parts.
    pub fn located(self, span_of: impl Fn(Part) -> Option<Span>) -> Diagnostic {
        let mut diagnostic = self.diagnostic;
        diagnostic.span = span_of(self.part).or_else(|| span_of(Part::Whole));
        diagnostic.related =
            self.related.and_then(|(part, label)| Some((span_of(part)?, label.to_owned())));
        diagnostic
    }
}

/// The diagnostics of `problems` without spans.
pub fn unlocated(problems: Vec<Problem>) -> Vec<Diagnostic> {
    problems.into_iter().map(|problem| problem.diagnostic).collect()
}
