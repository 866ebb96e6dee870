//! `shardcore.PassManager`; runs pipelines without the GIL.

use super::arguments::{Items, Limit};
use super::errors::{raise, raise_unlocated};
use super::module::PyModule;
use super::rules::registry;
use super::user_code;
use crate::context::{Context, Limits, Progress};
use crate::error::Result;
use crate::ir::Program;
use crate::module::Step;
use crate::pipeline::Pipeline;
use crate::rules::Registry;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Runs `pipeline` on `program` with `rules` and without the GIL, within limits, and verifies what each pass leaves
/// if told so; `progress` is called with `(what, fraction)`.
pub(super) fn run(
    py: Python<'_>,
    pipeline: &Pipeline,
    rules: Registry,
    program: &mut Program,
    filename: &str,
    (limits, verifies_each): (Limits, bool),
    progress: Option<&Py<PyAny>>,
) -> PyResult<()> {
    rules.install_edges(program);
    let outcome = work(py, rules, limits, progress, |context| {
        context.verifies_each = verifies_each;
        pipeline.run(program, context)
    })?;
    outcome.map_err(|error| raise(py, &error, program.text().source(), filename))
}

/// Runs `work` without the GIL, in a context of `rules`; checks for signals, and calls `progress` with
/// `(what, fraction)`. Fails with the exception that a signal handler or `progress` raises.
pub(super) fn work<T: Send>(
    py: Python<'_>,
    mut rules: Registry,
    limits: Limits,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&mut Context<'_>) -> Result<T> + Send,
) -> PyResult<Result<T>> {
    user_code::check_depth().map_err(|error| raise_unlocated(py, error.diagnostics))?;
    let mut raised: Option<PyErr> = None;
    let outcome = py.detach(|| {
        let mut report = |state: Progress<'_>| {
            let called = user_code::attach(|py| {
                py.check_signals()?;
                if let Some(progress) = progress {
                    progress.call1(py, (state.pass, state.fraction))?;
                }
                Ok(())
            });
            called.map_err(|error| raised = Some(error)).is_ok()
        };
        work(&mut Context::new(&mut rules, limits, &mut report))
    });
    match raised {
        Some(error) => Err(error),
        None => Ok(outcome),
    }
}

/// A textual pipeline, as MLIR's `PassManager`.
#[pyclass(name = "PassManager", module = "shardcore", frozen)]
pub struct PyPassManager {
    pipeline: Arc<Pipeline>,
    verifies_each: AtomicBool,
}

#[pymethods]
impl PyPassManager {
    #[staticmethod]
    fn parse(py: Python<'_>, pipeline: &str) -> PyResult<Self> {
        let parsed = Pipeline::parse(pipeline);
        let pipeline = parsed.map_err(|error| raise(py, &error, pipeline, "<pipeline>"))?;
        Ok(Self { pipeline: Arc::new(pipeline), verifies_each: AtomicBool::new(false) })
    }
    #[staticmethod]
    #[pyo3(signature = (flags))]
    fn from_flags(py: Python<'_>, flags: Items<String>) -> PyResult<Self> {
        let parsed = Pipeline::from_flags(&flags);
        let pipeline = parsed.map_err(|error| raise(py, &error, &flags.join(" "), "<flags>"))?;
        Ok(Self { pipeline: Arc::new(pipeline), verifies_each: AtomicBool::new(false) })
    }
    #[staticmethod]
    fn pass_names() -> Vec<&'static str> {
        Pipeline::pass_names()
    }
    #[pyo3(signature = (enable, /))]
    fn enable_verifier(&self, enable: bool) {
        self.verifies_each.store(enable, Ordering::Relaxed);
    }
    #[pyo3(signature = (module, *, max_ops = None, progress = None))]
    fn run(
        &self,
        py: Python<'_>,
        module: &Bound<'_, PyModule>,
        max_ops: Option<Limit>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let limits = limits(max_ops.map(Limit::count));
        let module = module.get();
        let busy = |error| raise(py, &error, "", "");
        let at_work = module.held.begin().map_err(busy)?;
        let mut program = loop {
            match at_work.take() {
                Some(program) => break program,
                // A run has failed: the program has to be rebuilt.
                None => drop(module.program(py)?),
            }
        };
        let rules = registry().recording();
        let step = Step { pipeline: self.pipeline.clone(), rules: rules.clone(), limits };
        let checked = (limits, self.verifies_each.load(Ordering::Relaxed));
        run(py, &self.pipeline, rules, &mut program, &module.filename, checked, progress.as_ref())?;
        at_work.finish(program, step).map_err(busy)
    }
    fn __str__(&self) -> String {
        self.pipeline.to_string()
    }
    fn __repr__(&self) -> String {
        format!("PassManager.parse({:?})", self.pipeline.to_string())
    }
}

/// The limits with `max_ops`, where given.
pub(super) fn limits(max_ops: Option<usize>) -> Limits {
    max_ops.map_or_else(Limits::default, |max_ops| Limits { max_ops })
}
