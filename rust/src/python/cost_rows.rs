//! Converts the rows of the cost of a per-device program to dictionaries, with the names, locations
//! and shardings of its source program.

use super::axis::PyAxisRef;
use super::origin::Origin;
use super::work_rows::kernel_row;
use crate::attribute::print_sharding;
use crate::axis::AxisRef;
use crate::compilers::xla_cpu::buffer_assignment::lifetimes::Lifetime;
use crate::compilers::Live;
use crate::cost::collectives::Collective;
use crate::cost::host::HostCopy;
use crate::cost::kernels::Kernel;
use crate::cost::local::Local;
use crate::cost::steps::Step;
use crate::cost::{OpRow, Uncounted};
use crate::error::Span;
use crate::explain::before_reshards;
use crate::index::{FuncId, Id, OpId, ValueId};
use crate::ir::{Program, Type, ValueDef};
use crate::mesh::Mesh;
use crate::mlir::CallSites;
use crate::sharding::TensorSharding;
use crate::spmd::custom_partitioning::called;
use crate::spmd::reshard_steps::Steps;
use crate::work::execution::Loop;
use crate::work::spaces::Space;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// Converts the rows of a program.
pub(super) struct Tables<'a, 'py> {
    py: Python<'py>,
    local: Local<'a>,
    steps: &'a Steps,
    calls: CallSites,
    /// Source lines by location text and function.
    locations: FxHashMap<(&'a str, FuncId), Option<Bound<'py, PyString>>>,
    shardings: FxHashMap<TensorSharding, Bound<'py, PyString>>,
    /// For each op of the source that required collectives, its operands, by the values before
    /// reshards.
    operands: FxHashMap<OpId, FxHashMap<ValueId, ValueId>>,
    entry: Option<FuncId>,
}

/// A dictionary with these keys and values.
macro_rules! record {
    ($py:expr, { $($key:ident: $value:expr),* $(,)? }) => {{
        let dict = PyDict::new($py);
        $(dict.set_item(intern!($py, stringify!($key)), $value)?;)*
        Ok(dict)
    }};
}

impl<'a, 'py> Tables<'a, 'py> {
    /// Converts rows of `program`, which was made from `source`, the program of `origin`.
    pub fn new(
        py: Python<'py>,
        origin: &'a Origin,
        source: &'a Program,
        program: &'a Program,
    ) -> Self {
        Self {
            py,
            local: origin.local(program, source),
            steps: &origin.steps,
            calls: CallSites::new(source),
            locations: FxHashMap::default(),
            shardings: FxHashMap::default(),
            operands: FxHashMap::default(),
            entry: source.entry_function(),
        }
    }
    pub fn list<T>(
        mut self,
        rows: impl Iterator<Item = T>,
        of: impl Fn(&mut Self, T) -> PyResult<Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let rows: Vec<_> = rows.map(|row| of(&mut self, row)).collect::<PyResult<_>>()?;
        PyList::new(self.py, rows)
    }
    pub fn op(&mut self, (row, kind): (&OpRow, &usize)) -> PyResult<Bound<'py, PyDict>> {
        record!(self.py, {
            name: called(self.local.program, row.op),
            location: self.location(row.loc, row.op),
            kind: kind,
            count: row.count,
        })
    }
    pub fn collective(
        &mut self,
        (row, kind): (&Collective, &usize),
    ) -> PyResult<Bound<'py, PyDict>> {
        let source = self.local.source;
        let [operand, result] = self.shardings_of(row);
        let moved = self.moved(row);
        record!(self.py, {
            op: self.op_value_name(row.op),
            kind: kind,
            count: row.count,
            location: self.location(row.loc, row.op),
            cause: row.cause.map(|cause| called(source, cause)),
            cause_op: row.cause.map(Id::index),
            moved: moved.map(Id::index),
            cause_location: row.cause.and_then(|cause| self.source_location(row.cause_loc, cause)),
            operand_sharding: operand.map(|sharding| self.sharding(&sharding)),
            result_sharding: result.map(|sharding| self.sharding(&sharding)),
            rematerializes: self.steps.rematerializes(row.op),
        })
    }
    /// The value of the source whose data a collective sends, directly or after earlier steps of
    /// its reshard. If an operand of the op that required it is the same value after reshards, that
    /// operand.
    fn moved(&mut self, row: &Collective) -> Option<ValueId> {
        let (program, source) = (self.local.program, self.local.source);
        let mut sent = program.operands(row.op).next()?;
        let known = loop {
            if let Some(known) = self.local.source_value(sent) {
                break known;
            }
            let made_by = program.defining_op(sent).filter(|&op| self.steps.has(op))?;
            // In a select between the value and zeros, the first operand is the predicate.
            let is_choice = program.op_name(made_by) == "stablehlo.select";
            sent = program.operands(made_by).nth(usize::from(is_choice))?;
        };
        let Some(cause) = row.cause else { return Some(known) };
        let operands = self.operands.entry(cause).or_insert_with(|| {
            // If several operands are equal, the first is taken.
            let operands: Vec<ValueId> = source.operands(cause).collect();
            operands.into_iter().rev().map(|it| (before_reshards(source, it), it)).collect()
        });
        Some(operands.get(&known).copied().unwrap_or(known))
    }
    /// The shardings of operand and result of a collective: for a step of a reshard, the shardings
    /// before and after the step; for others, those of the first operand and result of the op that
    /// required it.
    fn shardings_of(&self, row: &Collective) -> [Option<TensorSharding>; 2] {
        let (source, steps) = (self.local.source, self.steps);
        let of = |value: Option<ValueId>| {
            value.and_then(|value| source.visible_sharding(value)).map(Cow::into_owned)
        };
        if !steps.has(row.op) {
            let cause =
                row.cause.map(|op| (source.operands(op).next(), source.op_results(op).next()));
            return cause.map_or([None, None], |(operand, result)| [of(operand), of(result)]);
        }
        // Operand and result may be over different meshes.
        let mut found = [None, None];
        for id in row.mesh.get().into_iter().chain(source.meshes().ids()) {
            for (found, own) in found.iter_mut().zip(steps.shardings(row.op, (id, source.mesh(id))))
            {
                *found = found.take().or(own);
            }
            if found.iter().all(Option::is_some) {
                break;
            }
        }
        found
    }
    pub fn step(
        &mut self,
        (step, work, traffic): (&Step, Option<usize>, Option<usize>),
    ) -> PyResult<Bound<'py, PyDict>> {
        record!(self.py, {
            name: called(self.local.program, step.op),
            value: self.op_value_name(step.op),
            location: self.location(step.loc, step.op),
            work: work,
            traffic: traffic,
            collective: step.collective,
            count: step.count,
            live_bytes: step.live_bytes,
        })
    }
    /// The row of a copy between device and host. The name is that of the copied value or, if
    /// partitioning made that value, of the result of the op.
    pub fn host_copy(&mut self, row: &HostCopy) -> PyResult<Bound<'py, PyDict>> {
        let known = self.local.source_value(row.moved.value).map(|value| self.value_name(value));
        let name = known.or_else(|| self.op_value_name(row.op));
        record!(self.py, {
            value: name.unwrap_or_else(|| self.value_name(row.moved.value)),
            to_host: row.moved.to == Space::Host,
            bytes: row.bytes,
            count: row.count,
            location: self.location(row.loc, row.op),
        })
    }
    pub fn uncounted(&mut self, row: &Uncounted) -> PyResult<Bound<'py, PyDict>> {
        record!(self.py, {
            name: &*row.name,
            reason: row.reason,
            missing: "compute",
            count: row.count,
            bytes: row.bytes,
            location: self.location(row.loc, row.op),
        })
    }
    pub fn carried_loop(&mut self, row: &Loop) -> PyResult<Bound<'py, PyDict>> {
        record!(self.py, {
            op: self.op_value_name(row.op),
            trips: row.trips,
            entered: row.entered,
            location: self.location(row.loc, row.op),
        })
    }
    pub fn kernel(&mut self, row: &Kernel) -> PyResult<Bound<'py, PyDict>> {
        let mut ops = Vec::with_capacity(row.ops.len());
        for &(op, loc) in &row.ops {
            ops.push((called(self.local.program, op), self.location(loc, op)));
        }
        // Of combined collectives all are named, otherwise only the first op.
        let named = if row.is_collective { row.ops.len() } else { 1 };
        let values: Vec<_> =
            row.ops.iter().take(named).map(|&(op, _)| self.op_value_name(op)).collect();
        record!(self.py, {
            values: values,
            ops: ops,
            is_copy: row.is_copy,
            is_collective: row.is_collective,
            work: kernel_row(self.local.program, &row.kind),
            bytes_accessed: row.accessed,
            count: row.runs,
        })
    }
    pub fn peak_op(&mut self, op: OpId, loc: Span) -> PyResult<Bound<'py, PyDict>> {
        record!(self.py, {
            name: called(self.local.program, op),
            value: self.op_value_name(op),
            location: self.location(loc, op),
        })
    }
    pub fn moment(
        &mut self,
        (&(op, loc), stack): (&(OpId, Span), String),
    ) -> PyResult<Bound<'py, PyDict>> {
        let row = self.peak_op(op, loc)?;
        row.set_item("stack", stack)?;
        Ok(row)
    }
    pub fn lifetime(
        &mut self,
        (value, stack): (&Lifetime, String),
    ) -> PyResult<Bound<'py, PyDict>> {
        let row = self.live(&value.live)?;
        row.set_item("role", value.role.as_str())?;
        row.set_item("first", value.span.0)?;
        row.set_item("last", value.span.1)?;
        row.set_item("stack", stack)?;
        Ok(row)
    }
    pub fn live(&mut self, live: &Live) -> PyResult<Bound<'py, PyDict>> {
        let (local, value) = (self.local, live.value);
        let known = local.source_value(value);
        let (op, location) = match local.program.def(value) {
            ValueDef::Result(op) => {
                (Some(called(local.program, op)), self.location(local.program.loc(op), op))
            }
            ValueDef::Arg(_) => {
                let place = known.and_then(|value| self.calls.value_location(local.source, value));
                (None, place.map(|place| PyString::new(self.py, &place)))
            }
        };
        let own = tensor(local.program, value);
        let global =
            known.map_or_else(|| tensor(local.program, value), |value| tensor(local.source, value));
        let sharding = local.sharding(value);
        let local_dims: Option<Vec<i64>> = own.0.iter().copied().collect();
        record!(self.py, {
            name: self.value_name(value),
            op: op,
            bytes: live.bytes,
            shape: PyTuple::new(self.py, global.0)?,
            local_shape: local_dims.map(|dims| PyTuple::new(self.py, dims)).transpose()?,
            dtype: own.1,
            sharding: sharding.map(|sharding| self.sharding(&sharding)),
            location: location,
        })
    }
    /// The name stacks of these locations; see [`Program::name_stack`].
    pub fn name_stacks(&self, locs: impl Iterator<Item = Span>) -> Vec<String> {
        let (program, source) = (self.local.program, self.local.source);
        let mut known: FxHashMap<&str, String> = FxHashMap::default();
        let stack = |loc: Span| {
            let text = program.text().get(loc);
            known.entry(text).or_insert_with(|| source.name_stack(text)).clone()
        };
        locs.map(stack).collect()
    }
    /// The source line of `op` of the per-device program, whose location is `loc`.
    fn location(&mut self, loc: Span, op: OpId) -> Option<Bound<'py, PyString>> {
        let program = self.local.program;
        let function = program.function_of(program.top_level_op(op));
        self.line(program.text().get(loc), function)
    }
    /// The source line of `op` of the source, whose location is `loc`.
    fn source_location(&mut self, loc: Span, op: OpId) -> Option<Bound<'py, PyString>> {
        let source = self.local.source;
        let function = source.function_of(source.top_level_op(op));
        self.line(self.local.program.text().get(loc), function)
    }
    fn line(&mut self, text: &'a str, function: FuncId) -> Option<Bound<'py, PyString>> {
        let (py, source, calls) = (self.py, self.local.source, &self.calls);
        let find = || calls.location(source, text, function).map(|line| PyString::new(py, &line));
        self.locations.entry((text, function)).or_insert_with(find).clone()
    }
    fn sharding(&mut self, sharding: &TensorSharding) -> Bound<'py, PyString> {
        if let Some(text) = self.shardings.get(sharding) {
            return text.clone();
        }
        let text = PyString::new(self.py, &print_sharding(sharding, self.local.source));
        self.shardings.insert(sharding.clone(), text.clone());
        text
    }
    /// The name of the first result of `op`.
    pub fn op_value_name(&self, op: OpId) -> Option<String> {
        let first: Option<ValueId> = self.local.program.op_results(op).next();
        first.map(|value| self.value_name(value))
    }
    /// The name of `value`, in the source if it exists there; with that of its function unless it
    /// is in the entry function.
    pub fn value_name(&self, value: ValueId) -> String {
        let known = self.local.source_value(value);
        let (program, value) =
            known.map_or((self.local.program, value), |value| (self.local.source, value));
        let name = program.value_name(value);
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

/// The shape and the element type of a value; empty and `None` if it is not a tensor.
fn tensor(program: &Program, value: ValueId) -> (Vec<Option<i64>>, Option<&str>) {
    match program.value_type(value) {
        Type::RankedTensor { shape, element, .. } => {
            (shape.clone(), element.text.get().map(|id| program.strings().get(id)))
        }
        _ => (Vec::new(), None),
    }
}

/// `axes` of `mesh` as Python objects.
pub(super) fn axis_refs(axes: &[AxisRef], mesh: &Mesh) -> Vec<PyAxisRef> {
    axes.iter().map(|&axis| PyAxisRef::from_axis(axis, mesh)).collect()
}
