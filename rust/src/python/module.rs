//! `shardcore.Module` and the values in it.

use super::errors::raise;
use super::sharding::PyTensorSharding;
use crate::index::{FuncId, Id, ShardingId, TypeId, ValueId};
use crate::ir::{Program, Type, ValueDef};
use crate::mlir;
use crate::totals::{ProgramTotals, Totals};
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use std::path::PathBuf;
use std::sync::Arc;

/// A parsed MLIR module; see the stub for the contract.
#[pyclass(name = "Module", module = "shardcore")]
pub struct PyModule {
    /// Shared with the values handed out: a pass that runs in place copies first if there are any.
    pub(super) program: Arc<Program>,
    /// The name that the text goes by in errors.
    pub(super) filename: Arc<str>,
}

impl PyModule {
    /// A module of `program`, whose text goes by `filename`.
    pub(super) fn new(program: Program, filename: Arc<str>) -> Self {
        Self { program: Arc::new(program), filename }
    }
    /// The function that `key` names, or the entry function.
    fn function(&self, key: Option<&str>) -> PyResult<FuncId> {
        let Some(key) = key else {
            let entry = self.program.entry_function();
            return entry.ok_or_else(|| PyKeyError::new_err("the module has no function"));
        };
        let name = key.strip_prefix('@').unwrap_or(key);
        let functions = self.program.functions_in_order();
        functions
            .into_iter()
            .find(|&id| self.program.strings.get(self.program.functions[id].name) == name)
            .ok_or_else(|| PyKeyError::new_err(format!("no function @{name}")))
    }
}

#[pymethods]
impl PyModule {
    #[staticmethod]
    #[pyo3(signature = (text, *, filename = "<string>"))]
    fn parse(py: Python<'_>, text: &Bound<'_, PyAny>, filename: &str) -> PyResult<Self> {
        let source: Arc<str> = if let Ok(text) = text.cast::<PyString>() {
            text.to_str()?.into()
        } else if let Ok(bytes) = text.cast::<PyBytes>() {
            super::errors::decode(py, bytes.as_bytes(), filename)?
        } else {
            return Err(PyTypeError::new_err("Module.parse takes str or bytes"));
        };
        let parsed = {
            let source = source.clone();
            py.detach(move || mlir::parse(source))
        };
        let program = parsed.map_err(|error| raise(py, &error, &source, filename))?;
        Ok(Self::new(program, filename.into()))
    }

    #[staticmethod]
    fn from_file(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let bytes = py.detach(|| std::fs::read(&path))?;
        let name = path.display().to_string();
        Self::parse(py, PyBytes::new(py, &bytes).as_any(), &name)
    }

    fn __str__(&self, py: Python<'_>) -> String {
        py.detach(|| mlir::print(&self.program))
    }

    fn __repr__(&self) -> String {
        let functions: Vec<String> = self
            .program
            .functions_in_order()
            .into_iter()
            .take(4)
            .map(|id| format!("@{}", self.program.strings.get(self.program.functions[id].name)))
            .collect();
        let meshes: Vec<String> = self
            .program
            .meshes
            .iter()
            .filter_map(|mesh| {
                let symbol = self.program.strings.get(mesh.symbol?);
                Some(format!("@{symbol} {}", crate::attribute::print_mesh(&mesh.mesh)))
            })
            .collect();
        format!(
            "<shardcore.Module of {} ops: {}{}; meshes: {}>",
            self.program.num_ops(),
            functions.join(", "),
            if self.program.functions_in_order().len() > 4 { ", ..." } else { "" },
            if meshes.is_empty() { "none".into() } else { meshes.join(", ") },
        )
    }

    /// Number of ops, the module op included.
    #[getter]
    fn num_ops(&self) -> usize {
        self.program.num_ops()
    }

    fn values(&self, py: Python<'_>) -> Vec<PyValue> {
        let owners = py.detach(|| owners(&self.program));
        owners
            .into_iter()
            .map(|(value, function)| PyValue { program: self.program.clone(), value, function })
            .collect()
    }

    fn __getitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<PyValue> {
        let (function, name): (Option<String>, String) = match key.cast::<PyTuple>() {
            Ok(pair) => {
                let (function, name) = pair.extract()?;
                (Some(function), name)
            }
            Err(_) => (None, key.extract()?),
        };
        let function = self.function(function.as_deref())?;
        let op = self.program.functions[function].op;
        let wanted = if name.starts_with('%') { name.clone() } else { format!("%{name}") };
        self.program
            .values_of(op)
            .into_iter()
            .find(|&value| self.program.value_name(value) == wanted)
            .map(|value| PyValue { program: self.program.clone(), value, function })
            .ok_or_else(|| {
                let symbol = self.program.strings.get(self.program.functions[function].name);
                PyKeyError::new_err(format!("no value {wanted} in @{symbol}"))
            })
    }

