//! `program_cost`: the figures of [`crate::cost`] as plain data, for `shardcore/costs` to put times on.

use super::errors::raise;
use super::mesh::PyMesh;
use super::module::PyModule;
use super::rules::registry;
use crate::attribute::print_sharding;
use crate::axis::AxisRef;
use crate::cost::collectives::Collective;
use crate::cost::memory::{Live, Memory};
use crate::cost::tensors::{local_tensor, sharding_at};
use crate::cost::{program_cost as cost_of, OpRow, ProgramCost};
use crate::index::{FuncId, Id, MeshId, OpId, StrId, ValueId};
use crate::ir::{Program, Type, ValueDef};
use crate::mesh::Mesh;
use crate::sharding::TensorSharding;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What `module`, a program with explicit collectives, costs one device.
#[pyfunction]
pub(super) fn program_cost<'py>(
    py: Python<'py>,
    module: &Bound<'py, PyModule>,
) -> PyResult<Bound<'py, PyDict>> {
    let (program, filename) = {
        let module = module.borrow();
        (module.program.clone(), module.filename.clone())
    };
    let mut rules = registry().legalizing_chlo();
    let (program, cost) = py.detach(move || {
        let mut program = Arc::unwrap_or_clone(program);
        let cost = cost_of(&mut program, &mut rules);
        (program, cost)
    });
    let cost = cost.map_err(|error| raise(py, &error, program.text().source(), &filename))?;
    Tables {
        py,
        program: &program,
        locations: FxHashMap::default(),
        shardings: FxHashMap::default(),
        entry: program.entry_function(),
    }
    .all(&cost)
}

struct Tables<'a, 'py> {
    py: Python<'py>,
    program: &'a Program,
    locations: FxHashMap<&'a str, Option<String>>,
    shardings: FxHashMap<TensorSharding, String>,
    entry: Option<FuncId>,
}

