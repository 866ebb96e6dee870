//! `shardcore.AxisRef`.
//!
//! In Python an axis ref has the name of its axis and no mesh, so that `AxisRef("x")` is valid by
//! itself; a [`super::sharding::PyTensorSharding`] resolves it in a mesh.

use super::arguments::saturated;
use super::errors::{raise, raise_unlocated};
use super::mesh::{quoted, PyMesh};
use crate::attribute::{parse_free_axis, unknown_axis, write_free_axis};
use crate::axis::{AxisRef, SubAxis};
use crate::error::{Code, Diagnostic};
use crate::index::AxisId;
use crate::layout::stride;
use crate::mesh::Mesh;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};
use std::cmp::Ordering;
use std::sync::Arc;

/// An axis ref by name; see the stub.
#[pyclass(name = "AxisRef", module = "shardcore", frozen, eq, ord, hash, skip_from_py_object)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PyAxisRef {
    pub(super) name: Arc<str>,
    pub(super) sub: Option<SubAxis>,
}

impl PyAxisRef {
    /// The ref for `axis` of `mesh`.
    pub(super) fn from_axis(axis: AxisRef, mesh: &Mesh) -> Self {
        Self { name: mesh.axis_name(axis.axis).into(), sub: axis.sub }
    }
    /// Converts `item`: an `AxisRef`, or the name of a full axis.
    pub(super) fn from_item(item: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(axis) = item.cast::<Self>() {
            return Ok(axis.get().clone());
        }
        if let Ok(name) = item.cast::<PyString>() {
            return Ok(Self { name: name.to_str()?.into(), sub: None });
        }
        let kind = item.get_type().qualname()?;
        Err(PyTypeError::new_err(format!("an axis is an AxisRef or a name, not {kind}")))
    }
    /// The ref as an axis of `mesh`.
    pub(super) fn resolve(&self, mesh: &Mesh) -> Result<AxisRef, Diagnostic> {
        match mesh.axis_by_name(&self.name) {
            Some(axis) => Ok(AxisRef { axis, sub: self.sub }),
            None => Err(unknown_axis(&self.name, mesh)),
        }
    }
    /// The ref as an axis without a mesh; for comparing two refs of one axis.
    fn alone(&self) -> AxisRef {
        AxisRef { axis: AxisId::new(0), sub: self.sub }
    }
    /// Applies `part` to this ref and `other`; `None` unless both are of one axis.
    fn part(
        &self,
        other: &Self,
        part: impl Fn(AxisRef, AxisRef) -> Option<AxisRef>,
    ) -> Option<Self> {
        if self.name != other.name {
            return None;
        }
        let part = part(self.alone(), other.alone())?;
        Some(Self { name: self.name.clone(), sub: part.sub })
    }
    /// The ref, if it is valid for some axis size.
    fn checked(py: Python<'_>, name: &str, sub: Option<SubAxis>) -> PyResult<Self> {
        let axis = Self { name: name.into(), sub };
        let Some(SubAxis { pre_size, size }) = sub else { return Ok(axis) };
        let text = axis.__str__();
        let message = if pre_size < 1 || size < 2 {
            format!("sub-axis {text} must have a pre-size of at least 1 and a size of at least 2")
        } else if pre_size.checked_mul(size).is_none() {
            format!("sub-axis {text} is larger than any axis")
        } else {
            return Ok(axis);
        };
        Err(raise_unlocated(py, vec![Diagnostic::new(Code::InvalidSubAxis, message)]))
    }
    fn size_over(&self, mesh: &PyMesh, py: Python<'_>) -> PyResult<i64> {
        let resolved = self.resolve(&mesh.mesh);
        let axis = resolved.map_err(|problem| raise_unlocated(py, vec![problem]))?;
        Ok(axis.size(&mesh.mesh))
    }
}

