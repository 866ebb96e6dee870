//! Runs pipelines and other work of the engine without the GIL.

use super::errors::{raise, raise_unlocated};
use super::user_code;
use crate::context::{Context, Limits, Progress};
use crate::error::Result;
use crate::ir::Program;
use crate::pipeline::Pipeline;
use crate::rules::Registry;
use pyo3::prelude::*;

/// Runs `pipeline` on `program` with `rules`, without the GIL and within limits, and verifies the
/// program after each pass if requested; `progress` is called with `(what, fraction)`.
pub(super) fn run(
    py: Python<'_>,
    pipeline: &Pipeline,
    rules: Registry,
    program: &mut Program,
    filename: &str,
    (limits, verifies_each): (Limits, bool),
    progress: Option<&Py<PyAny>>,
) -> PyResult<()> {
    install_edges(py, &rules, program, filename)?;
    let outcome = work(py, rules, limits, progress, |context| {
        context.verifies_each = verifies_each;
        pipeline.run(program, context)
    })?;
    outcome.map_err(|error| raise(py, &error, program.text().source(), filename))
}

/// Adds users' data-flow edges to `program`, which is called `filename` in errors.
pub(super) fn install_edges(
    py: Python<'_>,
    rules: &Registry,
    program: &mut Program,
    filename: &str,
) -> PyResult<()> {
    if !rules.has_edges() && !program.has_edge_specs() {
        return Ok(());
    }
    user_code::check_depth().map_err(|error| raise_unlocated(py, error.diagnostics))?;
    let installed = py.detach(|| rules.install_edges(program));
    installed.map_err(|error| raise(py, &error, program.text().source(), filename))
}

/// Runs `work` without the GIL, in a context with `rules`; checks for signals, and calls `progress`
/// with `(what, fraction)`. Fails with the exception that a signal handler or `progress` raises.
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

/// The limits, with `max_ops` if it is given.
pub(super) fn limits(max_ops: Option<usize>) -> Limits {
    max_ops.map_or_else(Limits::default, |max_ops| Limits { max_ops })
}