    /// Totals of the module as plain data.
    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let totals = py.detach(|| self.program.totals());
        totals_dict(py, &self.program, &totals)
    }

    fn __copy__(&self) -> Self {
        Self { program: self.program.clone(), filename: self.filename.clone() }
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.__copy__()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let parse = py.import("shardcore")?.getattr("Module")?.getattr("parse")?;
        Ok((parse, (self.__str__(py),)))
    }
}

/// Every value with the function it is in.
fn owners(program: &Program) -> Vec<(ValueId, FuncId)> {
    let mut pairs = Vec::with_capacity(program.values.len());
    for function in program.functions_in_order() {
        let op = program.functions[function].op;
        pairs.extend(program.values_of(op).into_iter().map(|value| (value, function)));
    }
    pairs
}

/// `totals` as `{"values": ..., "axes": [...]}`.
pub(super) fn totals_dict<'py>(
    py: Python<'py>,
    program: &Program,
    totals: &ProgramTotals,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("values", totals.all.values)?;
    dict.set_item("sharded_values", totals.all.sharded_values)?;
    let sets: [(&str, &Totals); 3] =
        [("", &totals.all), ("argument_", &totals.arguments), ("result_", &totals.results)];
    for (prefix, set) in sets {
        dict.set_item(format!("{prefix}bytes"), set.bytes)?;
        dict.set_item(format!("{prefix}bytes_per_device"), set.bytes_per_device)?;
    }
    let axes = PyList::empty(py);
    for axis_use in &totals.axes {
        let row = &program.meshes[axis_use.mesh];
        let axis = &row.mesh.axes[axis_use.axis];
        let item = PyDict::new(py);
        item.set_item("mesh", row.symbol.map(|symbol| program.strings.get(symbol)))?;
        item.set_item("name", &*axis.name)?;
        item.set_item("size", axis.size)?;
        item.set_item("values", axis_use.values)?;
        item.set_item("arguments", axis_use.arguments)?;
        axes.append(item)?;
    }
    dict.set_item("axes", axes)?;
    Ok(dict)
}

/// One value of a module as it was when it was asked for.
#[pyclass(name = "Value", module = "shardcore", frozen)]
pub struct PyValue {
    program: Arc<Program>,
    value: ValueId,
    function: FuncId,
}

impl PyValue {
    /// The value's id.
    pub(super) fn id(&self) -> ValueId {
        self.value
    }
    fn ty(&self) -> TypeId {
        self.program.values[self.value].ty
    }
    fn sharding_id(&self) -> ShardingId {
        self.program.sharding(self.value)
    }
}

#[pymethods]
impl PyValue {
    #[getter]
    fn name(&self) -> String {
        self.program.value_name(self.value)
    }
    #[getter]
    fn function(&self) -> &str {
        self.program.strings.get(self.program.functions[self.function].name)
    }
    /// Name of the op that defines it; `None` for a block argument.
    #[getter]
    fn op(&self) -> Option<&str> {
        match self.program.values[self.value].def {
            ValueDef::Result(op) => Some(self.program.op_name(op)),
            ValueDef::Arg(_) => None,
        }
    }
    #[getter]
    fn r#type(&self) -> &str {
        self.program.text.get(self.program.types.text(self.ty()))
    }
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        match &self.program.types[self.ty()] {
            Type::RankedTensor { shape, .. } => Ok(Some(PyTuple::new(py, shape)?)),
            _ => Ok(None),
        }
    }
    #[getter]
    fn dtype(&self) -> Option<&str> {
        match &self.program.types[self.ty()] {
            Type::RankedTensor { element, .. } => Some(self.program.strings.get(element.text)),
            _ => None,
        }
    }
    #[getter]
    fn sharding(&self) -> Option<PyTensorSharding> {
        self.sharding_id().get().map(|id| PyTensorSharding::from_program(&self.program, id))
    }
    #[getter]
    fn local_shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let shape = self.program.local_shape(self.ty(), self.sharding_id());
        shape.map(|shape| PyTuple::new(py, shape)).transpose()
    }
    #[getter]
    fn bytes(&self) -> Option<u64> {
        let shape = self.program.types[self.ty()].static_shape()?;
        self.program.tensor_bytes(self.ty(), &shape)
    }
    #[getter]
    fn bytes_per_device(&self) -> Option<u64> {
        let shape = self.program.local_shape(self.ty(), self.sharding_id())?;
        self.program.tensor_bytes(self.ty(), &shape)
    }
    #[getter]
    fn location(&self) -> Option<String> {
        self.program.value_location(self.value)
    }
    fn __repr__(&self) -> String {
        let sharding = self.sharding_id().get().map_or_else(
            || "no sharding".to_owned(),
            |id| crate::attribute::print_sharding(&self.program.shardings[id], &*self.program),
        );
        format!("<shardcore.Value {}: {} {sharding}>", self.name(), self.r#type())
    }
    fn __eq__(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.program, &other.program) && self.value == other.value
    }
    fn __hash__(&self) -> usize {
        self.value.index()
    }
}
