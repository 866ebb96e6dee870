//! `shardcore.Result`: what `module.propagate()` returns.

use super::module::{totals_dict, PyModule};
use crate::ir::Program;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// What `module.propagate()` returns.
#[pyclass(name = "Result", module = "shardcore", frozen)]
pub struct PyPropagationResult {
    before: Arc<Program>,
    module: Py<PyModule>,
}

impl PyPropagationResult {
    /// The result for a program that was `before` and is now `module`.
    pub(super) fn new(before: Arc<Program>, module: Py<PyModule>) -> Self {
        Self { before, module }
    }
}

#[pymethods]
impl PyPropagationResult {
    #[getter]
    fn module(&self, py: Python<'_>) -> Py<PyModule> {
        self.module.clone_ref(py)
    }
    fn values(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.module.call_method0(py, "values")
    }
    fn __getitem__(&self, py: Python<'_>, key: Py<PyAny>) -> PyResult<Py<PyAny>> {
        self.module.call_method1(py, "__getitem__", (key,))
    }
    fn at(&self, py: Python<'_>, place: &str) -> PyResult<Py<PyAny>> {
        self.module.call_method1(py, "at", (place,))
    }
    fn arguments(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.module.call_method0(py, "arguments")
    }
    fn results(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.module.call_method0(py, "results")
    }
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("shardcore.report.html")?.call_method1("result_html", (slf,))
    }
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let after = self.module.borrow(py).program.clone();
        let (totals_before, totals_after) = py.detach(|| (self.before.totals(), after.totals()));
        let dict = PyDict::new(py);
        dict.set_item("ops", after.num_ops())?;
        dict.set_item("before", totals_dict(py, &self.before, &totals_before)?)?;
        dict.set_item("after", totals_dict(py, &after, &totals_after)?)?;
        Ok(dict)
    }
    fn __repr__(&self, py: Python<'_>) -> String {
        let totals = self.module.borrow(py).program.totals();
        format!(
            "<shardcore.Result: {} of {} values sharded, {} argument bytes per device>",
            totals.all.sharded_values, totals.all.values, totals.arguments.bytes_per_device
        )
    }
}
