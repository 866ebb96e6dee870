//! `shardcore.TensorSharding`.

use super::arguments::{items, too_many, Int, Items, MAX_ITEMS};
use super::dim_sharding::{axes_from, PyDimSharding};
use super::errors::{raise, raise_unlocated, shown};
use super::mesh::{quoted, PyMesh};
use super::mesh_argument::{MeshArgument, Meshes};
use super::pasted::{is_pasted_from_jax, pasted_from_jax};
use super::picture::picture;
use super::room::{room_for_mesh, room_for_objects};
use super::sharding_parts::{reduction_called, Parts};
use super::sharding_repr::{constructor_call, slices};
use super::user_code::call_own;
use crate::attribute::{parse_sharding, write_sharding_of, StandaloneScope};
use crate::error::{Code, Diagnostic};
use crate::index::{MeshId, ShardingId};
use crate::ir::Program;
use crate::layout::Layout;
use crate::mesh::Mesh;
use crate::sharding::TensorSharding;
use crate::shardy::Version;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use std::sync::Arc;

/// A sharding; see the stub.
#[pyclass(name = "TensorSharding", module = "shardcore", frozen, eq, hash, from_py_object)]
#[derive(Clone, PartialEq, Eq)]
pub struct PyTensorSharding {
    /// The mesh; of unknown sizes if it is not known.
    pub(super) mesh: Arc<Mesh>,
    pub(super) is_mesh_known: bool,
    /// The symbol of the mesh, without `@`; `None` for an inlined mesh.
    pub(super) symbol: Option<Arc<str>>,
    /// The sharding; its mesh id has no meaning.
    pub(super) sharding: Arc<TensorSharding>,
}

impl PyTensorSharding {
    /// The sharding of `id` in `program`.
    pub(super) fn from_program(program: &Program, id: ShardingId) -> Self {
        Self::of(program, &program.shardings()[id])
    }
    /// `sharding`, which is over a mesh of `program`.
    pub(super) fn of(program: &Program, sharding: &TensorSharding) -> Self {
        let row = &program.meshes()[sharding.mesh];
        Self {
            mesh: row.mesh.clone(),
            is_mesh_known: true,
            symbol: row.symbol.map(|symbol| program.str(symbol).into()),
            sharding: Arc::new(TensorSharding { mesh: MeshId::NONE, ..sharding.as_in_text() }),
        }
    }
    /// Its layout; an error if the mesh is not known.
    fn layout(&self, py: Python<'_>) -> PyResult<Layout<'_>> {
        if self.is_mesh_known {
            return Ok(Layout::new(&self.sharding, &self.mesh));
        }
        let name = self.symbol.as_deref().unwrap_or_default();
        let message = format!("the mesh @{name} of this sharding is not known");
        let problem = Diagnostic::new(Code::UnknownMesh, message);
        Err(raise_unlocated(py, vec![problem.with_hint("give it one: sharding.with_mesh(mesh)")]))
    }
    fn layout_for(&self, py: Python<'_>, shape: &[i64]) -> PyResult<Layout<'_>> {
        let layout = self.layout(py)?;
        match layout.check_shape(shape) {
            None => Ok(layout),
            Some(problem) => Err(raise_unlocated(py, vec![problem])),
        }
    }
    fn position(&self, device: i64) -> PyResult<i64> {
        self.mesh.position_of_device(device).ok_or_else(|| PyMesh::unknown_device(device))
    }
    /// Positions and ids of all devices, if the number of devices times dims is at most
    /// `MAX_LISTED`.
    fn devices(&self, py: Python<'_>) -> PyResult<impl Iterator<Item = (i64, i64)> + '_> {
        /// The most items of a list, since each takes about a hundred bytes in Python.
        const MAX_LISTED: i64 = 1 << 20;
        let (count, rank) = (self.mesh.device_count(), self.sharding.dims.len().max(1) as i64);
        if count.saturating_mul(rank) > MAX_LISTED {
            let message = format!("{count} devices with {rank} dims each are too much to list");
            let hint = "ask for one: shard_slice(shape, device), shard_padding(shape, device)";
            let problem = Diagnostic::new(Code::ProgramTooLarge, message).with_hint(hint);
            return Err(raise_unlocated(py, vec![problem]));
        }
        room_for_objects(py, (count * rank) as usize, "listing the devices")?;
        Ok((0..count).map(|position| (position, self.mesh.device_at_position(position))))
    }
}

#[pymethods]
impl PyTensorSharding {
    #[new]
    #[pyo3(signature = (
        mesh, dims, *, replicated = None, unreduced = None, reduction_op = "sum", mesh_name = None
    ))]
    fn new(
        py: Python<'_>,
        mesh: &Bound<'_, PyAny>,
        dims: &Bound<'_, PyAny>,
        replicated: Option<&Bound<'_, PyAny>>,
        unreduced: Option<&Bound<'_, PyAny>>,
        reduction_op: &str,
        mesh_name: Option<&str>,
    ) -> PyResult<Self> {
        let mesh = MeshArgument::new(mesh, mesh_name)?;
        if dims.is_instance_of::<PyString>() {
            let hint = "dims is one item for each dim: [\"x\", None] or [[\"x\", \"y\"], None]";
            return Err(PyTypeError::new_err(hint));
        }
        let dims = items(dims, "dims", MAX_ITEMS, PyDimSharding::from_item)?;
        let list = |axes: Option<&Bound<'_, PyAny>>| axes.map_or_else(|| Ok(Vec::new()), axes_from);
        let (replicated, unreduced) = (list(replicated)?, list(unreduced)?);
        let reduction_op = reduction_called(reduction_op)?;
        Self::build(py, mesh, Parts { dims, replicated, unreduced, reduction_op })
    }

