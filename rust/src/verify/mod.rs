//! The verifier: checks shardings against their values, rules against their ops, and Shardy's ops
//! against their definitions.
//!
//! The parser has checked each attribute by itself (see [`crate::attribute`]). The verifier checks
//! it against the program around it. It returns all errors in program order, each with its span if
//! it is in the text.
//!
//! Assumes that SSA names, symbols and types of calls were resolved. Takes time linear in the
//! program, times the nesting depth of manual computations.
//!
//! Source: Shardy's verifiers.

mod collective;
mod composite;
mod data_flow;
mod dominance;
mod fragments;
mod functions;
mod indirect;
mod manual;
mod module;
mod mpmd;
mod pass_output;
mod pipelines;
mod place;
mod propagation_edges;
mod properties;
mod rule;
mod sdy_types;
mod stablehlo;
mod successors;
mod switch;
mod transition;
mod unreduced;
mod value;
mod version_support;

use crate::error::{Code, Diagnostic, Span};
use crate::index::{Id, OpId, RegionId};
use crate::ir::{Direction, Findings, OpKind, Payload, Program};
use crate::shardy::Version;
use crate::stablehlo::{definition_of, Checker};
use dominance::Successors;
pub use pass_output::is_at_risk;
use propagation_edges::Names;
use rustc_hash::FxHashSet;
pub use transition::Transition;
pub use version_support::{other_reduction, too_new_for};

/// All errors in `program`.
pub fn verify(program: &Program) -> Vec<Diagnostic> {
    verify_with(program, Findings::default(), Some(Checker::new(program)))
}

/// All errors in `program`, which was parsed, including those that the parser has found
/// (`findings`), in the order of the text.
pub fn verify_read(program: &Program, findings: Findings) -> Vec<Diagnostic> {
    if findings.is_unreadable {
        return findings.problems;
    }
    verify_with(program, findings, Some(Checker::of_parsed(program)))
}

/// All errors in `program`, including `findings` of the parser. `checker` checks ops of `StableHLO`
/// and CHLO against their definitions; without one these are not checked.
fn verify_with(
    program: &Program,
    findings: Findings,
    checker: Option<Checker<'_>>,
) -> Vec<Diagnostic> {
    let Findings { problems, malformed, properties, successors, .. } = findings;
    let is_sorted = problems.is_empty() && properties.is_empty();
    let names = Names::new(program);
    let has_manual = program.num_made(OpKind::ManualComputation) > 0;
    let has_edges = !names.is_none();
    let has_marks = has_manual || !program.op_rules().is_empty() || has_edges;
    let mut verifier = Verifier {
        program,
        names,
        has_manual,
        has_edges,
        has_marks,
        malformed,
        checker,
        successors: successors.as_deref().map(dominance::by_op),
        branching: Vec::new(),
        diagnostics: problems,
    };
    verifier.properties(&properties);
    if verifier.successors.is_some() {
        verifier.parsed_ops();
    } else {
        verifier.ops();
    }
    if let Some(checker) = verifier.checker.take() {
        checker.finish();
    }
    let num_found = verifier.diagnostics.len();
    verifier.meshes_of_groups();
    verifier.ways();
    if !is_sorted || verifier.diagnostics.len() > num_found {
        verifier.diagnostics.sort_by_key(|problem| problem.span.map(|span| span.start));
    }
    verifier.diagnostics
}

/// All errors in `program`, the output of passes on a valid program.
pub fn verify_made(program: &Program) -> Vec<Diagnostic> {
    let malformed = pass_output::malformed_shardings(program);
    if !malformed.is_empty() || !pass_output::is_at_risk(program) {
        return malformed;
    }
    let mut found = pass_output::mistyped_calls(program);
    found.extend(verify_with(program, Findings::default(), None));
    found
}

/// All errors in `program`, the output of any pass.
pub fn verify_after_pass(program: &Program) -> Vec<Diagnostic> {
    let malformed = pass_output::malformed_shardings(program);
    if !malformed.is_empty() {
        return malformed;
    }
    let mut found = pass_output::mistyped_calls(program);
    found.extend(verify(program));
    found
}

/// A check for ops of one kind.
type OwnCheck<'a> = fn(&mut Verifier<'a>, OpId);

/// The check for ops of `kind`, in addition to the checks for every op.
fn own_check<'a>(kind: OpKind) -> Option<OwnCheck<'a>> {
    match kind {
        OpKind::Func => Some(Verifier::body_types),
        OpKind::ManualComputation => Some(Verifier::manual_computation),
        OpKind::NamedComputation => Some(Verifier::named_computation),
        OpKind::DataFlowEdge => Some(Verifier::data_flow_edge),
        OpKind::FuncDataFlowEdge => Some(Verifier::func_data_flow_edge),
        OpKind::PropagationBarrier => Some(Verifier::propagation_barrier),
        OpKind::Composite => Some(Verifier::composite),
        OpKind::ShardingConstraint | OpKind::Reshard => Some(Verifier::resharding),
        kind if kind.is_collective() => Some(Verifier::collective),
        _ => None,
    }
}

/// The check of ops called `name` in addition to shardings and rules: the verifier's column in
/// [`crate::op_table`].
pub fn checks_of(name: &str) -> Option<&'static str> {
    if definition_of(name, Version::NEWEST).is_some() {
        return Some("definition");
    }
    if mpmd::is_defined(name) {
        return Some("definition");
    }
    own_check(OpKind::from_name(name)).map(|_| "own rules")
}

