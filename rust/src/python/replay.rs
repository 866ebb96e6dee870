//! The result of a replay of a session's run, whose programs are made when first needed.

use super::completion::Request;
use super::edited::Edited;
use super::kept_run::Outcome;
use super::module::PyModule;
use super::once::Once;
use super::originals::PyOriginals;
use super::room::room_for_copy;
use super::rule_registry::{registry, RulesThen};
use super::run_options::RunOptions;
use super::session_runs::{Annotated, SessionRuns};
use super::xla_form::{as_in_xla, has_same_axes};
use crate::compilers::target::Compiler;
use crate::import::hlo_captures;
use crate::inlining::call_inliner::Originals;
use crate::session::Target;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// The result for a session's annotations; the replay is made when first needed.
pub(super) struct Replay {
    options: RunOptions,
    rules: RulesThen,
    edited: Arc<Edited>,
    runs: Arc<SessionRuns>,
    outcome: Once<KnownOutcome>,
    module: Once<PyModule>,
}

/// The outcome for annotations; `None` if a new run is needed.
#[pyclass(frozen)]
struct KnownOutcome(Option<Arc<Outcome>>);

impl Replay {
    /// The result for the annotations of `edited` under the current rules; one of `runs` may be
    /// replayed for it.
    pub fn new(options: RunOptions, edited: Arc<Edited>, runs: Arc<SessionRuns>) -> Self {
        let (outcome, module) = (Once::new(), Once::new());
        Self { options, rules: RulesThen::now(), edited, runs, outcome, module }
    }
    /// Whether there is a recorded run from which the outcome can be replayed.
    pub fn has_run(&self) -> bool {
        self.edited.are_of_ports() && self.runs.given.has(&self.options, &self.rules)
    }
    /// The request for a new run.
    pub fn request(&self, py: Python<'_>) -> PyResult<Request> {
        Ok(Request {
            before: self.edited.program(py)?,
            filename: self.edited.filename.clone(),
            options: self.options.clone(),
        })
    }
    /// The completed program, made at the first call.
    pub fn module(&self, py: Python<'_>) -> PyResult<Py<PyModule>> {
        let make = || {
            let Some(outcome) = self.outcome(py)? else {
                return Py::new(py, self.request(py)?.complete(py, false, None)?);
            };
            let filename = &self.edited.filename;
            let program = outcome.complete(py, filename, true)?;
            Py::new(py, PyModule::new(program, filename.clone()))
        };
        self.module.get(py, "the completed program of this result", make)
    }
    /// The outcome, computed at the first call; `None` if a new run is needed.
    pub fn outcome(&self, py: Python<'_>) -> PyResult<Option<Arc<Outcome>>> {
        let make = || {
            let edited = &self.edited;
            let program = || Ok((edited.own_program(py)?, None));
            let annotated = Annotated::new(edited, self.rules.clone(), &program);
            let found = self.runs.given.outcome(py, &annotated, &self.options)?;
            Py::new(py, KnownOutcome(found.map(Arc::new)))
        };
        let known = self.outcome.get(py, "the shardings of this result", make)?;
        Ok(known.get().0.clone())
    }
    /// The outcome, if shardings of the completed program can be read from it.
    pub fn readable(&self, py: Python<'_>) -> PyResult<Option<Arc<Outcome>>> {
        let outcome = self.outcome(py)?;
        Ok(outcome.filter(|outcome| outcome.prepared.is_readable(&outcome.replayed)))
    }
    /// The result of [`Request::complete_as_xla`], by a replay; `None` if that is not possible. If
    /// `keep_ports`, arguments and results are placed as in this result.
    pub fn as_xla(
        &self,
        py: Python<'_>,
        compiler: Compiler,
        keep_ports: bool,
    ) -> PyResult<Option<Py<PyTuple>>> {
        let (edited, runs) = (&self.edited, self.runs.of(compiler));
        if !edited.is_surely_exported(self.options.how) {
            // The program may be rejected as it is, even if XLA's form of it is not.
            self.module(py)?;
        }
        let options = RunOptions { legalize_chlo: true, ..self.options.clone() };
        let program = || {
            let given = edited.program(py)?;
            room_for_copy(py, &given)?;
            let rules = registry().legalizing_chlo();
            let (program, originals) = as_in_xla(&given, &rules, compiler);
            Ok((program, Some(Arc::new(originals))))
        };
        let annotated = Annotated::new(edited, RulesThen::now(), &program);
        let Some(mut found) = runs.outcome(py, &annotated, &options)? else { return Ok(None) };
        if !found.prepared.is_readable(&found.replayed) {
            return Ok(None);
        }
        let mut are_kept = false;
        if keep_ports {
            let Some(given) = self.readable(py)? else { return Ok(None) };
            let wanted = (&*given.prepared, &*given.replayed);
            if !found.prepared.have_same_ports(&found.replayed, wanted, has_same_axes) {
                let wanted = given.prepared.completed_ports(&given.replayed);
                let Some(placed) = runs.placed(py, &found, &wanted)? else { return Ok(None) };
                found = placed;
                are_kept = true;
            }
        }
        let Some(originals) = found.originals.clone() else { return Ok(None) };
        let mut program = found.complete(py, &edited.filename, false)?;
        program.note_open_results(|func, index| {
            are_kept || edited.is_annotated(Target::Result(func, index))
        });
        let mut originals = Originals::clone(&originals);
        hlo_captures::release(&mut program, &mut originals);
        let module = Py::new(py, PyModule::new(program, edited.filename.clone()))?;
        let made = (module, Py::new(py, PyOriginals(Arc::new(originals)))?);
        Ok(Some(made.into_pyobject(py)?.unbind()))
    }
}
