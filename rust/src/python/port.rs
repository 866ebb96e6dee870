//! `shardcore.Port`: an argument or a result of a module's entry function.

use super::kept_run::Outcome;
use super::sharding::PyTensorSharding;
use crate::index::{FuncId, ShardingId, TypeId, ValueId};
use crate::ir::{AttrRange, Port, Program, Type};
use crate::propagation::observe::Slot;
use crate::sharding::TensorSharding;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::borrow::Cow;
use std::sync::Arc;

/// An argument or a result; see the stub.
#[pyclass(name = "Port", module = "shardcore", frozen)]
pub struct PyPort {
    program: Arc<Program>,
    index: usize,
    /// The argument; `None` for a result.
    argument: Option<ValueId>,
    ty: TypeId,
    attrs: AttrRange,
    held: LocalValue,
}

/// Where the sharding of a port is stored.
enum LocalValue {
    /// In the program.
    Program(ShardingId),
    /// In the outcome of a replay, for this slot.
    Outcome(Arc<Outcome>, Slot),
}

impl PyPort {
    /// The arguments of the entry function of `program`.
    pub(super) fn arguments(program: &Arc<Program>) -> Vec<Self> {
        Self::arguments_of(program, |value| LocalValue::Program(program.sharding(value)))
    }
    /// The results of the entry function of `program`.
    pub(super) fn results(program: &Arc<Program>) -> Vec<Self> {
        Self::results_of(program, |_, _, port| LocalValue::Program(port.sharding))
    }
    /// The arguments of the completed program of `outcome`, which is readable.
    pub(super) fn completed_arguments(outcome: &Arc<Outcome>) -> Vec<Self> {
        let held = |value| LocalValue::Outcome(outcome.clone(), Slot::Value(value));
        Self::arguments_of(outcome.prepared.imported(), held)
    }
    /// The results of the completed program of `outcome`, which is readable.
    pub(super) fn completed_results(outcome: &Arc<Outcome>) -> Vec<Self> {
        let held = |func, index, _: &Port| {
            LocalValue::Outcome(outcome.clone(), Slot::FuncResult(func, index))
        };
        Self::results_of(outcome.prepared.imported(), held)
    }
    fn arguments_of(program: &Arc<Program>, held: impl Fn(ValueId) -> LocalValue) -> Vec<Self> {
        let Some(entry) = program.entry_function() else { return Vec::new() };
        let Some(body) = program.func_body(entry).get() else { return Vec::new() };
        let arguments = program.block_args(body).enumerate();
        let port = |(index, value)| Self {
            program: program.clone(),
            index,
            argument: Some(value),
            ty: program.type_of(value),
            attrs: program.func_args(entry).get(index).map(|arg| arg.attrs).unwrap_or_default(),
            held: held(value),
        };
        arguments.map(port).collect()
    }
    fn results_of(
        program: &Arc<Program>,
        held: impl Fn(FuncId, usize, &Port) -> LocalValue,
    ) -> Vec<Self> {
        let Some(entry) = program.entry_function() else { return Vec::new() };
        let results = program.func_results(entry).iter().enumerate();
        let port = |(index, port): (usize, &Port)| Self {
            program: program.clone(),
            index,
            argument: None,
            ty: port.ty,
            attrs: port.attrs,
            held: held(entry, index, port),
        };
        results.map(port).collect()
    }
    /// The argument, or the value that the entry function returns as the result.
    pub(super) fn value(&self) -> Option<ValueId> {
        self.argument.or_else(|| {
            let entry = self.program.func_op(self.program.entry_function()?);
            let returned = self.program.region_terminator(entry, 0)?;
            self.program.operands(returned).nth(self.index)
        })
    }
    fn held_sharding(&self) -> Option<Cow<'_, TensorSharding>> {
        match &self.held {
            LocalValue::Program(id) => self.program.shardings().get(*id).map(Cow::Borrowed),
            LocalValue::Outcome(outcome, slot) => {
                outcome.prepared.completed_port(&outcome.replayed, *slot).map(Cow::Owned)
            }
        }
    }
}

#[pymethods]
impl PyPort {
    #[getter]
    fn index(&self) -> usize {
        self.index
    }
    #[getter]
    fn name(&self) -> String {
        match self.argument {
            Some(value) => self.program.value_name(value),
            None => format!("result {}", self.index),
        }
    }
    #[getter]
    fn label(&self) -> Option<String> {
        if let Some(value) = self.argument {
            return self.program.value_location(value);
        }
        self.program.result_label(self.attrs)
    }
    #[getter]
    fn r#type(&self) -> &str {
        self.program.type_text(self.ty)
    }
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        match &self.program.types()[self.ty] {
            Type::RankedTensor { shape, .. } | Type::MeshTensor { shape, .. } => {
                Ok(Some(PyTuple::new(py, shape)?))
            }
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
        self.held_sharding().map(|sharding| PyTensorSharding::of(&self.program, &sharding))
    }
    #[getter]
    fn local_shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let shape = self.program.local_shape(self.ty, self.held_sharding().as_deref());
        shape.map(|shape| PyTuple::new(py, shape)).transpose()
    }
    #[getter]
    fn bytes(&self) -> Option<u128> {
        let shape = self.program.types()[self.ty].static_shape()?;
        self.program.tensor_bytes(self.ty, &shape)
    }
    #[getter]
    fn bytes_per_device(&self) -> Option<u128> {
        let shape = self.program.local_shape(self.ty, self.held_sharding().as_deref())?;
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
        let label = self.label().map_or_else(String::new, |label| format!(" {label}"));
        let sharding = self.held_sharding().map_or_else(
            || "no sharding".to_owned(),
            |sharding| crate::attribute::print_sharding(&sharding, &*self.program),
        );
        format!("<shardcore.Port {}{label}: {} {sharding}>", self.name(), self.r#type())
    }
}