/// The state of one verification.
struct Verifier<'a> {
    program: &'a Program,
    names: Names,
    /// Whether the program has manual computations.
    has_manual: bool,
    /// Whether the program may have recorded propagation edges.
    has_edges: bool,
    /// Whether ops of any name may need checks, because the program has manual computations, rules
    /// or recorded propagation edges.
    has_marks: bool,
    /// Ops whose shardings, rules or axes are invalid.
    malformed: FxHashSet<OpId>,
    checker: Option<Checker<'a>>,
    /// The successor blocks of ops, if the program was parsed.
    successors: Option<Successors>,
    /// Regions with branches between blocks, if the program was parsed.
    branching: Vec<RegionId>,
    diagnostics: Vec<Diagnostic>,
}

impl Verifier<'_> {
    /// Checks all ops of the program.
    fn ops(&mut self) {
        let (program, module) = (self.program, self.program.module_op());
        let mut next = Some(module);
        while let Some(op) = next {
            next = if self.is_settled(op) || self.op(op) {
                program.next_outside(op, module)
            } else {
                program.next_in_pre_order(op, module)
            };
        }
    }
    /// Checks all ops of a program that no pass has changed, whose op ids are in the order of the
    /// text.
    fn parsed_ops(&mut self) {
        let (program, module) = (self.program, self.program.module_op());
        let end = program.num_op_ids();
        let mut next = module.index();
        loop {
            if let Some(checker) = self.checker.as_mut().filter(|_| !self.has_marks) {
                next = checker.past_settled(next);
            }
            if next >= end {
                return;
            }
            let op = OpId::from_index(next);
            // Some ops, such as owners of placeholders, are in no block.
            let is_in_program = op == module || program.parent_op(op).is_some();
            let is_settled = is_in_program && (self.is_settled(op) || self.op(op));
            next = if is_settled && program.num_regions(op) != 0 {
                program.next_outside(op, module).map_or(end, Id::index)
            } else {
                next + 1
            };
        }
    }
    /// Whether `op` and the ops inside it need no further check, as most ops. Ops whose definition
    /// depends only on the signature have no checks of their own.
    #[inline]
    fn is_settled(&mut self, op: OpId) -> bool {
        if self.has_marks {
            return false;
        }
        let Some(checker) = &mut self.checker else { return false };
        checker.is_known(op) || checker.is_plain_constant(op)
    }
    /// Checks `op`; returns whether the ops inside it were checked too.
    #[inline(never)]
    fn op(&mut self, op: OpId) -> bool {
        // Without such marks, a known op needs no further check.
        let is_known = self.has_marks
            && (self.checker.as_mut())
                .is_some_and(|checker| checker.is_known(op) || checker.is_plain_constant(op));
        if !is_known {
            self.structure(op);
            self.definition(op);
        }
        if self.has_marks {
            self.marks(op);
        }
        if !self.has_sdy_types(op) {
            return is_known;
        }
        if let Some(check) = own_check(self.program.kind(op)) {
            check(self, op);
        }
        is_known
    }
    /// Checks shardings, rules and recorded propagation edges of `op` against the ops around it.
    fn marks(&mut self, op: OpId) {
        if self.has_manual {
            self.result_axes(op);
        }
        if !self.program.op_rules().is_empty() {
            self.rule(op);
        }
        if self.has_edges {
            self.propagation_edges(op);
        }
    }
    /// An error in `op` with the reference's message, without a span.
    fn problem(&self, op: OpId, code: Code, message: &str) -> Diagnostic {
        Diagnostic::new(code, format!("'{}' op {message}", self.program.op_name(op)))
    }
    /// Reports an error in `op` at its own span if it has one, else at the op's name.
    fn report(&mut self, op: OpId, problem: Diagnostic) {
        self.diagnostics.push(self.program.reported_at(op, problem));
    }
    /// Reports an error in `op` at its sharding, or else at its name.
    fn report_at_sharding(&mut self, op: OpId, code: Code, message: &str) {
        let span = self.sharding_span(op);
        self.report_at(span, op, code, message);
    }
    /// Reports an error in `op` at its sharding, or else at its name, with a hint.
    fn report_at_sharding_with_hint(&mut self, op: OpId, code: Code, message: &str, hint: &str) {
        let mut problem = self.problem(op, code, message).with_hint(hint);
        problem.span = self.sharding_span(op);
        self.report(op, problem);
    }
    /// Reports an error in `op` at `span`.
    fn report_at(&mut self, span: Option<Span>, op: OpId, code: Code, message: &str) {
        let mut problem = self.problem(op, code, message);
        problem.span = span;
        self.report(op, problem);
    }
    fn propagation_barrier(&mut self, op: OpId) {
        if self.program.payload(op) == Some(&Payload::PropagationBarrier(Direction::Both)) {
            let message = "cannot specify `BOTH` as the direction. Not blocking propagation \
                           direction makes the op redundant.";
            let hint = "allow FORWARD, BACKWARD or NONE, or drop the op";
            self.report_at_sharding_with_hint(op, Code::InvalidOp, message, hint);
        }
    }
}

#[cfg(test)]
mod tests;
