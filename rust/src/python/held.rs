//! The program of a module, and how to make it again.
//!
//! A run in place takes the program out of its module rather than copying it, which would take as long
//! as many a pass and twice the memory. Whoever looks at the module before the run is done, or after it
//! has failed, finds the program made again: parsed from its source, and run through what the module was
//! run through before. That gives the same program, since nothing else has a part in it: a snapshot of
//! the rules is kept, with what users' functions have answered.

use crate::context::{Context, Limits};
use crate::error::Result;
use crate::ir::{Program, Source};
use crate::mlir;
use crate::pipeline::Pipeline;
use crate::rules::Registry;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// A module that was run more often than this is copied: making it again would take long.
const MAX_STEPS: usize = 16;

/// A run that a program went through.
#[derive(Clone)]
pub(super) struct Step {
    pub pipeline: Arc<Pipeline>,
    pub rules: Registry,
    pub limits: Limits,
}

/// What a program was made from.
#[derive(Clone)]
struct Origin {
    source: Source,
    steps: Vec<Step>,
}

impl Origin {
    fn make(&self) -> Result<Program> {
        let mut program = mlir::parse_shared(self.source.clone())?;
        for step in &self.steps {
            let mut rules = step.rules.clone();
            rules.install_edges(&mut program);
            let mut report = |_: crate::context::Progress<'_>| true;
            let mut context = Context::new(&mut rules, step.limits, &mut report);
            step.pipeline.run(&mut program, &mut context)?;
        }
        Ok(program)
    }
}

/// A program that may have been taken out.
pub(super) struct Held {
    program: OnceLock<Arc<Program>>,
    /// Absent if it cannot be made again.
    origin: Option<Origin>,
}

impl Held {
    /// A program that was made in some way of its own.
    pub fn new(program: Program) -> Self {
        Self { program: Arc::new(program).into(), origin: None }
    }
    /// The program that `source` says.
    pub fn parsed(program: Program, source: Source) -> Self {
        let origin = Some(Origin { source, steps: Vec::new() });
        Self { program: Arc::new(program).into(), origin }
    }
    /// The same program, shared.
    pub fn share(&self) -> Self {
        Self { program: Arc::clone(self).into(), origin: self.origin.clone() }
    }
    /// A program to run passes on: this one if nobody else has it and it can be made again, or a copy.
    pub fn take(&mut self) -> Program {
        let can_be_made = self.origin.as_ref().is_some_and(|origin| origin.steps.len() < MAX_STEPS);
        if can_be_made {
            if let Some(program) = self.program.take() {
                match Arc::try_unwrap(program) {
                    Ok(program) => return program,
                    Err(shared) => self.program = shared.into(),
                }
            }
        }
        Program::clone(self)
    }
    /// Holds `program` from now on: what [`Held::take`] gave, after `step`.
    pub fn put(&mut self, program: Program, step: Step) {
        self.program = Arc::new(program).into();
        if let Some(origin) = &mut self.origin {
            if origin.steps.len() < MAX_STEPS {
                origin.steps.push(step);
            } else {
                self.origin = None;
            }
        }
    }
}

impl Deref for Held {
    type Target = Arc<Program>;

    fn deref(&self) -> &Arc<Program> {
        self.program.get_or_init(|| {
            let made = self.origin.as_ref().map(Origin::make);
            // It was made before in the same way, so it can be.
            Arc::new(made.and_then(Result::ok).unwrap_or_default())
        })
    }
}
