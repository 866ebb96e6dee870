//! Whether a program makes sense: shardings fit their values, rules their ops, Shardy's ops their
//! own rules.
//!
//! The parser has checked what each attribute says by itself (see [`crate::attribute`]). Here it is
//! checked against the program around it. All mistakes are found, in program order, each with its
//! place in the text where there is one.
//!
//! Assumes that SSA names, symbols and types of calls were resolved. Linear in the program, times the
//! depth in which manual computations are nested.
//!
//! Source: Shardy's verifiers.

mod collective;
mod composite;
mod data_flow;
mod functions;
mod indirect;
mod made;
mod manual;
mod place;
mod propagation_edges;
mod rule;
mod stablehlo;
mod value;

use crate::error::{Code, Diagnostic, Span};
use crate::index::OpId;
use crate::ir::{Direction, Findings, OpKind, Payload, Program};
use crate::stablehlo::{definition_of, Checker};
use propagation_edges::Names;
use rustc_hash::FxHashSet;

/// Everything that is wrong with `program`.
pub fn verify(program: &Program) -> Vec<Diagnostic> {
    verify_read(program, Findings::default())
}

/// Everything that is wrong with `program`, of which `findings` was found when it was read; in the
/// order in which it stands in the text.
pub fn verify_read(program: &Program, findings: Findings) -> Vec<Diagnostic> {
    verify_with(program, findings, Some(Checker::new(program)))
}

/// Everything that is wrong with `program`, of which `findings` was found when it was read; ops of
/// `StableHLO` and CHLO are held against their definitions by `checker`, or not at all.
fn verify_with(
    program: &Program,
    findings: Findings,
    checker: Option<Checker<'_>>,
) -> Vec<Diagnostic> {
    let Findings { problems, malformed, is_unreadable } = findings;
    if is_unreadable {
        return problems;
    }
    let is_sorted = problems.is_empty();
    let names = Names::new(program);
    let has_manual = program.num_made(OpKind::ManualComputation) > 0;
    let has_marks = has_manual || !program.op_rules().is_empty() || !names.is_none();
    let mut verifier = Verifier {
        program,
        names,
        has_manual,
        has_marks,
        malformed,
        checker,
        diagnostics: problems,
    };
    let module = program.module_op();
    let mut next = Some(module);
    while let Some(op) = next {
        next = if verifier.is_settled(op) || !verifier.op(op) {
            program.next_in_pre_order(op, module)
        } else {
            program.next_outside(op, module)
        };
    }
    if !is_sorted {
        verifier.diagnostics.sort_by_key(|problem| problem.span.map(|span| span.start));
    }
    verifier.diagnostics
}

/// Everything that is wrong with `program`, which passes have made of one that made sense.
pub fn verify_made(program: &Program) -> Vec<Diagnostic> {
    let malformed = made::malformed_shardings(program);
    if !malformed.is_empty() || !made::is_at_risk(program) {
        return malformed;
    }
    let mut found = made::mistyped_calls(program);
    found.extend(verify_with(program, Findings::default(), None));
    found
}

/// Checks an op by rules that only ops of its kind have.
type OwnCheck<'a> = fn(&mut Verifier<'a>, OpId);

/// What checks ops of `kind` beside what is checked of every op.
fn own_check<'a>(kind: OpKind) -> Option<OwnCheck<'a>> {
    match kind {
        OpKind::Func => Some(Verifier::body_types),
        OpKind::ManualComputation => Some(Verifier::manual_computation),
        OpKind::NamedComputation => Some(Verifier::named_computation),
        OpKind::DataFlowEdge => Some(Verifier::data_flow_edge),
        OpKind::FuncDataFlowEdge => Some(Verifier::func_data_flow_edge),
        OpKind::PropagationBarrier => Some(Verifier::propagation_barrier),
        OpKind::Composite => Some(Verifier::composite),
        kind if kind.is_collective() => Some(Verifier::collective),
        _ => None,
    }
}

