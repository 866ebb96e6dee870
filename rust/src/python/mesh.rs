//! `shardcore.Mesh` and `shardcore.MeshAxis`.

use super::arguments::{
    first_items, items, pairs, saturated, too_many, Int, MAX_DEVICES, MAX_ITEMS,
};
use super::axis::PyAxisRef;
use super::dim_sharding::{axes_from, resolve_all};
use super::errors::{raise, raise_unlocated};
use super::mesh_devices::axes_and_ids;
use super::room::room_for_mesh;
use crate::attribute::{
    drop_default_device_ids, parse_mesh, print_mesh, verify_mesh, write_string,
};
use crate::axis::{push_or_merge, AxisRef};
use crate::error::{Code, Diagnostic};
use crate::group_nodes::group_nodes;
use crate::ir::Program;
use crate::mesh::{Mesh, MeshAxis};
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString, PyTuple, PyType};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The named meshes of `program` by name, in program order.
pub(super) fn named_meshes<'py>(
    py: Python<'py>,
    program: &Program,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for row in program.meshes().iter() {
        if let Some(symbol) = row.symbol {
            dict.set_item(program.str(symbol), PyMesh::from_verified(row.mesh.clone()))?;
        }
    }
    Ok(dict)
}

/// The `repr` of a Python string.
pub(super) fn quoted(py: Python<'_>, text: &str) -> PyResult<String> {
    Ok(PyString::new(py, text).repr()?.to_string())
}

/// One axis of a mesh; see the stub.
#[pyclass(name = "MeshAxis", module = "shardcore", frozen, eq, hash, skip_from_py_object)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PyMeshAxis {
    axis: MeshAxis,
}

#[pymethods]
impl PyMeshAxis {
    #[new]
    fn new(py: Python<'_>, name: String, size: &Bound<'_, PyAny>) -> PyResult<Self> {
        let axis = MeshAxis { name: name.into(), size: saturated(size)? };
        let problems = verify_mesh(&Mesh::new(vec![axis.clone()], Vec::new()));
        if problems.is_empty() {
            return Ok(Self { axis });
        }
        Err(raise_unlocated(py, problems))
    }
    #[getter]
    fn name(&self) -> &str {
        &self.axis.name
    }
    #[getter]
    fn size(&self) -> i64 {
        self.axis.size
    }
    fn __str__(&self) -> String {
        let mut out = String::new();
        write_string(&mut out, &self.axis.name);
        format!("{out}={}", self.axis.size)
    }
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("MeshAxis({}, {})", quoted(py, &self.axis.name)?, self.axis.size))
    }
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (String, i64)) {
        let axis = &slf.get().axis;
        (slf.get_type(), (axis.name.to_string(), axis.size))
    }
}

/// A mesh; see the stub.
#[pyclass(name = "Mesh", module = "shardcore", frozen, from_py_object)]
#[derive(Clone)]
pub struct PyMesh {
    pub(super) mesh: Arc<Mesh>,
}

impl PyMesh {
    /// A mesh that was verified before.
    pub(super) fn from_verified(mesh: Arc<Mesh>) -> Self {
        Self { mesh }
    }
    /// `axes` as axes of this mesh.
    fn axes_in(&self, py: Python<'_>, axes: &Bound<'_, PyAny>) -> PyResult<Vec<AxisRef>> {
        let mut problems = Vec::new();
        let resolved = resolve_all(&axes_from(axes)?, &self.mesh, &mut problems);
        for axis in &resolved {
            if !axis.is_part_of(&self.mesh) {
                let shown = PyAxisRef::from_axis(*axis, &self.mesh).__str__();
                let message = format!("{shown} is not a part of an axis of the mesh");
                problems.push(Diagnostic::new(Code::InvalidSubAxis, message));
            }
        }
        if problems.is_empty() {
            return Ok(resolved);
        }
        Err(raise_unlocated(py, problems))
    }
    /// The error that `device` is not in the mesh.
    pub(super) fn unknown_device(device: i64) -> PyErr {
        PyKeyError::new_err(format!("the mesh has no device {device}"))
    }
}

