//! The origin of a program, from which it can be rebuilt: its source text, or the function that
//! makes it, and the runs on it.
//!
//! To rebuild it, the source is parsed and the runs are repeated. That gives the same program,
//! since a run depends on nothing else: its rules are stored, with the results of users' functions.

use crate::context::{Context, Limits, Progress};
use crate::error::{Error, Result};
use crate::ir::{Program, Source};
use crate::mlir;
use crate::pipeline::Pipeline;
use crate::rules::Registry;
use crate::shardy::Version;
use std::sync::Arc;

/// The most runs that are repeated: a module with more is copied for a run instead.
const MAX_STEPS: usize = 16;

/// A run on a program.
pub struct Step {
    /// Its passes.
    pub pipeline: Arc<Pipeline>,
    /// Its rules, with the recorded results of users' functions.
    pub rules: Registry,
    /// Its limits.
    pub limits: Limits,
}

impl Step {
    /// Repeats the run on `program`. `report` is called at intervals, and returns false to stop.
    pub fn repeat(
        &self,
        program: &mut Program,
        report: &mut dyn FnMut(Progress<'_>) -> bool,
    ) -> Result<()> {
        let mut rules = self.rules.replaying();
        rules.install_edges(program)?;
        let mut context = Context::new(&mut rules, self.limits, report);
        self.pipeline.run(program, &mut context)
    }
}

/// A function that makes a program, the same one each time. It calls its argument at intervals,
/// which returns false to stop it.
pub type Maker = dyn Fn(&mut dyn FnMut(Progress<'_>) -> bool) -> Result<Program> + Send + Sync;

/// The source of a program, and the runs on it.
pub struct Origin {
    base: Base,
    steps: Vec<Arc<Step>>,
}

#[derive(Clone)]
enum Base {
    Text(Source, Version),
    Made(Arc<Maker>),
}

impl Origin {
    /// The origin of a program that is parsed from `source` for version `shardy`.
    pub(super) fn new(source: Source, shardy: Version) -> Self {
        Self { base: Base::Text(source, shardy), steps: Vec::new() }
    }
    /// The origin of a program that `make` makes.
    pub(super) fn made_by(make: Arc<Maker>) -> Self {
        Self { base: Base::Made(make), steps: Vec::new() }
    }
    /// The origin after one more step; `None` after more than `MAX_STEPS`.
    pub(super) fn after(&self, step: Step) -> Option<Self> {
        if self.steps.len() >= MAX_STEPS {
            return None;
        }
        let mut steps = self.steps.clone();
        steps.push(Arc::new(step));
        Some(Self { base: self.base.clone(), steps })
    }
    /// Rebuilds the program. `report` is called at intervals, and returns false to stop.
    pub fn make(&self, report: &mut dyn FnMut(Progress<'_>) -> bool) -> Result<Program> {
        let made = match &self.base {
            Base::Text(source, shardy) => mlir::parse_shared(source.clone(), *shardy),
            Base::Made(make) => make(report),
        };
        let mut program = made.map_err(|e| changed(&e))?;
        for step in &self.steps {
            step.repeat(&mut program, report).map_err(|e| changed(&e))?;
        }
        Ok(program)
    }
}

/// The error for a program that could not be rebuilt, although it was made once.
fn changed(error: &Error) -> Error {
    if error.is_interruption() {
        return error.clone();
    }
    Error::internal(format!("a program cannot be made again as it was made before: {error}"))
}
