//! `shardcore.PassManager`.

use super::arguments::{Items, Limit};
use super::errors::raise;
use super::module::PyModule;
use super::rule_registry::registry;
use super::shardy::version;
use super::work::{limits, run};
use crate::ir::Program;
use crate::module::Step;
use crate::pipeline::Pipeline;
use crate::shardy::Version;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// The text of a pipeline.
enum Text {
    /// `builtin.module(...)`.
    Pipeline(String),
    /// Flags as `sdy_opt` takes them.
    Flags(Vec<String>),
}

impl Text {
    /// The pipeline of `shardy`.
    fn parse(&self, py: Python<'_>, shardy: Version) -> PyResult<Arc<Pipeline>> {
        let parsed = match self {
            Self::Pipeline(text) => {
                Pipeline::parse(text, shardy).map_err(|error| raise(py, &error, text, "<pipeline>"))
            }
            Self::Flags(flags) => Pipeline::from_flags(flags, shardy)
                .map_err(|error| raise(py, &error, &flags.join(" "), "<flags>")),
        };
        parsed.map(Arc::new)
    }
}

/// A textual pipeline, as MLIR's `PassManager`.
#[pyclass(name = "PassManager", module = "shardcore", frozen)]
pub struct PyPassManager {
    text: Text,
    /// Whether the passes are those of the module's version.
    follows_module: bool,
    pipeline: Arc<Pipeline>,
    verifies_each: AtomicBool,
}

impl PyPassManager {
    fn new(py: Python<'_>, text: Text, shardy: Option<&str>) -> PyResult<Self> {
        let (follows_module, shardy) = (shardy.is_none(), version(py, shardy)?);
        let pipeline = match text.parse(py, shardy) {
            // The module's version may have passes that this version lacks.
            Err(error) if follows_module => {
                let others = Version::ALL.into_iter().filter(|&other| other != shardy);
                let parsed = others.rev().find_map(|other| text.parse(py, other).ok());
                parsed.ok_or(error)?
            }
            parsed => parsed?,
        };
        Ok(Self { text, follows_module, pipeline, verifies_each: AtomicBool::new(false) })
    }
    /// The pipeline to run on `program`.
    fn pipeline_for(&self, py: Python<'_>, program: &Program) -> PyResult<Arc<Pipeline>> {
        if !self.follows_module || program.shardy() == self.pipeline.shardy() {
            return Ok(self.pipeline.clone());
        }
        self.text.parse(py, program.shardy())
    }
}

#[pymethods]
impl PyPassManager {
    #[staticmethod]
    #[pyo3(signature = (pipeline, *, shardy = None))]
    fn parse(py: Python<'_>, pipeline: String, shardy: Option<&str>) -> PyResult<Self> {
        Self::new(py, Text::Pipeline(pipeline), shardy)
    }
    #[staticmethod]
    #[pyo3(signature = (flags, *, shardy = None))]
    fn from_flags(py: Python<'_>, flags: Items<String>, shardy: Option<&str>) -> PyResult<Self> {
        Self::new(py, Text::Flags(flags.to_vec()), shardy)
    }
    #[staticmethod]
    #[pyo3(signature = (*, shardy = None))]
    fn pass_names(py: Python<'_>, shardy: Option<&str>) -> PyResult<Vec<&'static str>> {
        Ok(Pipeline::pass_names(version(py, shardy)?))
    }
    /// The version of Shardy of the passes; `None` for that of the module.
    #[getter]
    fn shardy(&self) -> Option<&'static str> {
        (!self.follows_module).then(|| self.pipeline.shardy().name())
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
                // A run has failed, so the program has to be rebuilt.
                None => drop(module.program(py)?),
            }
        };
        let rules = registry().recording();
        let pipeline = self.pipeline_for(py, &program)?;
        let step = Step { pipeline, rules: rules.clone(), limits };
        let checked = (limits, self.verifies_each.load(Ordering::Relaxed));
        run(py, &step.pipeline, rules, &mut program, &module.filename, checked, progress.as_ref())?;
        at_work.finish(program, step).map_err(refused)
    }
    fn __str__(&self) -> String {
        self.pipeline.to_string()
    }
    fn __repr__(&self) -> String {
        format!("PassManager.parse({:?})", self.pipeline.to_string())
    }
}
