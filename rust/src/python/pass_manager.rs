//! `shardcore.PassManager`, and how a pipeline is run without the GIL.

use super::errors::raise;
use super::held::Step;
use super::module::PyModule;
use super::rules::registry;
use crate::context::{Context, Limits, Progress};
use crate::ir::Program;
use crate::pipeline::Pipeline;
use crate::rules::Registry;
use pyo3::prelude::*;
use std::sync::Arc;

/// Runs `pipeline` on `program` with `rules` and without the GIL; `progress` is called with `(what, fraction)`.
pub(super) fn run(
    py: Python<'_>,
    pipeline: &Pipeline,
    mut rules: Registry,
    program: &mut Program,
    filename: &str,
    limits: Limits,
    progress: Option<&Py<PyAny>>,
) -> PyResult<()> {
    let mut raised: Option<PyErr> = None;
    let outcome = py.detach(|| {
        let mut report = |state: Progress<'_>| {
            let called = Python::attach(|py| {
                py.check_signals()?;
                if let Some(progress) = progress {
                    progress.call1(py, (state.pass, state.fraction))?;
                }
                Ok(())
            });
            called.map_err(|error| raised = Some(error)).is_ok()
        };
        rules.install_edges(program);
        let mut context = Context::new(&mut rules, limits, &mut report);
        pipeline.run(program, &mut context)
    });
    if let Some(error) = raised {
        return Err(error);
    }
    outcome.map_err(|error| raise(py, &error, program.text().source(), filename))
}

/// A textual pipeline, as MLIR's `PassManager`.
#[pyclass(name = "PassManager", module = "shardcore", frozen)]
pub struct PyPassManager {
    pipeline: Arc<Pipeline>,
}

#[pymethods]
impl PyPassManager {
    #[staticmethod]
    fn parse(py: Python<'_>, pipeline: &str) -> PyResult<Self> {
        let parsed = Pipeline::parse(pipeline);
        let pipeline = parsed.map_err(|error| raise(py, &error, pipeline, "<pipeline>"))?;
        Ok(Self { pipeline: Arc::new(pipeline) })
    }
    #[staticmethod]
    #[pyo3(signature = (flags))]
    fn from_flags(py: Python<'_>, flags: Vec<String>) -> PyResult<Self> {
        let parsed = Pipeline::from_flags(&flags);
        let pipeline = parsed.map_err(|error| raise(py, &error, &flags.join(" "), "<flags>"))?;
        Ok(Self { pipeline: Arc::new(pipeline) })
    }
    #[staticmethod]
    fn pass_names() -> Vec<&'static str> {
        Pipeline::pass_names()
    }
    #[pyo3(signature = (module, *, max_ops = None, progress = None))]
    fn run(
        &self,
        py: Python<'_>,
        module: &Bound<'_, PyModule>,
        max_ops: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let limits = limits(max_ops);
        // A failed run leaves the module as it was: nothing the user had is lost. Meanwhile the
        // callback and other threads may look at it.
        let (mut program, filename) = {
            let mut module = module.try_borrow_mut()?;
            (module.program.take(), module.filename.clone())
        };
        let rules = registry();
        let step = Step { pipeline: self.pipeline.clone(), rules: rules.clone(), limits };
        run(py, &self.pipeline, rules, &mut program, &filename, limits, progress.as_ref())?;
        module.try_borrow_mut()?.put_back(program, step);
        Ok(())
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