    #[staticmethod]
    #[pyo3(signature = (text, mesh = None))]
    fn parse(py: Python<'_>, text: &str, mesh: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        if is_pasted_from_jax(text) {
            return pasted_from_jax(py, text, mesh);
        }
        let meshes = Meshes::new(mesh)?;
        let symbols = meshes.symbols();
        let resolve = |symbol: &str| meshes.find(symbol, text);
        let mut scope = StandaloneScope::new(&resolve, &symbols, Version::NEWEST);
        let parsed = parse_sharding(text, 0, &mut scope);
        let sharding = parsed.map_err(|error| raise(py, &error, text, "<sharding>"))?;
        let (mesh, symbol) = scope.into_mesh();
        let is_mesh_known = symbol.is_none() || !matches!(meshes, Meshes::Unknown);
        let symbol = symbol.map(Into::into);
        let sharding = Arc::new(TensorSharding { mesh: MeshId::NONE, ..sharding });
        let read = Self { mesh, is_mesh_known, symbol: symbol.clone(), sharding };
        if is_mesh_known {
            return Ok(read);
        }
        // Axes are numbered by first appearance in the sharding, not in the text.
        Self::build(py, MeshArgument { mesh: None, symbol }, read.parts())
    }

    #[staticmethod]
    #[pyo3(signature = (mesh, rank, *, is_closed = true, mesh_name = None))]
    fn fully_replicated(
        py: Python<'_>,
        mesh: &Bound<'_, PyAny>,
        rank: Int<usize>,
        is_closed: bool,
        mesh_name: Option<&str>,
    ) -> PyResult<Self> {
        let Int(rank) = rank;
        if rank > MAX_ITEMS {
            return Err(too_many(py, "dims", MAX_ITEMS));
        }
        let dim = PyDimSharding { axes: Vec::new(), is_closed, priority: None };
        let parts = Parts { dims: vec![dim; rank], ..Parts::default() };
        Self::build(py, MeshArgument::new(mesh, mesh_name)?, parts)
    }

    #[getter]
    fn mesh(&self) -> Option<PyMesh> {
        self.is_mesh_known.then(|| PyMesh::from_verified(self.mesh.clone()))
    }
    #[getter]
    fn mesh_name(&self) -> Option<&str> {
        self.symbol.as_deref()
    }
    #[getter]
    fn rank(&self) -> usize {
        self.sharding.dims.len()
    }
    #[getter]
    fn dims<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.parts().dims)
    }
    #[getter]
    fn replicated<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.parts().replicated)
    }
    #[getter]
    fn unreduced<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.parts().unreduced)
    }
    #[getter]
    fn reduction_op(&self) -> &'static str {
        self.sharding.reduction_op.keyword()
    }
    #[getter]
    fn is_fully_replicated(&self) -> bool {
        self.sharding.dims.iter().all(|dim| dim.axes.is_empty())
    }
    #[getter]
    fn is_fully_closed(&self) -> bool {
        self.sharding.dims.iter().all(|dim| dim.is_closed)
    }
    #[getter]
    fn replication_factor(&self, py: Python<'_>) -> PyResult<i64> {
        Ok(self.layout(py)?.replication_factor())
    }

    #[pyo3(signature = (mesh = None))]
    fn canonical(&self, py: Python<'_>, mesh: Option<&PyMesh>) -> PyResult<Self> {
        if let Some(mesh) = mesh {
            return self.with_mesh(py, mesh);
        }
        let sharding = Arc::new(self.sharding.canonical(&self.mesh));
        Ok(Self { sharding, ..self.clone() })
    }
    fn with_mesh(&self, py: Python<'_>, mesh: &PyMesh) -> PyResult<Self> {
        let mesh = MeshArgument { mesh: Some(mesh.mesh.clone()), symbol: self.symbol.clone() };
        Self::build(py, mesh, self.parts())
    }
    /// The sharding over `mesh` of a text in GSPMD's notation, which Python parses.
    #[staticmethod]
    #[pyo3(signature = (text, mesh = None, *, rank = None))]
    fn from_hlo<'py>(
        py: Python<'py>,
        text: &str,
        mesh: Option<&Bound<'py, PyMesh>>,
        rank: Option<Int<usize>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let class = py.import("shardcore.gspmd")?.getattr("HloSharding")?;
        let options = PyDict::new(py);
        options.set_item("rank", rank.map(|Int(rank)| rank))?;
        call_own(py, || {
            let read = class.call_method1("parse", (text,))?;
            read.call_method("to_sharding", (mesh,), Some(&options))
        })
    }
    /// The text in GSPMD's notation, which Python makes.
    #[pyo3(signature = (manual = Items(Vec::new())))]
    fn to_hlo<'py>(slf: &Bound<'py, Self>, manual: Items<String>) -> PyResult<Bound<'py, PyAny>> {
        let class = slf.py().import("shardcore.gspmd")?.getattr("HloSharding")?;
        call_own(slf.py(), || class.call_method1("from_sharding", (slf, manual.0)))
    }
    fn closed(&self) -> Self {
        let mut closed = self.clone();
        for dim in &mut Arc::make_mut(&mut closed.sharding).dims {
            dim.is_closed = true;
            if dim.axes.is_empty() {
                dim.priority = None;
            }
        }
        closed
    }
    fn sharded_size(&self, py: Python<'_>, dim: Int<isize>) -> PyResult<i64> {
        let (Int(dim), layout) = (dim, self.layout(py)?);
        let rank = layout.rank();
        let index = if dim < 0 { rank.checked_add_signed(dim) } else { dim.try_into().ok() };
        match index.filter(|&index| index < rank) {
            Some(index) => Ok(layout.num_shards(index)),
            None => Err(PyIndexError::new_err(format!("dim {dim} of a sharding with {rank} dims"))),
        }
    }
    fn local_shape<'py>(
        &self,
        py: Python<'py>,
        shape: Items<i64>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.layout_for(py, &shape)?.local_shape(&shape))
    }
    fn shard_slice<'py>(
        &self,
        py: Python<'py>,
        shape: Items<i64>,
        device_id: Int<i64>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let layout = self.layout_for(py, &shape)?;
        slices(py, &layout, &shape, self.position(device_id.0)?)
    }
    fn shard_padding<'py>(
        &self,
        py: Python<'py>,
        shape: Items<i64>,
        device_id: Int<i64>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let layout = self.layout_for(py, &shape)?;
        PyTuple::new(py, layout.padding(&shape, self.position(device_id.0)?))
    }
    fn device_slices<'py>(
        &self,
        py: Python<'py>,
        shape: Items<i64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let layout = self.layout_for(py, &shape)?;
        let dict = PyDict::new(py);
        for (position, device) in self.devices(py)? {
            dict.set_item(device, slices(py, &layout, &shape, position)?)?;
        }
        Ok(dict)
    }
    fn padding<'py>(&self, py: Python<'py>, shape: Items<i64>) -> PyResult<Bound<'py, PyDict>> {
        let layout = self.layout_for(py, &shape)?;
        let dict = PyDict::new(py);
        for (position, device) in self.devices(py)? {
            dict.set_item(device, PyTuple::new(py, layout.padding(&shape, position))?)?;
        }
        Ok(dict)
    }
    fn bytes_per_device(&self, py: Python<'_>, shape: Items<i64>, dtype: &str) -> PyResult<u128> {
        let Some(bits) = crate::ir::element_bits(dtype) else {
            let message = format!("the size of an element of type {} is not known", shown(dtype));
            return Err(PyValueError::new_err(message));
        };
        Ok(self.layout_for(py, &shape)?.bytes_per_device(&shape, bits))
    }
    #[pyo3(signature = (other, shape = None))]
    fn is_equivalent(
        &self,
        py: Python<'_>,
        other: &Self,
        shape: Option<Items<i64>>,
    ) -> PyResult<bool> {
        let (mine, theirs) = match &shape {
            Some(shape) => (self.layout_for(py, shape)?, other.layout_for(py, shape)?),
            None => (self.layout(py)?, other.layout(py)?),
        };
        Ok(py.detach(|| mine.is_equivalent(&theirs, shape.as_deref())))
    }

    /// A picture of which device holds what.
    #[pyo3(signature = (shape = None))]
    fn visualize<'py>(
        &self,
        py: Python<'py>,
        shape: Option<Items<i64>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let shape = shape.map(|shape| PyTuple::new(py, shape.0)).transpose()?;
        picture(py, Some(self.clone()), shape)
    }
    /// A picture for notebooks; `None`, for which they show no picture, if the mesh is not known.
    fn _repr_html_<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if !self.is_mesh_known {
            return Ok(None);
        }
        let picture = self.visualize(py, None)?;
        call_own(py, || picture.call_method0("_repr_html_").map(Some))
    }
    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        room_for_mesh(py, &self.mesh)?;
        let mut out = String::new();
        write_sharding_of(&mut out, &self.sharding, &self.mesh, self.symbol.as_deref());
        Ok(out)
    }
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let symbol = self.symbol.as_deref();
        if !self.is_mesh_known {
            let mesh = quoted(py, &format!("@{}", symbol.unwrap_or_default()))?;
            return constructor_call(py, &mesh, self.parts(), None);
        }
        let mesh = Bound::new(py, PyMesh::from_verified(self.mesh.clone()))?.repr()?;
        constructor_call(py, &mesh.to_string(), self.parts(), symbol)
    }
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (String, Option<PyMesh>))> {
        let sharding = slf.get();
        let parse = slf.get_type().getattr("parse")?;
        let mesh = if sharding.symbol.is_some() { sharding.mesh() } else { None };
        Ok((parse, (sharding.__str__(slf.py())?, mesh)))
    }
}