impl<'a, 'py> Tables<'a, 'py> {
    fn all(mut self, cost: &ProgramCost) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(self.py);
        dict.set_item("ops", self.list(&cost.ops, Self::op)?)?;
        let meshes: Vec<PyMesh> = self
            .program
            .meshes()
            .iter()
            .map(|row| PyMesh::from_verified(row.mesh.clone()))
            .collect();
        dict.set_item("meshes", meshes)?;
        dict.set_item("collectives", self.list(&cost.collectives, Self::collective)?)?;
        let uncounted = self.list(&cost.uncounted, |this, row| {
            let location = this.location(row.op);
            (&*row.name, row.reason, row.count, location).into_pyobject(this.py)
        })?;
        dict.set_item("uncounted", uncounted)?;
        let loops = self.list(&cost.loops, |this, row| {
            let (name, location) = (this.op_value_name(row.op), this.location(row.op));
            (name, row.trips, row.entered, location).into_pyobject(this.py)
        })?;
        dict.set_item("loops", loops)?;
        dict.set_item("memory", self.memory(&cost.memory)?)?;
        Ok(dict)
    }
    fn list<T>(
        &mut self,
        rows: &[T],
        of: impl Fn(&mut Self, &T) -> PyResult<Bound<'py, PyTuple>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let rows: Vec<_> = rows.iter().map(|row| of(self, row)).collect::<PyResult<_>>()?;
        PyList::new(self.py, rows)
    }
    /// `(name, location, dtype, flops, transcendentals, bytes, count, once, is_collective)`
    fn op(&mut self, row: &OpRow) -> PyResult<Bound<'py, PyTuple>> {
        let location = self.location(row.op);
        let name = self.program.op_name(row.op);
        let dtype = self.dtype(row.element);
        let work = (row.work.flops, row.work.transcendentals, row.traffic);
        (name, location, dtype, work.0, work.1, work.2, row.count, row.once, row.is_collective)
            .into_pyobject(self.py)
    }
    /// `(name, kind, mesh, axes, count, bytes, location, cause, cause_location, operand_sharding,
    /// result_sharding)`, the mesh by its place among the meshes, axes as `(name, pre_size, size)`.
    fn collective(&mut self, row: &Collective) -> PyResult<Bound<'py, PyTuple>> {
        let program = self.program;
        let mesh = row.mesh.get().map(MeshId::index);
        let axes = row.mesh.get().zip(row.axes.as_ref());
        let axes = axes.map(|(id, axes)| named(axes, program.mesh(id)));
        let cause = row.cause.map(|cause| program.op_name(cause));
        let cause_location = row.cause.and_then(|cause| self.location(cause));
        let location = self.location(row.op);
        (
            self.op_value_name(row.op),
            row.kind.as_str(),
            mesh,
            axes,
            row.count,
            row.bytes,
            location,
            cause,
            cause_location,
            self.sharding(row.operand),
            self.sharding(row.result),
        )
            .into_pyobject(self.py)
    }
    fn memory(&mut self, memory: &Memory) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(self.py);
        dict.set_item("argument_bytes", memory.argument_bytes)?;
        dict.set_item("output_bytes", memory.output_bytes)?;
        dict.set_item("alias_bytes", memory.alias_bytes)?;
        dict.set_item("peak_bytes", memory.peak_bytes)?;
        let peak = memory
            .peak_op
            .map(|op| (self.program.op_name(op), self.op_value_name(op), self.location(op)));
        dict.set_item("peak_op", peak)?;
        dict.set_item("live", self.list(&memory.live, Self::live)?)?;
        Ok(dict)
    }
    /// `(name, op, bytes, shape, local_shape, dtype, sharding, location)`
    fn live(&mut self, live: &Live) -> PyResult<Bound<'py, PyTuple>> {
        let (program, value) = (self.program, live.value);
        let (op, location) = match program.def(value) {
            ValueDef::Result(op) => (Some(program.op_name(op)), self.location(op)),
            ValueDef::Arg(_) => (None, program.value_location(value)),
        };
        let (shape, element) = match &program.types()[program.type_of(value)] {
            Type::RankedTensor { shape, element, .. } => (shape.clone(), element.text),
            _ => (Vec::new(), StrId::NONE),
        };
        let sharding = sharding_at(program, value);
        let local = local_tensor(program, program.type_of(value), sharding.as_deref()).dims;
        let local = local.map(|dims| dims.to_vec());
        (
            self.value_name(value),
            op,
            live.bytes,
            PyTuple::new(self.py, shape)?,
            local.map(|dims| PyTuple::new(self.py, dims)).transpose()?,
            self.dtype(element),
            self.sharding(value),
            location,
        )
            .into_pyobject(self.py)
    }
    fn dtype(&self, element: StrId) -> Option<&'a str> {
        element.get().map(|id| self.program.str(id))
    }
    fn location(&mut self, op: OpId) -> Option<String> {
        let program = self.program;
        let text = program.text().get(program.loc(op));
        self.locations.entry(text).or_insert_with(|| program.op_location(op)).clone()
    }
    fn sharding(&mut self, value: ValueId) -> Option<String> {
        let program = self.program;
        let sharding = sharding_at(program, value.get()?)?;
        if let Some(text) = self.shardings.get(&*sharding) {
            return Some(text.clone());
        }
        let text = print_sharding(&sharding, program);
        self.shardings.insert(sharding.into_owned(), text.clone());
        Some(text)
    }
    /// The name of the first result of `op`.
    fn op_value_name(&self, op: OpId) -> Option<String> {
        let first: Option<ValueId> = self.program.op_results(op).next();
        first.map(|value| self.value_name(value))
    }
    /// The name of `value`, with that of its function unless that is the entry function.
    fn value_name(&self, value: ValueId) -> String {
        let (program, name) = (self.program, self.program.value_name(value));
        let inside = match program.def(value) {
            ValueDef::Result(op) => op,
            ValueDef::Arg(block) => program.block_parent_op(block),
        };
        let function = program.function_of(program.top_level_op(inside));
        if function.is_none() || Some(function) == self.entry {
            return name;
        }
        format!("@{} {name}", program.str(program.func_name(function)))
    }
}

/// `axes` as name, pre-size and size: a whole axis has pre-size 1 and its own size.
fn named(axes: &[AxisRef], mesh: &Mesh) -> Vec<(String, i64, i64)> {
    let named = |axis: &AxisRef| {
        let name = mesh.axis_name(axis.axis).to_owned();
        (name, axis.sub.map_or(1, |sub| sub.pre_size), axis.size(mesh))
    };
    axes.iter().map(named).collect()
}
