//! The source of a program and the runs on it, from which it can be rebuilt.
//!
//! The source is parsed, and the same runs are repeated. That gives the same program, since a run depends on
//! nothing else: its rules are stored, with the results of users' functions.

use crate::context::{Context, Limits, Progress};
use crate::error::{Error, Result};
use crate::ir::{Program, Source};
use crate::mlir;
use crate::pipeline::Pipeline;
use crate::rules::Registry;
use std::sync::Arc;

/// The most runs that are repeated: a module with more is copied for a run instead.
const MAX_STEPS: usize = 16;

/// A run on a program.
pub struct Step {
    /// Its passes.
    pub pipeline: Arc<Pipeline>,
    /// Its rules, which have recorded what users' functions answered.
    pub rules: Registry,
    /// Its limits.
    pub limits: Limits,
}

/// The source of a program and the runs on it.
pub struct Origin {
    source: Source,
    steps: Vec<Arc<Step>>,
}

impl Origin {
    /// The origin of a program that is parsed from `source`.
    pub(super) fn new(source: Source) -> Self {
        Self { source, steps: Vec::new() }
    }
    /// The origin after one more step; `None` after more than `MAX_STEPS`.
    pub(super) fn after(&self, step: Step) -> Option<Self> {
        if self.steps.len() >= MAX_STEPS {
            return None;
        }
        let mut steps = self.steps.clone();
        steps.push(Arc::new(step));
        Some(Self { source: self.source.clone(), steps })
    }
    /// Rebuilds the program. `report` is called from time to time, and returns false to stop.
    pub fn make(&self, report: &mut dyn FnMut(Progress<'_>) -> bool) -> Result<Program> {
        let mut program = mlir::parse_shared(self.source.clone()).map_err(|e| changed(&e))?;
        for step in &self.steps {
            let mut rules = step.rules.replaying();
            rules.install_edges(&mut program).map_err(|e| changed(&e))?;
            let mut context = Context::new(&mut rules, step.limits, report);
            step.pipeline.run(&mut program, &mut context).map_err(|e| changed(&e))?;
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
