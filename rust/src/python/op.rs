//! `shardcore.Op`, `shardcore.Block`: the structure of a module at the time of the call.

use super::attribute::to_python;
use super::errors::shown;
use super::names::Names;
use super::sharding::PyTensorSharding;
use super::user_code::call_own;
use super::value::PyValue;
use crate::diagnostics::{Location, Locator};
use crate::index::{BlockId, FuncId, Id, OpId, ShardingId, ValueId};
use crate::ir::{OpTraits, Payload, Program, Type};
use crate::mlir::{element_bytes, op_attributes, AttrValue};
use pyo3::exceptions::PyKeyError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use std::sync::Arc;

/// One op of a module; see the stub.
#[pyclass(name = "Op", module = "shardcore", frozen)]
pub struct PyOp {
    program: Arc<Program>,
    names: Arc<Names>,
    op: OpId,
    function: FuncId,
}

/// One block of a region; see the stub.
#[pyclass(name = "Block", module = "shardcore", frozen)]
pub struct PyBlock {
    program: Arc<Program>,
    names: Arc<Names>,
    block: BlockId,
    function: FuncId,
}

impl PyOp {
    /// Every op of every function, and the function: each `func.func`, then the ops in it, in program order.
    pub(super) fn ids(program: &Program) -> impl Iterator<Item = (FuncId, OpId)> + '_ {
        let inside = |function| program.pre_order(program.func_op(function));
        let functions = program.functions_in_order().into_iter();
        functions.flat_map(move |function| inside(function).map(move |op| (function, op)))
    }
    /// `ops` of `program`.
    pub(super) fn of(
        program: &Arc<Program>,
        names: &Arc<Names>,
        ops: impl IntoIterator<Item = (FuncId, OpId)>,
    ) -> Vec<Self> {
        let op =
            |(function, op)| Self { program: program.clone(), names: names.clone(), op, function };
        ops.into_iter().map(op).collect()
    }
    fn values<'py>(
        &self,
        py: Python<'py>,
        values: impl ExactSizeIterator<Item = ValueId>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let value =
            |value| PyValue::new(self.program.clone(), self.names.clone(), value, self.function);
        PyTuple::new(py, values.map(value))
    }
    /// Adds the attributes that the engine stores outside of the op's dictionary.
    fn payload(&self, dict: &Bound<'_, PyDict>) -> PyResult<()> {
        let program = &*self.program;
        match program.payload(self.op) {
            Some(Payload::Function(id)) => {
                dict.set_item("sym_name", program.str(program.func_name(*id)))
            }
            Some(Payload::Call(callee)) => dict.set_item("callee", program.str(*callee)),
            Some(Payload::NamedComputation { name, .. }) => {
                dict.set_item("name", program.str(*name))
            }
            Some(Payload::Fragment { mesh, .. }) => dict.set_item("mesh_name", program.str(*mesh)),
            Some(Payload::ManualComputation(axes)) => {
                let names = axes.iter().map(|&axis| program.str(axis));
                dict.set_item("manual_axes", names.collect::<Vec<_>>())?;
                let body = program.op_regions(self.op).next();
                let body = body.and_then(|region| program.region_entry(region).get());
                let inputs = body.map(|block| program.block_args(block));
                let shardings = |values: Vec<ValueId>| {
                    let sharding = |value| self.sharding(program.sharding(value));
                    PyList::new(dict.py(), values.into_iter().map(sharding))
                };
                let inputs = inputs.map(Iterator::collect).unwrap_or_default();
                dict.set_item("in_shardings", shardings(inputs)?)?;
                dict.set_item("out_shardings", shardings(program.op_results(self.op).collect())?)
            }
            _ => Ok(()),
        }
    }
    fn sharding(&self, id: ShardingId) -> Option<PyTensorSharding> {
        id.get().map(|id| PyTensorSharding::from_program(&self.program, id))
    }
}

