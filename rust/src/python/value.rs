//! `shardcore.Value`: a value of a module at the time of the call.

use super::names::Names;
use super::picture::picture;
use super::sharding::PyTensorSharding;
use super::user_code::own_function;
use crate::index::{FuncId, Id, TypeId, ValueId};
use crate::ir::{Program, Type, ValueDef};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// One value of a module at the time of the call.
#[pyclass(name = "Value", module = "shardcore", frozen)]
pub struct PyValue {
    program: Arc<Program>,
    names: Arc<Names>,
    value: ValueId,
    function: FuncId,
}

impl PyValue {
    /// `value` of `program`, which is in `function`; `names` are those of `program`.
    pub(super) fn new(
        program: Arc<Program>,
        names: Arc<Names>,
        value: ValueId,
        function: FuncId,
    ) -> Self {
        Self { program, names, value, function }
    }
    /// The program of the value, and its id there.
    pub(super) fn parts(&self) -> (Arc<Program>, Option<ValueId>) {
        (self.program.clone(), Some(self.value))
    }
    /// The value's id, if it belongs to `program`.
    pub(super) fn id_in(&self, program: &Arc<Program>) -> Option<ValueId> {
        Arc::ptr_eq(&self.program, program).then_some(self.value)
    }
    fn ty(&self) -> TypeId {
        self.program.type_of(self.value)
    }
}

#[pymethods]
impl PyValue {
    #[getter]
    fn name(&self) -> String {
        self.program.value_name(self.value)
    }
    /// The shortest unambiguous name: qualified by the op that it is in if another value has the
    /// same name, and by its function if that is not the entry function.
    #[getter]
    fn qualified_name(&self) -> String {
        self.names.name(&self.program, self.function, self.value)
    }
    #[getter]
    fn function(&self) -> &str {
        self.program.str(self.program.func_name(self.function))
    }
    /// Name of the op that defines it; `None` for a block argument.
    #[getter]
    fn op(&self) -> Option<&str> {
        match self.program.def(self.value) {
            ValueDef::Result(op) => Some(self.program.op_name(op)),
            ValueDef::Arg(_) => None,
        }
    }
    #[getter]
    fn r#type(&self) -> &str {
        self.program.type_text(self.ty())
    }
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        match &self.program.types()[self.ty()] {
            Type::RankedTensor { shape, .. } | Type::MeshTensor { shape, .. } => {
                Ok(Some(PyTuple::new(py, shape)?))
            }
            _ => Ok(None),
        }
    }
    #[getter]
    fn dtype(&self) -> Option<&str> {
        match &self.program.types()[self.ty()] {
            Type::RankedTensor { element, .. } => Some(self.program.str(element.text)),
            _ => None,
        }
    }
    #[getter]
    fn sharding(&self) -> Option<PyTensorSharding> {
        let sharding = self.program.visible_sharding(self.value);
        sharding.map(|sharding| PyTensorSharding::of(&self.program, &sharding))
    }
    #[getter]
    fn local_shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let shape = self
            .program
            .local_shape(self.ty(), self.program.visible_sharding(self.value).as_deref());
        shape.map(|shape| PyTuple::new(py, shape)).transpose()
    }
    #[getter]
    fn bytes(&self) -> Option<u128> {
        let shape = self.program.types()[self.ty()].static_shape()?;
        self.program.tensor_bytes(self.ty(), &shape)
    }
    #[getter]
    fn bytes_per_device(&self) -> Option<u128> {
        let shape = self
            .program
            .local_shape(self.ty(), self.program.visible_sharding(self.value).as_deref())?;
        self.program.tensor_bytes(self.ty(), &shape)
    }
    #[getter]
    fn location(&self) -> Option<String> {
        self.names.call_sites(&self.program).value_location(&self.program, self.value)
    }
    /// The manual axes of the manual computations around it.
    #[getter]
    fn manual_axes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let axes = self.program.manual_axes_around(self.value);
        PyTuple::new(py, axes.iter().map(|&axis| self.program.str(axis)))
    }
    /// The call stack in its location, innermost first.
    #[getter]
    fn traceback<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.names.call_sites(&self.program).traceback(&self.program, self.value))
    }
    /// The JAX name stack in the location of the op that defines it; empty for an argument.
    #[getter]
    fn name_stack(&self) -> String {
        let location = self.program.text().get(self.program.value_loc(self.value));
        match self.program.def(self.value) {
            ValueDef::Result(_) => self.program.name_stack(location),
            ValueDef::Arg(_) => String::new(),
        }
    }
    /// A picture of the slices of the value on each device.
    fn visualize<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shape = self.shape(py)?;
        picture(py, self.sharding(), shape)
    }
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        own_function(slf.py(), "shardcore.report.html", "value_html", (slf,), None)
    }
    fn __repr__(&self) -> String {
        let sharding = self.program.visible_sharding(self.value).map_or_else(
            || "no sharding".to_owned(),
            |sharding| crate::attribute::print_sharding(&sharding, &*self.program),
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
