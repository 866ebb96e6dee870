//! What a program was made from, and how to make it again.
//!
//! It is parsed from its source, and the same runs are repeated. That gives the same
//! program, since nothing else has a part in it: a run's rules are kept, with what users' functions have
//! answered.

use crate::context::{Context, Limits, Progress};
use crate::error::{Error, Result};
use crate::ir::{Program, Source};
use crate::mlir;
use crate::pipeline::Pipeline;
use crate::rules::Registry;
use std::sync::Arc;

/// A module that was run more often than this is copied for a run: making it again would take long.
const MAX_STEPS: usize = 16;

/// A run that was made on a program.
pub struct Step {
    /// Its passes.
    pub pipeline: Arc<Pipeline>,
    /// Its rules, which have recorded what users' functions answered.
    pub rules: Registry,
    /// Its limits.
    pub limits: Limits,
}

/// What a program was made from.
pub struct Origin {
    source: Source,
    steps: Vec<Arc<Step>>,
}

impl Origin {
    /// The origin of the program that `source` says.
    pub(super) fn new(source: Source) -> Self {
        Self { source, steps: Vec::new() }
    }
    /// The origin after one more step; `None` after so many that making it again would take long.
    pub(super) fn after(&self, step: Step) -> Option<Self> {
        if self.steps.len() >= MAX_STEPS {
            return None;
        }
        let mut steps = self.steps.clone();
        steps.push(Arc::new(step));
        Some(Self { source: self.source.clone(), steps })
    }
    /// Makes the program. `report` is called now and then, and returns false to stop the work.
    pub fn make(&self, report: &mut dyn FnMut(Progress<'_>) -> bool) -> Result<Program> {
        let mut program = mlir::parse_shared(self.source.clone()).map_err(|e| changed(&e))?;
        for step in &self.steps {
            let mut rules = step.rules.replaying();
            rules.install_edges(&mut program);
            let mut context = Context::new(&mut rules, step.limits, report);
            step.pipeline.run(&mut program, &mut context).map_err(|e| changed(&e))?;
        }
        Ok(program)
    }
}

/// The error for a program that could be made once, and not a second time.
fn changed(error: &Error) -> Error {
    if error.is_interruption() {
        return error.clone();
    }
    Error::internal(format!("a program cannot be made again as it was made before: {error}"))
}
