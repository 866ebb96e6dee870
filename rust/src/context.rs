//! What a pass gets besides the program: rules, limits, and a way to be stopped.

use crate::error::{Code, Diagnostic, Result};
use crate::index::{OpId, RuleId};
use crate::ir::{EdgeSpec, Program};

/// Where the sharding rules of ops come from.
///
/// A `sdy.sharding_rule` attribute on the op itself always wins; implementations look it up in
/// [`Program::op_rules`] first.
pub trait RuleSource {
    /// Makes sure that the rule of every op of `program` can be looked up: one call for each
    /// signature that has not been seen yet. `conservative` is Shardy's
    /// `conservative-propagation`.
    fn prepare(&mut self, program: &mut Program, conservative: bool) -> Result<()>;
    /// The rule of `op`, `NONE` if it has none. Only valid after [`RuleSource::prepare`].
    fn rule(&self, program: &Program, op: OpId) -> RuleId;
    /// The data-flow edges of `op`, `None` if values do not just flow through it.
    fn edges<'a>(&self, program: &'a Program, op: OpId) -> Option<&'a EdgeSpec> {
        program.edge_spec(op)
    }
}

/// Limits that keep hostile or exploding programs from taking the machine.
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

/// How far long work has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The pass that is running.
    pub pass: &'a str,
    /// What is done of `total`, in units that only their ratio has meaning for.
    pub done: usize,
    /// What there is to do; 0 if unknown.
    pub total: usize,
}

/// What a pass gets besides the program.
pub struct Context<'a> {
    /// Where rules come from.
    pub rules: &'a mut dyn RuleSource,
    /// Limits.
    pub limits: Limits,
    /// Called now and then; returns false to stop the work.
    pub report: &'a mut dyn FnMut(Progress<'_>) -> bool,
}

impl Context<'_> {
    /// Reports progress; fails if the user wants to stop.
    pub fn progress(&mut self, pass: &str, done: usize, total: usize) -> Result<()> {
        if (self.report)(Progress { pass, done, total }) {
            return Ok(());
        }
        Err(Diagnostic::new(Code::Interrupted, "interrupted").into())
    }
}
