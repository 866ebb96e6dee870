//! `shardcore.Port`: an argument or a result of a module's entry function.

use super::sharding::PyTensorSharding;
use crate::index::{ShardingId, TypeId};
use crate::ir::{AttrRange, Port, Program, Type};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;

/// An argument or a result; see the stub.
#[pyclass(name = "Port", module = "shardcore", frozen)]
pub struct PyPort {
    program: Arc<Program>,
    index: usize,
    name: String,
    label: Option<String>,
    ty: TypeId,
    sharding: ShardingId,
    attrs: AttrRange,
}

impl PyPort {
    /// The arguments of the entry function of `program`.
    pub(super) fn arguments(program: &Arc<Program>) -> Vec<Self> {
        let Some(entry) = program.entry_function() else { return Vec::new() };
        let Some(body) = program.func_body(entry).get() else { return Vec::new() };
        let arguments = program.block_args(body).enumerate();
        arguments
            .map(|(index, value)| Self {
                program: program.clone(),
                index,
                name: program.value_name(value),
                label: program.value_location(value),
                ty: program.type_of(value),
                sharding: program.sharding(value),
                attrs: program.func_args(entry).get(index).map(|arg| arg.attrs).unwrap_or_default(),
            })
            .collect()
    }
    /// The results of the entry function of `program`.
    pub(super) fn results(program: &Arc<Program>) -> Vec<Self> {
        let Some(entry) = program.entry_function() else { return Vec::new() };
        let results = program.func_results(entry).iter().enumerate();
        results
            .map(|(index, &Port { ty, sharding, attrs, .. })| {
                let info = program
                    .attr_list(attrs)
                    .iter()
                    .find(|attr| program.str(attr.name) == "jax.result_info");
                let label = info.map(|attr| program.text().get(attr.value).trim_matches('"'));
                Self {
                    program: program.clone(),
                    index,
                    name: format!("result {index}"),
                    label: label.filter(|label| !label.is_empty()).map(str::to_owned),
                    ty,
                    sharding,
                    attrs,
                }
            })
            .collect()
    }
}

#[pymethods]
impl PyPort {
    #[getter]
    fn index(&self) -> usize {
        self.index
    }
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }
    #[getter]
    fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }
    #[getter]
    fn r#type(&self) -> &str {
        self.program.type_text(self.ty)
    }
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        match &self.program.types()[self.ty] {
            Type::RankedTensor { shape, .. } => Ok(Some(PyTuple::new(py, shape)?)),
            _ => Ok(None),
        }
    }
    #[getter]
    fn dtype(&self) -> Option<&str> {
        match &self.program.types()[self.ty] {
            Type::RankedTensor { element, .. } => Some(self.program.str(element.text)),
            _ => None,
        }
    }
    #[getter]
    fn sharding(&self) -> Option<PyTensorSharding> {
        self.sharding.get().map(|id| PyTensorSharding::from_program(&self.program, id))
    }
    #[getter]
    fn local_shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let shape = self.program.local_shape(self.ty, self.program.shardings().get(self.sharding));
        shape.map(|shape| PyTuple::new(py, shape)).transpose()
    }
    #[getter]
    fn bytes(&self) -> Option<u128> {
        let shape = self.program.types()[self.ty].static_shape()?;
        self.program.tensor_bytes(self.ty, &shape)
    }
    #[getter]
    fn bytes_per_device(&self) -> Option<u128> {
        let shape =
            self.program.local_shape(self.ty, self.program.shardings().get(self.sharding))?;
        self.program.tensor_bytes(self.ty, &shape)
    }
    #[getter]
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for attr in self.program.attr_list(self.attrs) {
            dict.set_item(self.program.str(attr.name), self.program.text().get(attr.value))?;
        }
        Ok(dict)
    }
    fn __repr__(&self) -> String {
        let label = self.label.as_deref().map_or_else(String::new, |label| format!(" {label}"));
        let sharding = self.sharding.get().map_or_else(
            || "no sharding".to_owned(),
            |id| crate::attribute::print_sharding(&self.program.shardings()[id], &*self.program),
        );
        format!("<shardcore.Port {}{label}: {} {sharding}>", self.name, self.r#type())
    }
}