#[pymethods]
impl PyOp {
    #[getter]
    fn name(&self) -> &str {
        self.program.op_name(self.op)
    }
    #[getter]
    fn function(&self) -> &str {
        self.program.str(self.program.func_name(self.function))
    }
    #[getter]
    fn operands<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.values(py, self.program.operands(self.op))
    }
    #[getter]
    fn results<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.values(py, self.program.op_results(self.op))
    }
    /// Its regions, each a tuple of blocks.
    #[getter]
    fn regions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let block = |block| PyBlock {
            program: self.program.clone(),
            names: self.names.clone(),
            block,
            function: self.function,
        };
        let mut regions = Vec::new();
        for region in self.program.op_regions(self.op) {
            let blocks: Vec<PyBlock> = self.program.region_blocks(region).map(block).collect();
            regions.push(PyTuple::new(py, blocks)?);
        }
        PyTuple::new(py, regions)
    }
    /// Its attributes by their names in the generic form.
    #[getter]
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, value) in op_attributes(&self.program, self.op) {
            dict.set_item(name, to_python(py, &value)?)?;
        }
        self.payload(&dict)?;
        Ok(dict)
    }
    /// Ops of one module with the same number have the same name, attributes (except those with a
    /// dialect in their names) and types.
    #[getter]
    fn signature(&self) -> Option<usize> {
        self.program.signature(self.op).get().map(Id::index)
    }
    /// Element type, shape and bytes of the dense attribute `name`.
    #[pyo3(signature = (name = "value"))]
    fn elements<'py>(
        &self,
        py: Python<'py>,
        name: &str,
    ) -> PyResult<(String, Vec<i64>, Bound<'py, PyBytes>)> {
        let missing = |what: &str| PyKeyError::new_err(format!("{} {what}", shown(name)));
        let program = &*self.program;
        let bytes = py.detach(|| {
            let mut attributes = op_attributes(program, self.op).into_iter();
            let (_, value) = attributes.find(|(other, _)| *other == name)?;
            let (element, shape) = dense_type(program, self.op, &value)?;
            let count =
                shape.iter().try_fold(1_usize, |n, &dim| n.checked_mul(dim.try_into().ok()?));
            Some((element_bytes(&value, &element, count?)?, element, shape))
        });
        let (bytes, element, shape) =
            bytes.ok_or_else(|| missing("is no dense attribute of numbers"))?;
        Ok((element, shape, PyBytes::new(py, &bytes)))
    }
    #[getter]
    fn location(&self) -> Option<String> {
        self.names.call_sites(&self.program).op_location(&self.program, self.op)
    }
    /// The JAX name stack in its location.
    #[getter]
    fn name_stack(&self) -> String {
        self.program.name_stack(self.program.text().get(self.program.loc(self.op)))
    }
    /// The location of its name in the text of the module.
    #[getter]
    fn place<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let span = self.program.name_span(self.op);
        let found = py.detach(|| Locator::new(self.program.text().source()).locate(span?));
        let Some(Location { line, column, end_column, text, text_column }) = found else {
            return Ok(None);
        };
        let class = py.import(intern!(py, "shardcore.errors"))?.getattr(intern!(py, "Place"))?;
        call_own(py, || class.call1((line, column, end_column, text, text_column)).map(Some))
    }
    fn __repr__(&self) -> String {
        let results: Vec<String> =
            self.program.op_results(self.op).map(|value| self.program.value_name(value)).collect();
        let equals = if results.is_empty() { "" } else { " = " };
        format!("<shardcore.Op {}{equals}{}>", results.join(", "), self.name())
    }
    fn __eq__(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.program, &other.program) && self.op == other.op
    }
    fn __hash__(&self) -> usize {
        self.op.index()
    }
}

/// The element type and the shape of the dense attribute `value` of `op`; for a constant, those of
/// its result.
fn dense_type(program: &Program, op: OpId, value: &AttrValue<'_>) -> Option<(String, Vec<i64>)> {
    let AttrValue::Dense { ty, .. } = value else { return None };
    if program.has_traits(op, OpTraits::CONSTANT_LIKE) {
        let ty = program.value_type(program.op_results(op).next()?);
        let Type::RankedTensor { element, .. } = ty else { return None };
        let element = program.types().element_text(element, program.strings());
        return Some((element.to_owned(), ty.static_shape()?));
    }
    let inner = ty.trim().strip_prefix("tensor<")?.strip_suffix('>')?;
    let mut sizes: Vec<&str> = inner.split('x').map(str::trim).collect();
    let element = sizes.pop()?;
    let shape = sizes.into_iter().map(|size| size.parse().ok()).collect::<Option<_>>()?;
    Some((element.to_owned(), shape))
}

#[pymethods]
impl PyBlock {
    #[getter]
    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let value =
            |value| PyValue::new(self.program.clone(), self.names.clone(), value, self.function);
        PyTuple::new(py, self.program.block_args(self.block).map(value))
    }
    /// The ops directly in the block, in order, the terminator last.
    #[getter]
    fn ops<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let op = |op| PyOp {
            program: self.program.clone(),
            names: self.names.clone(),
            op,
            function: self.function,
        };
        PyTuple::new(py, self.program.block_ops(self.block).map(op).collect::<Vec<_>>())
    }
    fn __repr__(&self) -> String {
        let count = self.program.block_ops(self.block).count();
        format!("<shardcore.Block of {count} ops>")
    }
    fn __eq__(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.program, &other.program) && self.block == other.block
    }
    fn __hash__(&self) -> usize {
        self.block.index()
    }
}