/// The order by name, then by the major end of the part: `"a":(1)k` before `"a"` before `"a":(m)k`.
impl PartialOrd for PyAxisRef {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PyAxisRef {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |axis: &Self| axis.sub.map_or((1, i64::MAX), |sub| (sub.pre_size, sub.size));
        self.name.cmp(&other.name).then_with(|| key(self).cmp(&key(other)))
    }
}

#[pymethods]
impl PyAxisRef {
    #[new]
    #[pyo3(signature = (name, pre_size = None, size = None))]
    fn new(
        py: Python<'_>,
        name: &str,
        pre_size: Option<&Bound<'_, PyAny>>,
        size: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let sub = match (pre_size, size) {
            (None, None) => None,
            (Some(pre_size), Some(size)) => {
                Some(SubAxis { pre_size: saturated(pre_size)?, size: saturated(size)? })
            }
            _ => return Err(PyTypeError::new_err("a sub-axis has both a pre_size and a size")),
        };
        Self::checked(py, name, sub)
    }

    #[staticmethod]
    fn parse(py: Python<'_>, text: &str) -> PyResult<Self> {
        let parsed = parse_free_axis(text, 0);
        let (name, sub) = parsed.map_err(|error| raise(py, &error, text, "<axis>"))?;
        Self::checked(py, &name, sub)
    }

    #[getter]
    fn name(&self) -> &str {
        &self.name
    }
    #[getter]
    fn pre_size(&self) -> Option<i64> {
        self.sub.map(|sub| sub.pre_size)
    }
    #[getter]
    fn size(&self) -> Option<i64> {
        self.sub.map(|sub| sub.size)
    }
    #[getter]
    fn is_full(&self) -> bool {
        self.sub.is_none()
    }
    fn size_in(&self, py: Python<'_>, mesh: &PyMesh) -> PyResult<i64> {
        self.size_over(mesh, py)
    }
    fn contains(&self, other: &Self) -> bool {
        self.name == other.name && self.alone().contains(other.alone())
    }
    fn overlaps(&self, other: &Self) -> bool {
        self.name == other.name && self.alone().overlaps(other.alone())
    }
    fn overlap(&self, other: &Self) -> Option<Self> {
        self.part(other, AxisRef::overlap)
    }
    fn prefix_without_overlap(&self, other: &Self) -> Option<Self> {
        if self.name != other.name {
            return Some(self.clone());
        }
        self.part(other, AxisRef::prefix_without_overlap)
    }
    fn suffix_without_overlap(
        &self,
        py: Python<'_>,
        other: &Self,
        mesh: &PyMesh,
    ) -> PyResult<Option<Self>> {
        let resolve = |axis: &Self| {
            axis.resolve(&mesh.mesh).map_err(|problem| raise_unlocated(py, vec![problem]))
        };
        let suffix = resolve(self)?.suffix_without_overlap(resolve(other)?, &mesh.mesh);
        Ok(suffix.map(|suffix| Self { name: self.name.clone(), sub: suffix.sub }))
    }
    fn stride_in(&self, py: Python<'_>, mesh: &PyMesh) -> PyResult<i64> {
        let resolved = self.resolve(&mesh.mesh);
        let axis = resolved.map_err(|problem| raise_unlocated(py, vec![problem]))?;
        Ok(stride(axis, &mesh.mesh))
    }
    fn can_coexist(&self, other: &Self) -> bool {
        self.name != other.name || self.alone().can_coexist(other.alone())
    }

    pub(super) fn __str__(&self) -> String {
        let mut out = String::new();
        write_free_axis(&mut out, &self.name, self.sub);
        out
    }
    pub(super) fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = quoted(py, &self.name)?;
        Ok(match self.sub {
            None => format!("AxisRef({name})"),
            Some(sub) => format!("AxisRef({name}, pre_size={}, size={})", sub.pre_size, sub.size),
        })
    }
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> (Bound<'py, PyType>, (String, Option<i64>, Option<i64>)) {
        let axis = slf.get();
        (slf.get_type(), (axis.name.to_string(), axis.pre_size(), axis.size()))
    }
}
