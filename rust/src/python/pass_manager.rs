//! `shardcore.PassManager`.

use super::arguments::{Items, Limit};
use super::errors::raise;
use super::module::PyModule;
use super::rules::registry;
use super::work::{limits, run};
use crate::module::Step;
use crate::pipeline::Pipeline;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

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
        let refused = |error| raise(py, &error, "", "");
        let at_work = module.held.begin().map_err(refused)?;
        let mut program = loop {
            match at_work.take().map_err(refused)? {
                Some(program) => break program,
                // A run has failed: the program has to be rebuilt.
                None => drop(module.program(py)?),
            }
        };
        let rules = registry().recording();
        let step = Step { pipeline: self.pipeline.clone(), rules: rules.clone(), limits };
        let checked = (limits, self.verifies_each.load(Ordering::Relaxed));
        run(py, &self.pipeline, rules, &mut program, &module.filename, checked, progress.as_ref())?;
        at_work.finish(program, step).map_err(refused)
    }
    fn __str__(&self) -> String {
        self.pipeline.to_string()
    }
    fn __repr__(&self) -> String {
        format!("PassManager.parse({:?})", self.pipeline.to_string())
    }
}