/// Converts `axes`: a mapping from name to size, or an iterable of pairs or of `MeshAxis` objects.
fn mesh_axes_from(axes: &Bound<'_, PyAny>) -> PyResult<Vec<MeshAxis>> {
    let pair = |item: &Bound<'_, PyAny>| -> PyResult<MeshAxis> {
        if let Ok(axis) = item.cast::<PyMeshAxis>() {
            return Ok(axis.get().axis.clone());
        }
        let (name, size): (String, Bound<'_, PyAny>) = item.extract().map_err(|_| {
            PyTypeError::new_err("an axis of a mesh is a MeshAxis or a pair (name, size)")
        })?;
        Ok(MeshAxis { name: name.into(), size: saturated(&size)? })
    };
    if let Ok(mapping) = axes.cast::<PyMapping>() {
        return pairs(mapping, "axes", MAX_ITEMS, pair);
    }
    items(axes, "axes", MAX_ITEMS, pair)
}

/// Converts `ids`, the device ids of a mesh with `axes`; reads at most one more than the mesh has
/// devices.
fn device_ids_from(ids: &Bound<'_, PyAny>, axes: &[MeshAxis]) -> PyResult<Vec<i64>> {
    let count = axes.iter().fold(1_i64, |count, axis| count.saturating_mul(axis.size.max(1)));
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count > MAX_DEVICES {
        return Err(too_many(ids.py(), "device ids", MAX_DEVICES));
    }
    first_items(ids, count + 1, saturated)
}

#[pymethods]
impl PyMesh {
    #[new]
    #[pyo3(signature = (axes = None, device_ids = None, *, devices = None, axis_names = None))]
    fn new(
        py: Python<'_>,
        axes: Option<&Bound<'_, PyAny>>,
        device_ids: Option<&Bound<'_, PyAny>>,
        devices: Option<&Bound<'_, PyAny>>,
        axis_names: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (axes, device_ids) = match (devices, axis_names) {
            (None, None) => {
                let axes = axes.map_or_else(|| Ok(Vec::new()), mesh_axes_from)?;
                let ids =
                    device_ids.map_or_else(|| Ok(Vec::new()), |ids| device_ids_from(ids, &axes));
                (axes, ids?)
            }
            (Some(devices), Some(names)) if axes.is_none() && device_ids.is_none() => {
                axes_and_ids(py, devices, names)?
            }
            _ => {
                let message = "a mesh is Mesh({\"x\": 2}), with device_ids or without, or \
                               Mesh(devices=..., axis_names=...)";
                return Err(PyTypeError::new_err(message));
            }
        };
        let mut mesh = Mesh::new(axes, device_ids);
        drop_default_device_ids(&mut mesh);
        room_for_mesh(py, &mesh)?;
        let problems = verify_mesh(&mesh);
        if problems.is_empty() {
            return Ok(Self { mesh: Arc::new(mesh) });
        }
        Err(raise_unlocated(py, problems))
    }

    #[staticmethod]
    fn parse(py: Python<'_>, text: &str) -> PyResult<Self> {
        let mesh = parse_mesh(text, 0).map_err(|error| raise(py, &error, text, "<mesh>"))?;
        Ok(Self { mesh: Arc::new(mesh) })
    }

    #[staticmethod]
    fn maximal(py: Python<'_>, device_id: Int<i64>) -> PyResult<Self> {
        let mesh = Mesh::new(Vec::new(), vec![device_id.0]);
        let problems = verify_mesh(&mesh);
        if problems.is_empty() {
            return Ok(Self { mesh: Arc::new(mesh) });
        }
        Err(raise_unlocated(py, problems))
    }

