//! `program_cost`: the figures of [`crate::cost`] as plain data, from which `shardcore/costs` computes times.

use super::axis::PyAxisRef;
use super::errors::raise;
use super::mesh::PyMesh;
use super::module::PyModule;
use super::rules::registry;
use crate::attribute::print_sharding;
use crate::axis::AxisRef;
use crate::cost::collectives::Collective;
use crate::cost::execution::Loop;
use crate::cost::memory::{Live, Memory};
use crate::cost::tensors::local_tensor;
use crate::cost::{program_cost as cost_of, OpRow, ProgramCost, Uncounted};
use crate::error::Span;
use crate::index::{FuncId, OpId, StrId, ValueId};
use crate::ir::{Program, Type, ValueDef};
use crate::mesh::Mesh;
use crate::mlir::CallSites;
use crate::sharding::TensorSharding;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The cost of `module`, a program with explicit collectives, on one device.
#[pyfunction]
pub(super) fn program_cost<'py>(
    py: Python<'py>,
    module: &Bound<'py, PyModule>,
) -> PyResult<Bound<'py, PyDict>> {
    let (program, filename) = (module.get().program(py)?, module.get().filename.clone());
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
        calls: CallSites::new(&program),
        locations: FxHashMap::default(),
        shardings: FxHashMap::default(),
        entry: program.entry_function(),
    }
    .all(&cost)
}

struct Tables<'a, 'py> {
    py: Python<'py>,
    program: &'a Program,
    calls: CallSites,
    /// By text and function.
    locations: FxHashMap<(&'a str, FuncId), Option<String>>,
    shardings: FxHashMap<TensorSharding, String>,
    entry: Option<FuncId>,
}

/// A dictionary of these keys and values.
macro_rules! record {
    ($py:expr, { $($key:ident: $value:expr),* $(,)? }) => {{
        let dict = PyDict::new($py);
        $(dict.set_item(stringify!($key), $value)?;)*
        Ok(dict)
    }};
}

impl<'a, 'py> Tables<'a, 'py> {
    fn all(mut self, cost: &ProgramCost) -> PyResult<Bound<'py, PyDict>> {
        record!(self.py, {
            ops: self.list(&cost.ops, Self::op)?,
            collectives: self.list(&cost.collectives, Self::collective)?,
            uncounted: self.list(&cost.uncounted, Self::uncounted)?,
            loops: self.list(&cost.loops, Self::carried_loop)?,
            memory: self.memory(&cost.memory)?,
            is_saturated: cost.is_saturated,
        })
    }
    fn list<T>(
        &mut self,
        rows: &[T],
        of: impl Fn(&mut Self, &T) -> PyResult<Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let rows: Vec<_> = rows.iter().map(|row| of(self, row)).collect::<PyResult<_>>()?;
        PyList::new(self.py, rows)
    }
    fn op(&mut self, row: &OpRow) -> PyResult<Bound<'py, PyDict>> {
        record!(self.py, {
            name: self.program.op_name(row.op),
            location: self.location(row.loc, row.op),
            dtype: self.dtype(row.element),
            flops: row.work.flops,
            transcendentals: row.work.transcendentals,
            bytes: row.traffic,
            count: row.count,
            count_counting_loops_once: row.once,
            is_collective: row.is_collective,
        })
    }
    fn collective(&mut self, row: &Collective) -> PyResult<Bound<'py, PyDict>> {
        let program = self.program;
        let mesh = row.mesh.get().map(|id| &program.meshes()[id].mesh);
        let axes = mesh.zip(row.axes.as_ref()).map(|(mesh, axes)| axis_refs(axes, mesh));
        record!(self.py, {
            value: self.op_value_name(row.op),
            kind: row.kind.as_str(),
            mesh: mesh.map(|mesh| PyMesh::from_verified(mesh.clone())),
            axes: axes,
            devices: row.devices,
            count: row.count,
            bytes: row.bytes,
            location: self.location(row.loc, row.op),
            cause: row.cause.map(|cause| program.op_name(cause)),
            cause_location: row.cause.and_then(|cause| self.location(row.cause_loc, cause)),
            operand_sharding: self.sharding(row.operand),
            result_sharding: self.sharding(row.result),
        })
    }
    fn uncounted(&mut self, row: &Uncounted) -> PyResult<Bound<'py, PyDict>> {
        record!(self.py, {
            name: &*row.name,
            reason: row.reason,
            missing: if row.is_communication { "communication" } else { "compute" },
            count: row.count,
            bytes: row.bytes,
            location: self.location(row.loc, row.op),
        })
    }
    fn carried_loop(&mut self, row: &Loop) -> PyResult<Bound<'py, PyDict>> {
        record!(self.py, {
            op: self.op_value_name(row.op),
            trips: row.trips,
            entered: row.entered,
            location: self.location(row.loc, row.op),
        })
    }
    fn memory(&mut self, memory: &Memory) -> PyResult<Bound<'py, PyDict>> {
        let peak = memory.peak_op.map(|op| self.peak_op(op, memory.peak_loc)).transpose()?;
        record!(self.py, {
            argument_bytes: memory.argument_bytes,
            output_bytes: memory.output_bytes,
            alias_bytes: memory.alias_bytes,
            peak_bytes: memory.peak_bytes,
            peak_op: peak,
            live_at_peak: self.list(&memory.live, Self::live)?,
        })
    }
    fn peak_op(&mut self, op: OpId, loc: Span) -> PyResult<Bound<'py, PyDict>> {
        record!(self.py, {
            name: self.program.op_name(op),
            value: self.op_value_name(op),
            location: self.location(loc, op),
        })
    }
    fn live(&mut self, live: &Live) -> PyResult<Bound<'py, PyDict>> {
        let (program, value) = (self.program, live.value);
        let (op, location) = match program.def(value) {
            ValueDef::Result(op) => (Some(program.op_name(op)), self.location(program.loc(op), op)),
            ValueDef::Arg(_) => (None, self.calls.value_location(program, value)),
        };
        let (shape, element) = match &program.types()[program.type_of(value)] {
            Type::RankedTensor { shape, element, .. } => (shape.clone(), element.text),
            _ => (Vec::new(), StrId::NONE),
        };
        let sharding = program.visible_sharding(value);
        let local = local_tensor(program, program.type_of(value), sharding.as_deref()).dims;
        record!(self.py, {
            name: self.value_name(value),
            op: op,
            bytes: live.bytes,
            shape: PyTuple::new(self.py, shape)?,
            local_shape: local.map(|dims| PyTuple::new(self.py, dims.to_vec())).transpose()?,
            dtype: self.dtype(element),
            sharding: self.sharding(value),
            location: location,
        })
    }
    fn dtype(&self, element: StrId) -> Option<&'a str> {
        element.get().map(|id| self.program.strings().get(id))
    }
    /// The source line of `op`, whose location is `loc`.
    fn location(&mut self, loc: Span, op: OpId) -> Option<String> {
        let (program, calls) = (self.program, &self.calls);
        let text = program.text().get(loc);
        let function = program.function_of(program.top_level_op(op));
        let find = || calls.location(program, text, function);
        self.locations.entry((text, function)).or_insert_with(find).clone()
    }
    fn sharding(&mut self, value: ValueId) -> Option<String> {
        let program = self.program;
        let sharding = program.visible_sharding(value.get()?)?;
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

fn axis_refs(axes: &[AxisRef], mesh: &Mesh) -> Vec<PyAxisRef> {
    axes.iter().map(|&axis| PyAxisRef::from_axis(axis, mesh)).collect()
}
