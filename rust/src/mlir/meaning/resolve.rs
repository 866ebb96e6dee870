//! Reads what was noted while ops were read: meshes, shardings, rules, axes of collectives, calls.
//!
//! Meshes may come after the shardings that name them, so all of this is read at the end, each text
//! once. Mistakes are gathered, each said as the reference says it and at the line of its op, in the
//! reference's order of steps: what does not parse, then what does not make sense.

use crate::attribute::{self, names_itself, ReadSharding};
use crate::error::{Code, Diagnostic, Error, Result, Span};
use crate::index::{FuncId, MeshId, OpId, ShardingId};
use crate::ir::{Findings, OpKind, Payload};
use crate::mesh::Mesh;
use crate::mlir::meaning::notes::Call;
use crate::mlir::meaning::target::Target;
use crate::mlir::reader::parser::Parser;
use crate::suggest;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// The shardings of each text that makes sense.
type Known<'a> = FxHashMap<(bool, &'a str), Rc<[ShardingId]>>;

impl<'a> Parser<'a> {
    /// Reads meshes and shardings, checks regions and calls.
    pub(in crate::mlir) fn resolve(&mut self) -> Result<Findings> {
        self.check_dominance()?;
        let mut findings = Findings { problems: self.check_regions(), ..Findings::default() };
        findings.is_unreadable = !findings.problems.is_empty();
        let mut has_bad_mesh = false;
        for (op, span) in std::mem::take(&mut self.meshes) {
            let (text, base) = self.attribute_text(span);
            match attribute::parse_mesh(text, base) {
                Ok(mesh) => {
                    if let Some(Payload::Mesh(id)) = self.program.payload(op) {
                        let id = *id;
                        self.program.meshes.define(id, mesh);
                    }
                }
                Err(error) => {
                    has_bad_mesh = true;
                    self.unreadable(op, true, error, &mut findings);
                }
            }
        }
        if has_bad_mesh {
            return Ok(findings);
        }
        let mut known = Known::default();
        for (target, span) in std::mem::take(&mut self.targets) {
            match target {
                Target::Rule(op) => self.read_rule(op, span, &mut findings),
                Target::Axes(op) => self.read_axes(op, span, &mut findings),
                _ => self.read_shardings(target, span, &mut known, &mut findings),
            }
        }
        for call in std::mem::take(&mut self.calls) {
            if let Some(problem) = self.check_call(&call) {
                findings.add(call.op, problem);
            }
        }
        Ok(findings)
    }
    /// The text at `span`, or that of the attribute alias that it is.
    fn attribute_text(&self, span: Span) -> (&'a str, u32) {
        let mut span = span;
        for _ in 0..16 {
            let text = self.text_at(span);
            let alias = self.program.strings.find(text).filter(|_| text.starts_with('#'));
            match alias.and_then(|id| self.program.aliases.get(&id)) {
                Some(&body) => span = body,
                None => break,
            }
        }
        (self.text_at(span), span.start)
    }
    /// Adds an error of syntax in an attribute of `op`, which stands in the op's own syntax or not.
    fn unreadable(&self, op: OpId, is_own: bool, error: Error, findings: &mut Findings) {
        let span = self.program.name_span(op).unwrap_or_default();
        let is_own = is_own && self.cursor.byte(span.start.wrapping_sub(1) as usize) != b'"';
        let name = self.program.op_name(op);
        let error = if is_own { in_own_syntax(name, error) } else { error };
        for problem in error.diagnostics {
            findings.add(op, problem);
        }
    }
    /// Adds what is wrong with an attribute of `op`, said of `subject`.
    fn wrong(
        &self,
        op: OpId,
        subject: &str,
        found: impl IntoIterator<Item = Diagnostic>,
        findings: &mut Findings,
    ) {
        for mut problem in found {
            problem.message.insert_str(0, subject);
            findings.add(op, self.program.reported_at(op, problem));
        }
    }

