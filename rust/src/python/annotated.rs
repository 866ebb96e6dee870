//! The program behind `shardcore.Session` with the annotations of now on it.

use super::arguments::Limit;
use super::completion::{strategy_named, Request};
use super::edited::{Edit, Edited};
use super::module::PyModule;
use super::replay::Replay;
use super::result::PyPropagationResult;
use super::room::copy;
use super::session_runs::{Annotated, SessionRuns};
use super::work::RunOptions;
use crate::ir::Program;
use crate::pipeline::Completion;
use crate::propagation::Strategy;
use pyo3::prelude::*;
use std::sync::Arc;

/// A program with the annotations of a session on it; see the stub.
#[pyclass(name = "AnnotatedProgram", module = "shardcore", frozen)]
pub struct PyAnnotatedProgram {
    edited: Arc<Edited>,
    runs: Arc<SessionRuns>,
}

impl PyAnnotatedProgram {
    /// `program` with `edits` on it, which are checked.
    pub(super) fn new(
        py: Python<'_>,
        program: Arc<Program>,
        filename: Arc<str>,
        edits: Vec<Edit>,
        runs: Arc<SessionRuns>,
    ) -> PyResult<Self> {
        let edited = Arc::new(Edited::new(py, program, filename, edits)?);
        Ok(Self { edited, runs })
    }
}

#[pymethods]
impl PyAnnotatedProgram {
    /// The program.
    fn module(&self, py: Python<'_>) -> PyResult<PyModule> {
        let program = copy(py, &*self.edited.program(py)?)?;
        Ok(PyModule::new(program, self.edited.filename.clone()))
    }
    /// The completed shardings.
    #[pyo3(signature = (*, up_to_priority = None, keep_non_divisible_on_io = false, keep_sub_axes_on_io = false,
                        dedup_functions_fully = false, legalize_chlo = false, strategy = None, max_ops = None))]
    #[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools)] // They are keywords in Python.
    fn propagate(
        &self,
        py: Python<'_>,
        up_to_priority: Option<Limit>,
        keep_non_divisible_on_io: bool,
        keep_sub_axes_on_io: bool,
        dedup_functions_fully: bool,
        legalize_chlo: bool,
        strategy: Option<&str>,
        max_ops: Option<Limit>,
    ) -> PyResult<PyPropagationResult> {
        let how = Completion {
            dedup_functions_fully,
            up_to_priority: up_to_priority.map(|priority| priority.0),
            keep_non_divisible_on_io: keep_non_divisible_on_io || keep_sub_axes_on_io,
            strategy: strategy.map_or(Ok(Strategy::default()), strategy_named)?,
            collectives: false,
        };
        let options = RunOptions { how, legalize_chlo, max_ops: max_ops.map(Limit::count) };
        let edited = &self.edited;
        let program = || Ok((copy(py, &*edited.program(py)?)?, None));
        let annotated = Annotated::new(edited, &program);
        if let Some(outcome) = self.runs.given.outcome(py, &annotated, &options)? {
            let (edited, runs) = (edited.clone(), self.runs.clone());
            return Ok(PyPropagationResult::replayed(Replay::new(outcome, edited, runs)));
        }
        let (before, filename) = (edited.program(py)?, edited.filename.clone());
        Request { before, filename, options }.result(py, None)
    }
}
