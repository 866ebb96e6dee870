//! `shardcore.DimSharding`.

use super::arguments::{items, Int, MAX_ITEMS};
use super::axis::PyAxisRef;
use super::errors::{raise, raise_unlocated};
use super::mesh::quoted;
use crate::attribute::{verify_sharding, write_dim, StandaloneScope};
use crate::axis::AxisRef;
use crate::error::Diagnostic;
use crate::index::MeshId;
use crate::mesh::Mesh;
use crate::sharding::{DimSharding, ReductionOp, TensorSharding};
use crate::shardy::Version;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};
use std::fmt::Write as _;

/// The sharding of one dim, by axis names; see the stub.
#[pyclass(name = "DimSharding", module = "shardcore", frozen, eq, hash, skip_from_py_object)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PyDimSharding {
    pub(super) axes: Vec<PyAxisRef>,
    pub(super) is_closed: bool,
    pub(super) priority: Option<i64>,
}

impl PyDimSharding {
    pub(super) fn from_dim(dim: &DimSharding, mesh: &Mesh) -> Self {
        let axes = dim.axes.iter().map(|&axis| PyAxisRef::from_axis(axis, mesh)).collect();
        Self { axes, is_closed: dim.is_closed, priority: dim.priority }
    }
    /// Converts `item`: a `DimSharding`, `None`, an axis, or axes.
    pub(super) fn from_item(item: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(dim) = item.cast::<Self>() {
            return Ok(dim.get().clone());
        }
        Ok(Self { axes: axes_from(item)?, is_closed: true, priority: None })
    }
    /// A mesh of unknown sizes with the axes of these dims and lists.
    pub(super) fn mesh_of_names<'a>(axes: impl Iterator<Item = &'a PyAxisRef>) -> Mesh {
        Mesh::of_names(axes.map(|axis| &*axis.name))
    }
    pub(super) fn resolve(&self, mesh: &Mesh, problems: &mut Vec<Diagnostic>) -> DimSharding {
        let axes = resolve_all(&self.axes, mesh, problems);
        DimSharding { axes, is_closed: self.is_closed, priority: self.priority }
    }
}

/// Converts `item`, `None`, an axis, or axes, to axes.
pub(super) fn axes_from(item: &Bound<'_, PyAny>) -> PyResult<Vec<PyAxisRef>> {
    if item.is_none() {
        return Ok(Vec::new());
    }
    if item.is_instance_of::<PyString>() || item.is_instance_of::<PyAxisRef>() {
        return Ok(vec![PyAxisRef::from_item(item)?]);
    }
    items(item, "axes", MAX_ITEMS, PyAxisRef::from_item)
}

/// Resolves `axes` in `mesh`; errors are added to `problems`.
pub(super) fn resolve_all(
    axes: &[PyAxisRef],
    mesh: &Mesh,
    problems: &mut Vec<Diagnostic>,
) -> Vec<AxisRef> {
    let resolved = axes.iter().map(|axis| axis.resolve(mesh));
    resolved.filter_map(|axis| axis.map_err(|problem| problems.push(problem)).ok()).collect()
}

#[pymethods]
impl PyDimSharding {
    #[new]
    #[pyo3(signature = (axes = None, is_closed = true, priority = None))]
    fn new(
        py: Python<'_>,
        axes: Option<&Bound<'_, PyAny>>,
        is_closed: bool,
        priority: Option<Int<i64>>,
    ) -> PyResult<Self> {
        let priority = priority.map(|Int(priority)| priority);
        let axes = axes.map_or_else(|| Ok(Vec::new()), axes_from)?;
        let dim = Self { axes, is_closed, priority };
        // The checks that do not need the mesh.
        let names = Self::mesh_of_names(dim.axes.iter());
        let sharding = TensorSharding {
            mesh: MeshId::NONE,
            dims: vec![dim.resolve(&names, &mut Vec::new())],
            replicated: Vec::new(),
            unreduced: Vec::new(),
            reduction_op: ReductionOp::Sum,
        };
        let problems = verify_sharding(&sharding, &names, None, Version::NEWEST);
        if problems.is_empty() {
            return Ok(dim);
        }
        Err(raise_unlocated(py, problems))
    }
    #[staticmethod]
    fn parse(py: Python<'_>, text: &str) -> PyResult<Self> {
        let names = StandaloneScope::mesh_of_names(text);
        let parsed = crate::attribute::parse_dim(text, 0, &names);
        let dim = parsed.map_err(|error| raise(py, &error, text, "<dim sharding>"))?;
        Ok(Self::from_dim(&dim, &names))
    }
    #[getter]
    fn axes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.axes.iter().cloned())
    }
    #[getter]
    fn is_closed(&self) -> bool {
        self.is_closed
    }
    #[getter]
    fn is_open(&self) -> bool {
        !self.is_closed
    }
    #[getter]
    fn priority(&self) -> Option<i64> {
        self.priority
    }
    fn __str__(&self) -> String {
        let names = Self::mesh_of_names(self.axes.iter());
        let mut out = String::new();
        write_dim(&mut out, &self.resolve(&names, &mut Vec::new()), &names);
        out
    }
    pub(super) fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut out = format!("DimSharding({}", list_repr(py, &self.axes)?);
        if !self.is_closed {
            out += ", is_closed=False";
        }
        if let Some(priority) = self.priority {
            let _ = write!(out, ", priority={priority}");
        }
        Ok(out + ")")
    }
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> (Bound<'py, PyType>, (Vec<PyAxisRef>, bool, Option<i64>)) {
        let dim = slf.get();
        (slf.get_type(), (dim.axes.clone(), dim.is_closed, dim.priority))
    }
}

/// Axes as the text of a Python list.
pub(super) fn list_repr(py: Python<'_>, axes: &[PyAxisRef]) -> PyResult<String> {
    let items = axes.iter().map(|axis| match axis.sub {
        None => quoted(py, &axis.name),
        Some(_) => axis.__repr__(py),
    });
    Ok(format!("[{}]", items.collect::<PyResult<Vec<_>>>()?.join(", ")))
}