    fn read_rule(&mut self, op: OpId, span: Span, findings: &mut Findings) {
        let (text, base) = self.attribute_text(span);
        let subject = format!("'{}' op ", self.program.op_name(op));
        if !names_itself(text, "op_sharding_rule") {
            let message =
                "should have a sharding rule attribute of type OpShardingRuleAttr for attr \
                           named 'sdy.sharding_rule'";
            let problem = Diagnostic::new(Code::InvalidRule, message).at(span);
            return self.wrong(op, &subject, [problem], findings);
        }
        let read = match attribute::read_rule(text, base, 0) {
            Ok(read) => read,
            Err(error) => return self.unreadable(op, false, error, findings),
        };
        if read.problems.is_empty() {
            let rule = self.program.rules.intern(read.rule);
            self.program.op_rules.set(op, rule);
            return;
        }
        let [operands, results] = self.program.static_shapes(op);
        let mut misfits = attribute::verify_rule_ranks(&read.rule, &operands, &results);
        for problem in &mut misfits {
            problem.span = Some(span);
        }
        self.wrong(op, &subject, misfits.into_iter().chain(read.problems), findings);
    }

    fn read_shardings(
        &mut self,
        target: Target,
        span: Span,
        known: &mut Known<'a>,
        findings: &mut Findings,
    ) {
        let is_list =
            matches!(target, Target::Results(_) | Target::Unread(_) | Target::RegionArgs(_));
        let key = (is_list, self.text_at(span));
        if let Some(shardings) = known.get(&key) {
            let shardings = shardings.clone();
            if self.fit(target, &shardings) {
                return self.place(target, &shardings);
            }
        }
        let owner = self.owner(target);
        let (text, base) = self.attribute_text(span);
        if let Some(problem) = self.is_other_kind(target, text) {
            return self.wrong(owner, "", [problem.at(span)], findings);
        }
        let read = if is_list {
            attribute::read_sharding_per_value(text, base, &mut self.program)
        } else {
            attribute::read_lone_sharding(text, base, &mut self.program).map(|read| vec![read])
        };
        let read = match read {
            Ok(read) => read,
            Err(error) => {
                let is_own = self.program.kind(owner).has_own_sharding();
                return self.unreadable(owner, is_own, error, findings);
            }
        };
        let before = findings.problems.len();
        self.check_shardings(target, span, &read, findings);
        let sharding = |read: ReadSharding| self.program.shardings.intern(read.sharding);
        let shardings: Rc<[ShardingId]> = read.into_iter().map(sharding).collect();
        if findings.problems.len() == before {
            known.insert(key, shardings.clone());
        }
        // What is wrong is placed too where it can be: others are checked against it.
        if self.fit(target, &shardings) {
            self.place(target, &shardings);
        }
    }

