//! The arguments of a call of `Module.propagate`, which are kept so that the shardings can be
//! completed again with explicit collectives.

use super::errors::{raise, raise_unlocated};
use super::module::PyModule;
use super::result::PyPropagationResult;
use super::room::copy;
use super::run_options::RunOptions;
use super::why::PyExplainer;
use super::work::{install_edges, run, work};
use crate::context::Progress;
use crate::error::Error;
use crate::explain::Explained;
use crate::ir::Program;
use crate::memory;
use crate::module::Step;
use crate::pipeline::{Completion, Pipeline};
use crate::verify::verify_made;
use crate::work::ops::Family;
use pyo3::prelude::*;
use std::sync::Arc;

/// The arguments of `Module.propagate`, and the program that it was called on.
#[derive(Clone)]
pub(super) struct Request {
    /// The program before propagation.
    pub before: Arc<Program>,
    /// The filename in its errors.
    pub filename: Arc<str>,
    /// The arguments.
    pub options: RunOptions,
}

impl Request {
    /// The completed program. If `collectives`, it has explicit collectives, CHLO is legalized, as
    /// when XLA inserts the collectives, and it is not verified; otherwise it is verified.
    pub fn complete(
        &self,
        py: Python<'_>,
        collectives: bool,
        progress: Option<&Py<PyAny>>,
    ) -> PyResult<PyModule> {
        let how = Completion { collectives, ..self.options.how };
        let pipeline = Pipeline::propagation(how, self.before.shardy())
            .map_err(|error| raise_unlocated(py, error.diagnostics))?;
        let mut rules = self.options.rules();
        if collectives {
            rules = rules.legalizing_chlo();
        }
        let mut program = copy(py, &self.before)?;
        let limits = self.options.limits();
        if !collectives {
            run(py, &pipeline, rules, &mut program, &self.filename, (limits, false), progress)?;
            self.check(py, &program)?;
            return Ok(PyModule::new(program, self.filename.clone()));
        }
        let rules = rules.recording();
        let step = Step { pipeline: Arc::new(pipeline), rules: rules.clone(), limits };
        let with = (limits, false);
        run(py, &step.pipeline, rules, &mut program, &self.filename, with, progress)?;
        let before = Arc::clone(&self.before);
        let make = move |report: &mut dyn FnMut(Progress<'_>) -> bool| {
            memory::ensure_for_program(before.num_op_ids())?;
            let mut program = Program::clone(&before);
            step.repeat(&mut program, report)?;
            Ok(program)
        };
        Ok(PyModule::made_by(program, Arc::new(make), self.filename.clone()))
    }
    /// The completed program with explicit reshards, which are not turned into collectives.
    pub fn complete_with_reshards(&self, py: Python<'_>) -> PyResult<PyModule> {
        let pipeline = Pipeline::with_reshards(self.options.how, self.before.shardy())
            .map_err(|error| raise_unlocated(py, error.diagnostics))?;
        let rules = self.options.rules().legalizing_chlo();
        let mut program = copy(py, &self.before)?;
        let limits = self.options.limits();
        run(py, &pipeline, rules, &mut program, &self.filename, (limits, false), None)?;
        Ok(PyModule::new(program, self.filename.clone()))
    }
    /// Whether the program may have CHLO ops that are sharded by their own rules.
    pub fn leaves_chlo(&self) -> bool {
        let mut names = Family::all().flat_map(|family| family.ops);
        let strings = self.before.strings();
        !self.options.legalize_chlo
            && names.any(|name| name.starts_with("chlo.") && strings.find(name).is_some())
    }
    /// The request in which CHLO ops are sharded like the ops that XLA legalizes them to.
    pub fn legalizing(self) -> Self {
        let options = RunOptions { legalize_chlo: true, ..self.options };
        Self { options, ..self }
    }
    /// The result of the request.
    pub fn result(
        self,
        py: Python<'_>,
        progress: Option<&Py<PyAny>>,
    ) -> PyResult<PyPropagationResult> {
        let module = self.complete(py, false, progress)?;
        Ok(PyPropagationResult::new(self, Py::new(py, module)?))
    }
    /// The explanation of `result`, the completed program.
    pub fn explain(&self, py: Python<'_>, result: Arc<Program>) -> PyResult<PyExplainer> {
        let rules = self.options.rules();
        let mut program = copy(py, &self.before)?;
        install_edges(py, &rules, &mut program, &self.filename)?;
        let limits = self.options.limits();
        let explained = work(py, rules, limits, None, |context| {
            Pipeline::explain(self.options.how, &mut program, context)
        })?;
        let text = self.before.text().source();
        let explanation = explained.map_err(|error| raise(py, &error, text, &self.filename))?;
        let explained = Explained::new(self.before.clone(), program, explanation, &result);
        Ok(PyExplainer::new(explained, self.before.clone(), result))
    }
    /// Fails if `program`, a completed program, does not verify.
    pub fn check(&self, py: Python<'_>, program: &Program) -> PyResult<()> {
        let checked = py.detach(|| Error::check(verify_made(program)));
        checked.map_err(|error| raise(py, &error, program.text().source(), &self.filename))
    }
}
