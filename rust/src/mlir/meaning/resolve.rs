//! Parses and checks the recorded meshes, shardings, rules, axes of collectives, and calls.
//!
//! Each text is parsed once. All errors are collected, with the reference's messages, at the line
//! of their op and in the reference's order: first those of parsing, then those of verification.

use super::notes::Notes;
use super::regions::region_problems;
use super::resolver::Resolver;
use super::target::Target;
use crate::attribute::{self, names_itself};
use crate::error::{Code, Diagnostic, Span};
use crate::index::{MeshId, OpId};
use crate::ir::{Findings, OpKind, Payload, Program};
use crate::sharding::ReductionOp;

impl Notes<'_> {
    /// Parses meshes, shardings, rules and axes, stores them in `program`, and checks regions and calls.
    pub fn resolve(&self, program: &mut Program) -> Findings {
        let problems = region_problems(program, &self.region_ops);
        let is_unreadable = !problems.is_empty();
        let properties = self.properties.clone();
        let findings = Findings { problems, properties, is_unreadable, ..Findings::default() };
        let mut resolver = Resolver::new(self, program, findings);
        if resolver.read_meshes() {
            resolver.read_targets();
            resolver.check_calls();
        }
        resolver.findings
    }
}

impl Resolver<'_, '_> {
    /// Parses all meshes; false if one of them is invalid.
    fn read_meshes(&mut self) -> bool {
        let notes = self.notes;
        let mut are_good = true;
        for &(op, span) in &notes.meshes {
            let (text, base) = self.attribute_text(span);
            match attribute::parse_mesh(text, base) {
                Ok(mesh) => {
                    if let Some(Payload::Mesh(id)) = self.program.payload(op) {
                        let id = *id;
                        self.program.define_mesh(id, mesh);
                    }
                }
                Err(error) => {
                    are_good = false;
                    self.unreadable(op, true, error);
                }
            }
        }
        are_good
    }
    fn read_targets(&mut self) {
        let notes = self.notes;
        for &(target, span) in &notes.targets {
            match target {
                Target::Rule(op) => self.read_rule(op, span),
                Target::Axes(op, reduction_op) => self.read_axes(op, reduction_op, span),
                _ => self.read_shardings(target, span),
            }
        }
    }
    fn check_calls(&mut self) {
        for call in &self.notes.calls {
            if let Some(problem) = call.problem(self.program, &self.notes.symbols) {
                self.findings.add(call.op, problem);
            }
        }
    }
    fn read_rule(&mut self, op: OpId, span: Span) {
        let (text, base) = self.attribute_text(span);
        let subject = format!("'{}' op ", self.program.op_name(op));
        if !names_itself(text, "op_sharding_rule") {
            let message =
                "should have a sharding rule attribute of type OpShardingRuleAttr for attr \
                           named 'sdy.sharding_rule'";
            let problem = Diagnostic::new(Code::InvalidRule, message).at(span);
            return self.wrong(op, &subject, [problem]);
        }
        let read = match attribute::read_rule(text, base, 0, self.program.shardy()) {
            Ok(read) => read,
            Err(error) => return self.unreadable(op, false, error),
        };
        if read.problems.is_empty() {
            let rule = self.program.intern_rule(read.rule);
            self.program.set_op_rule(op, rule);
            return;
        }
        let [operands, results] = self.program.static_shapes(op);
        let mut misfits = attribute::verify_rule_ranks(&read.rule, &operands, &results);
        for problem in &mut misfits {
            problem.span = Some(span);
        }
        self.wrong(op, &subject, misfits.into_iter().chain(read.problems));
    }

    fn read_axes(&mut self, op: OpId, reduction_op: ReductionOp, span: Span) {
        let sharding = self.program.op_results(op).next().map(|value| self.program.sharding(value));
        let mesh = sharding.map_or(MeshId::NONE, |sharding| self.program.mesh_of(sharding));
        // A sharding without a mesh has an error already.
        let Some(mesh) = mesh.get() else { return };
        let (text, base) = self.attribute_text(span);
        let mesh = self.program.mesh(mesh);
        let read = match self.program.kind(op) {
            OpKind::AllToAll => {
                attribute::parse_all_to_all(text, base, mesh).map(Payload::AllToAll)
            }
            OpKind::AllReduce | OpKind::ReplicatedToUnreduced => {
                attribute::parse_axis_list(text, base, mesh)
                    .map(|axes| Payload::Axes(axes, reduction_op))
            }
            _ => attribute::parse_axes_per_dim(text, base, mesh)
                .map(|axes| Payload::AxesPerDim(axes, reduction_op)),
        };
        match read {
            Ok(payload) => self.program.attach_payload(op, payload),
            Err(error) if error.diagnostics.iter().all(|d| d.code == Code::UnknownAxis) => {
                let subject = format!("'{}' op ", self.program.op_name(op));
                self.wrong(op, &subject, error.diagnostics);
            }
            Err(error) => self.unreadable(op, true, error),
        }
    }
}
