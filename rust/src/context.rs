//! The context of a pass: sharding rules, limits, and progress reports, through which it can be stopped.

use crate::error::{Code, Diagnostic, Result};
use crate::index::{OpId, RuleId, SignatureId};
use crate::ir::{EdgeSpec, Program};

/// A source of the sharding rules of ops.
///
/// A `sdy.sharding_rule` attribute on the op itself always wins; implementations look it up in
/// [`Program::op_rules`] first.
pub trait RuleSource {
    /// Makes sure that the rule of every op of `program` can be looked up: one call for each
    /// signature that has not been seen yet. `conservative` is Shardy's
    /// `conservative-propagation`.
    fn prepare(&mut self, program: &mut Program, conservative: bool) -> Result<()>;
    /// Interns the signatures of ops that were made since the last call, without computing rules.
    fn sign(&self, _program: &mut Program) {}
    /// Interns the signature of `op`, which was made since the last call of [`RuleSource::sign`].
    fn sign_op(&self, _program: &mut Program, _op: OpId) {}
    /// The rule of `op`, `NONE` if it has none. Only valid after [`RuleSource::prepare`].
    fn rule(&self, program: &Program, op: OpId) -> RuleId;
    /// Whether all ops of a signature have the same rule, apart from ops with an
    /// `sdy.sharding_rule` attribute.
    fn follows_from_signature(&self, _program: &Program, _signature: SignatureId) -> bool {
        false
    }
    /// The data-flow edges of `op`, `None` if it has none.
    fn edges<'a>(&self, program: &'a Program, op: OpId) -> Option<&'a EdgeSpec> {
        program.edge_spec(op)
    }
}

/// Limits that keep hostile or exponentially growing programs from exhausting memory.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most ops a program may have, also after its call graph is flattened.
    pub max_ops: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_ops: 16_000_000 }
    }
}

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The pass that is running.
    pub pass: &'a str,
    /// The fraction of the whole run that is done, from 0 to 1; never decreases.
    pub fraction: f64,
}

/// The context of a pass: sharding rules, limits and progress reports.
pub struct Context<'a> {
    /// Where rules come from.
    pub rules: &'a mut dyn RuleSource,
    /// Limits.
    pub limits: Limits,
    /// Whether the program is verified after each pass.
    pub verifies_each: bool,
    /// Called at intervals; returns false to stop the run.
    report: &'a mut dyn FnMut(Progress<'_>) -> bool,
    /// The index of the current pass, and the number of passes.
    step: (usize, usize),
    /// The largest fraction reported.
    reached: f64,
}

impl<'a> Context<'a> {
    /// A context that calls `report` at intervals; `report` returns false to stop the run.
    pub fn new(
        rules: &'a mut dyn RuleSource,
        limits: Limits,
        report: &'a mut dyn FnMut(Progress<'_>) -> bool,
    ) -> Self {
        Self { rules, limits, verifies_each: false, report, step: (0, 1), reached: 0.0 }
    }
    /// Reports that `pass` begins, the `index`-th of `count`; fails if the user wants to stop.
    pub fn begin(&mut self, pass: &str, index: usize, count: usize) -> Result<()> {
        self.step = (index, count.max(1));
        self.progress(pass, 0, 1)
    }
    /// Reports that the current pass has done `done` of `total`, in arbitrary units; fails if the user wants to
    /// stop.
    pub fn progress(&mut self, pass: &str, done: usize, total: usize) -> Result<()> {
        let (index, count) = self.step;
        let within = done as f64 / total.max(done).max(1) as f64;
        self.reached = ((index as f64 + within) / count as f64).clamp(self.reached, 1.0);
        if (self.report)(Progress { pass, fraction: self.reached }) {
            return Ok(());
        }
        Err(Diagnostic::new(Code::Interrupted, "interrupted").into())
    }
}