/// What ops called `name` are checked against, beside their shardings and rules: the verifier's column in
/// [`crate::op_table`].
pub fn checks_of(name: &str) -> Option<&'static str> {
    if definition_of(name).is_some() {
        return Some("definition");
    }
    own_check(OpKind::from_name(name)).map(|_| "own rules")
}

/// A verification under way.
struct Verifier<'a> {
    program: &'a Program,
    names: Names,
    /// Whether there are manual computations, inside which axes are bound.
    has_manual: bool,
    /// Whether there may be anything on ops, whatever their names are, that makes no sense where they are.
    has_marks: bool,
    /// Ops whose shardings, rules or axes make no sense.
    malformed: FxHashSet<OpId>,
    checker: Option<Checker<'a>>,
    diagnostics: Vec<Diagnostic>,
}

impl Verifier<'_> {
    /// Whether `op` has no regions, and nothing is to be checked of it any more: so it is with nearly all
    /// ops.
    #[inline]
    fn is_settled(&self, op: OpId) -> bool {
        !self.has_marks
            && self.program.num_regions(op) == 0
            && self.checker.as_ref().is_some_and(|checker| checker.is_known(op))
            && own_check(self.program.kind(op)).is_none()
    }
    /// Checks `op`; true if that checked what is inside it, too.
    #[inline(never)]
    fn op(&mut self, op: OpId) -> bool {
        let is_known = self.checker.as_ref().is_some_and(|checker| checker.is_known(op));
        if !is_known {
            self.structure(op);
            self.definition(op);
        }
        if self.has_marks {
            self.marks(op);
        }
        if let Some(check) = own_check(self.program.kind(op)) {
            check(self, op);
        }
        is_known
    }
    /// Checks shardings, rules and recorded edges of `op` against what is around it.
    fn marks(&mut self, op: OpId) {
        if self.has_manual {
            self.result_axes(op);
        }
        if !self.program.op_rules().is_empty() {
            self.rule(op);
        }
        self.propagation_edges(op);
    }
    /// A mistake in `op` in the words of the reference, not yet at a place.
    fn problem(&self, op: OpId, code: Code, message: &str) -> Diagnostic {
        Diagnostic::new(code, format!("'{}' op {message}", self.program.op_name(op)))
    }
    /// Reports a mistake in `op` at its place, or else at the op's name.
    fn report(&mut self, op: OpId, problem: Diagnostic) {
        self.diagnostics.push(self.program.reported_at(op, problem));
    }
    /// Reports a mistake in `op`, shown at its sharding, or else at its name.
    fn complain(&mut self, op: OpId, code: Code, message: &str) {
        let span = self.sharding_span(op);
        self.complain_at(span, op, code, message);
    }
    /// Reports a mistake in `op`, shown at its sharding, or else at its name, and what to do about it.
    fn complain_with_hint(&mut self, op: OpId, code: Code, message: &str, hint: &str) {
        let mut problem = self.problem(op, code, message).with_hint(hint);
        problem.span = self.sharding_span(op);
        self.report(op, problem);
    }
    /// Reports a mistake in `op`, shown at `span`.
    fn complain_at(&mut self, span: Option<Span>, op: OpId, code: Code, message: &str) {
        let mut problem = self.problem(op, code, message);
        problem.span = span;
        self.report(op, problem);
    }
    fn propagation_barrier(&mut self, op: OpId) {
        if self.program.payload(op) == Some(&Payload::PropagationBarrier(Direction::Both)) {
            let message = "cannot specify `BOTH` as the direction. Not blocking propagation \
                           direction makes the op redundant.";
            let hint = "allow FORWARD, BACKWARD or NONE, or drop the op";
            self.complain_with_hint(op, Code::InvalidOp, message, hint);
        }
    }
}

#[cfg(test)]
mod tests;
