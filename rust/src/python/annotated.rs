//! The program behind `shardcore.Session` with the current annotations.

use super::completion::Request;
use super::edited::{Edit, Edited};
use super::module::PyModule;
use super::replay::Replay;
use super::result::PyPropagationResult;
use super::run_options::RunOptions;
use super::session_runs::SessionRuns;
use crate::ir::Program;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// The program of a session with annotations; see the stub.
#[pyclass(name = "AnnotatedProgram", module = "shardcore", frozen)]
pub struct PyAnnotatedProgram {
    edited: Arc<Edited>,
    runs: Arc<SessionRuns>,
}

impl PyAnnotatedProgram {
    /// `program` with `edits`, which are checked.
    pub(super) fn new(
        py: Python<'_>,
        program: Arc<Program>,
        filename: Arc<str>,
        edits: Vec<Edit>,
        runs: Arc<SessionRuns>,
    ) -> PyResult<Self> {
        let edited = Arc::new(Edited::new(py, program, filename, edits, &runs.checked)?);
        Ok(Self { edited, runs })
    }
}

#[pymethods]
impl PyAnnotatedProgram {
    /// The program.
    fn module(&self, py: Python<'_>) -> PyResult<PyModule> {
        let program = self.edited.own_program(py)?;
        Ok(PyModule::new(program, self.edited.filename.clone()))
    }
    /// The completed shardings.
    #[pyo3(signature = (**options),
           text_signature = "($self, *, up_to_priority=None, keep_non_divisible_on_io=False, keep_sub_axes_on_io=False, \
                             dedup_functions_fully=False, legalize_chlo=False, strategy=None, max_ops=None)")]
    fn propagate(
        &self,
        py: Python<'_>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyPropagationResult> {
        let options = RunOptions::read("Session", options)?;
        let (edited, runs) = (&self.edited, &self.runs);
        let replay = Replay::new(options.clone(), edited.clone(), runs.clone());
        // A replay is deferred until more than costs is asked for, which have their own. A run is
        // not, since it may fail.
        if replay.has_run() || replay.outcome(py)?.is_some() {
            return Ok(PyPropagationResult::replayed(replay));
        }
        let (before, filename) = (edited.program(py)?, edited.filename.clone());
        Request { before, filename, options }.result(py, None)
    }
}
