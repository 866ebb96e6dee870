//! A result of a session that was replayed, of which programs are made when somebody asks for them.

use super::completion::Request;
use super::edited::Edited;
use super::kept_run::Outcome;
use super::module::PyModule;
use super::once::Once;
use super::originals::PyOriginals;
use super::room::room_for_copy;
use super::rules::registry;
use super::run_options::RunOptions;
use super::session_runs::{Annotated, SessionRuns};
use super::xla_form::{as_in_xla, has_same_axes};
use crate::cost::inline::Originals;
use crate::import::hlo_captures;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// What a replay led to, with the annotations that it was for.
pub(super) struct Replay {
    outcome: Arc<Outcome>,
    edited: Arc<Edited>,
    runs: Arc<SessionRuns>,
    module: Once<PyModule>,
}

impl Replay {
    /// `outcome`, which one of `runs` has for the annotations of `edited`.
    pub fn new(outcome: Outcome, edited: Arc<Edited>, runs: Arc<SessionRuns>) -> Self {
        Self { outcome: Arc::new(outcome), edited, runs, module: Once::new() }
    }
    /// The request that a new run would have.
    pub fn request(&self, py: Python<'_>) -> PyResult<Request> {
        Ok(Request {
            before: self.edited.program(py)?,
            filename: self.edited.filename.clone(),
            options: self.outcome.options.clone(),
        })
    }
    /// The completed program, which is made at the first call.
    pub fn module(&self, py: Python<'_>) -> PyResult<Py<PyModule>> {
        let make = || {
            let filename = &self.edited.filename;
            let program = self.outcome.complete(py, filename, true)?;
            Py::new(py, PyModule::new(program, filename.clone()))
        };
        self.module.get(py, "the completed program of this result", make)
    }
    /// The outcome, if shardings of the completed program can be read from it.
    pub fn readable(&self) -> Option<&Arc<Outcome>> {
        let outcome = &self.outcome;
        outcome.prepared.is_readable(&outcome.replayed).then_some(outcome)
    }
    /// What [`Request::complete_as_xla`] returns, replayed; `None` if that is not possible. With `keep_ports` arguments and
    /// results are placed as in this result.
    pub fn as_xla(&self, py: Python<'_>, keep_ports: bool) -> PyResult<Option<Py<PyTuple>>> {
        let Some(given) = self.readable() else { return Ok(None) };
        let (edited, runs) = (&self.edited, &self.runs.as_xla);
        let options = RunOptions { legalize_chlo: true, ..given.options.clone() };
        let program = || {
            let given = edited.program(py)?;
            room_for_copy(py, &given)?;
            let (program, originals) = as_in_xla(&given, &registry().legalizing_chlo());
            Ok((program, Some(Arc::new(originals))))
        };
        let annotated = Annotated::new(edited, &program);
        let Some(mut found) = runs.outcome(py, &annotated, &options)? else { return Ok(None) };
        if !found.prepared.is_readable(&found.replayed) {
            return Ok(None);
        }
        let wanted = (&*given.prepared, &*given.replayed);
        if keep_ports && !found.prepared.have_same_ports(&found.replayed, wanted, has_same_axes) {
            let wanted = given.prepared.completed_ports(&given.replayed);
            let Some(placed) = runs.placed(py, &found, &wanted)? else { return Ok(None) };
            found = placed;
        }
        let Some(originals) = found.originals.clone() else { return Ok(None) };
        let mut program = found.complete(py, &edited.filename, false)?;
        let mut originals = Originals::clone(&originals);
        hlo_captures::release(&mut program, &mut originals);
        let module = Py::new(py, PyModule::new(program, edited.filename.clone()))?;
        let made = (module, Py::new(py, PyOriginals(Arc::new(originals)))?);
        Ok(Some(made.into_pyobject(py)?.unbind()))
    }
}