    #[getter]
    fn axes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.mesh.axes.iter().map(|axis| PyMeshAxis { axis: axis.clone() }))
    }
    #[getter]
    fn axis_names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.mesh.axes.iter().map(|axis| &*axis.name))
    }
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for axis in &self.mesh.axes {
            dict.set_item(&*axis.name, axis.size)?;
        }
        Ok(dict)
    }
    #[getter]
    fn device_ids<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        room_for_mesh(py, &self.mesh)?;
        let ids = &self.mesh.device_ids;
        (!ids.is_empty()).then(|| PyTuple::new(py, ids)).transpose()
    }
    #[getter]
    fn num_devices(&self) -> i64 {
        self.mesh.device_count()
    }
    #[getter]
    fn is_maximal(&self) -> bool {
        self.mesh.is_maximal()
    }
    #[getter]
    fn is_empty(&self) -> bool {
        self.mesh.is_empty()
    }
    fn axis_size(&self, py: Python<'_>, name: &str) -> PyResult<i64> {
        match self.mesh.axis_by_name(name) {
            Some(axis) => Ok(self.mesh.axis_size(axis)),
            None => {
                Err(raise_unlocated(py, vec![crate::attribute::unknown_axis(name, &self.mesh)]))
            }
        }
    }
    fn merge_axes(&self, py: Python<'_>, axes: &Bound<'_, PyAny>) -> PyResult<Vec<PyAxisRef>> {
        let mut merged: Vec<AxisRef> = Vec::new();
        for axis in self.axes_in(py, axes)? {
            push_or_merge(&mut merged, axis, &self.mesh);
        }
        Ok(merged.into_iter().map(|axis| PyAxisRef::from_axis(axis, &self.mesh)).collect())
    }
    fn group_nodes(
        &self,
        py: Python<'_>,
        axes: &Bound<'_, PyAny>,
        node_size: Int<i64>,
    ) -> PyResult<(i64, i64)> {
        let axes = self.axes_in(py, axes)?;
        let found = py.detach(|| group_nodes(&axes, &self.mesh, node_size.0));
        Ok((found.nodes, found.most_in_one))
    }
    fn coordinates<'py>(
        &self,
        py: Python<'py>,
        device_id: Int<i64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let place = self.mesh.position_of_device(device_id.0);
        let mut place = place.ok_or_else(|| Self::unknown_device(device_id.0))?;
        let mut coordinates = Vec::new();
        for axis in self.mesh.axes.iter().rev() {
            coordinates.push((&*axis.name, place % axis.size));
            place /= axis.size;
        }
        let dict = PyDict::new(py);
        for (name, coordinate) in coordinates.into_iter().rev() {
            dict.set_item(name, coordinate)?;
        }
        Ok(dict)
    }
    fn device_at(&self, py: Python<'_>, coordinates: &Bound<'_, PyDict>) -> PyResult<i64> {
        let error = |message: String| {
            raise_unlocated(py, vec![Diagnostic::new(Code::InvalidMesh, message)])
        };
        if self.mesh.is_empty() {
            return Err(error("an empty mesh has no devices".to_owned()));
        }
        let mut place = 0;
        for axis in &self.mesh.axes {
            let Some(coordinate) = coordinates.get_item(&*axis.name)? else {
                return Err(error(format!("no coordinate along axis \"{}\"", axis.name)));
            };
            let Int(coordinate): Int<i64> = coordinate.extract()?;
            if !(0..axis.size).contains(&coordinate) {
                let (name, size) = (&axis.name, axis.size);
                return Err(error(format!(
                    "coordinate {coordinate} along axis \"{name}\" is not in 0..{size}"
                )));
            }
            place = place * axis.size + coordinate;
        }
        if coordinates.len() > self.mesh.axes.len() {
            for name in coordinates.keys() {
                self.axis_size(py, &name.extract::<String>()?)?;
            }
        }
        Ok(self.mesh.device_at_position(place))
    }

    fn __contains__(&self, name: &str) -> bool {
        self.mesh.axis_by_name(name).is_some()
    }
    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        room_for_mesh(py, &self.mesh)?;
        Ok(print_mesh(&self.mesh))
    }
    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let (py, mesh) = (slf.py(), &slf.get().mesh);
        if mesh.is_maximal() {
            return Ok(format!("Mesh.maximal({})", mesh.device_ids[0]));
        }
        if mesh.is_empty() {
            return Ok("Mesh()".to_owned());
        }
        room_for_mesh(py, mesh)?;
        let axes = slf.get().shape(py)?.repr()?.to_string();
        if mesh.device_ids.is_empty() {
            return Ok(format!("Mesh({axes})"));
        }
        Ok(format!("Mesh({axes}, device_ids={:?})", mesh.device_ids))
    }
    fn __eq__(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.mesh, &other.mesh) || self.mesh == other.mesh
    }
    fn __hash__(&self) -> u64 {
        let mut hasher = rustc_hash::FxHasher::default();
        self.mesh.hash(&mut hasher);
        hasher.finish()
    }
    #[allow(clippy::type_complexity)] // It is a tuple in Python.
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyType>, (Vec<(String, i64)>, Vec<i64>))> {
        let mesh = &slf.get().mesh;
        room_for_mesh(slf.py(), mesh)?;
        let axes = mesh.axes.iter().map(|axis| (axis.name.to_string(), axis.size)).collect();
        Ok((slf.get_type(), (axes, mesh.device_ids.clone())))
    }
    fn __copy__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }
    fn __deepcopy__<'py>(slf: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        slf
    }
}