    /// Adds everything that is wrong with `read`, the shardings at `span`.
    fn check_shardings(
        &self,
        target: Target,
        span: Span,
        read: &[ReadSharding],
        findings: &mut Findings,
    ) {
        let (owner, types) = (self.owner(target), self.types(target));
        let is_free = types.is_empty() && self.may_have_no_value(read);
        if read.len() != types.len() && !is_free {
            let side = self.program.sharding_side(owner, matches!(target, Target::RegionArgs(_)));
            let message = format!(
                "'{}' op {side} shardings don't match number of values: {} shardings vs {} values",
                self.program.op_name(owner),
                read.len(),
                types.len()
            );
            let problem = Diagnostic::new(Code::InvalidSharding, message).at(span);
            self.wrong(owner, "", [problem], findings);
        }
        for (index, one) in read.iter().enumerate() {
            let subject = self.subject(target, index, types.len());
            let ty = types.get(index).copied();
            let misfit = self.misfit(&one.sharding, ty).map(|problem| problem.at(span));
            let problems = one.problems.iter().cloned().chain(misfit);
            self.wrong(owner, &subject, problems, findings);
        }
    }
    /// Whether `read` may be the shardings of an op without results.
    fn may_have_no_value(&self, read: &[ReadSharding]) -> bool {
        let [ReadSharding { sharding, .. }] = read else { return read.is_empty() };
        let mesh = sharding.mesh.get().map(|mesh| self.program.mesh(mesh));
        mesh.is_some_and(Mesh::is_maximal) || sharding.is_fully_replicated()
    }
    fn read_axes(&mut self, op: OpId, span: Span, findings: &mut Findings) {
        let sharding = self.program.op_results(op).next().map(|value| self.program.sharding(value));
        let mesh = sharding.map_or(MeshId::NONE, |sharding| self.program.mesh_of(sharding));
        // Without a mesh the sharding is wrong, which has been said.
        let Some(mesh) = mesh.get() else { return };
        let (text, base) = self.attribute_text(span);
        let mesh = self.program.mesh(mesh);
        let read = match self.program.kind(op) {
            OpKind::AllToAll => {
                attribute::parse_all_to_all(text, base, mesh).map(Payload::AllToAll)
            }
            OpKind::AllReduce | OpKind::ReplicatedToUnreduced => {
                attribute::parse_axis_list(text, base, mesh).map(Payload::Axes)
            }
            _ => attribute::parse_axes_per_dim(text, base, mesh).map(Payload::AxesPerDim),
        };
        match read {
            Ok(payload) => self.program.ops[op].payload = self.program.payloads.push(payload),
            Err(error) if error.diagnostics.iter().all(|d| d.code == Code::UnknownAxis) => {
                let subject = format!("'{}' op ", self.program.op_name(op));
                self.wrong(op, &subject, error.diagnostics, findings);
            }
            Err(error) => self.unreadable(op, true, error, findings),
        }
    }
    fn check_call(&self, call: &Call) -> Option<Diagnostic> {
        let callee = self.symbols.get(&(call.module, call.callee));
        let function = callee.map_or(FuncId::NONE, |&(op, _)| self.program.function_of(op));
        let Some(id) = function.get() else {
            let name = self.program.strings.get(call.callee);
            let message = format!("there is no function @{name}");
            let mut diagnostic = Diagnostic::new(Code::UnknownSymbol, message).at(call.span);
            let names = self.program.functions.iter().map(|f| self.program.strings.get(f.name));
            let names = names.take(suggest::MAX_CANDIDATES);
            diagnostic.hint = suggest::hint(name, names, |name| format!("@{name}"));
            return Some(diagnostic);
        };
        let function = &self.program.functions[id];
        let operands = self.program.op_operands(call.op);
        let inputs = operands.iter().map(|slot| self.program.values[slot.value].ty);
        let results = self.program.op_results(call.op).map(|value| self.program.values[value].ty);
        if inputs.eq(self.program.func_args(id).iter().map(|arg| arg.ty))
            && results.eq(self.program.func_results(id).iter().map(|result| result.ty))
        {
            return None;
        }
        let name = self.program.strings.get(call.callee);
        let message = format!("the call's type is not the type of @{name}");
        let related = (function.name_span, "the function".to_owned());
        let mut diagnostic = Diagnostic::new(Code::TypeMismatch, message).at(call.span);
        diagnostic.related = Some(related);
        Some(diagnostic)
    }
}

/// How the reference says `error`, which is in the own syntax of an op called `name`.
pub(in crate::mlir) fn in_own_syntax(name: &str, mut error: Error) -> Error {
    for problem in &mut error.diagnostics {
        // What token is expected is for MLIR's own parser to say.
        let token = problem.message.strip_prefix("expected '");
        let is_of_tokens = token.is_some_and(|token| !token.starts_with(char::is_alphabetic))
            || problem.message == "unexpected character";
        if !is_of_tokens {
            problem.message = format!("custom op '{name}' {}", problem.message);
        }
    }
    error
}
