//! The explanations behind `Result.why`: where the axes of a value come from.

use super::arguments::Int;
use super::axis::PyAxisRef;
use super::errors::raise_unlocated;
use super::names::{ambiguous, Names};
use super::origin::PyOrigin;
use super::sharding::PyTensorSharding;
use super::value::PyValue;
use crate::attribute::write_free_axis;
use crate::explain::{AxisSource, CollectiveContext, Explained, Missing, Source, Step, Visit};
use crate::index::{Id, OpId, ShardingId, ValueId};
use crate::ir::{Direction, Program, ValueDef};
use crate::mlir::Denoted;
use crate::propagation::explain::AxisName;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Explains a completed program; see the stub.
#[pyclass(name = "Explainer", module = "shardcore", frozen)]
pub struct PyExplainer {
    explained: Mutex<Explained>,
    given: Arc<Program>,
    result: Arc<Program>,
    names: Names,
    result_names: Names,
}

impl PyExplainer {
    /// The explainer of `result`, the completed program, which was made from `given`.
    pub(super) fn new(explained: Explained, given: Arc<Program>, result: Arc<Program>) -> Self {
        let explained = Mutex::new(explained);
        Self { explained, given, result, names: Names::default(), result_names: Names::default() }
    }
}

#[pymethods]
impl PyExplainer {
    /// The value called `name`, `%12` or `@helper %12`: in the given program, or else in the
    /// completed one.
    fn find(&self, py: Python<'_>, name: &str) -> PyResult<Option<usize>> {
        let find = |names: &Names, program: &Arc<Program>| match names.split(program, name) {
            Ok((Some(function), path)) => {
                let path = if path.starts_with('%') { path.into() } else { format!("%{path}") };
                (names.find(program, function, &path), Some(function))
            }
            _ => (Denoted::Nothing, None),
        };
        let (given, function) = find(&self.names, &self.given);
        let known = given.clone().value().filter(|&value| self.is_left(value));
        let found = known.or_else(|| find(&self.result_names, &self.result).0.value());
        match (found, given, function) {
            (None, Denoted::Several(several), Some(function)) => {
                let listed: Vec<String> = several
                    .iter()
                    .map(|name| self.names.in_function(&self.given, function, name))
                    .collect();
                Err(raise_unlocated(py, vec![ambiguous(name, &listed)]))
            }
            _ => Ok(found.map(Id::index)),
        }
    }
    /// The number of `value`, if it belongs to the given program or the completed one.
    fn number(&self, value: &PyValue) -> Option<usize> {
        let known = value.id_in(&self.given).or_else(|| value.id_in(&self.result));
        known.filter(|&value| self.is_left(value)).map(Id::index)
    }
    /// Where the axes of the value with this number come from.
    fn of_value<'py>(&self, py: Python<'py>, value: Int<usize>) -> PyResult<Bound<'py, PyList>> {
        let value = id(value);
        let axes = if self.is_left(value) {
            let mut explained = self.explained.lock().unwrap_or_else(PoisonError::into_inner);
            explained.value(&self.result, value)
        } else {
            Vec::new()
        };
        list(py, &axes)
    }
    /// Where the axes of a result of the entry function come from.
    fn of_result<'py>(&self, py: Python<'py>, index: Int<usize>) -> PyResult<Bound<'py, PyList>> {
        let Int(index) = index;
        let mut explained = self.explained.lock().unwrap_or_else(PoisonError::into_inner);
        let axes = explained.func_result(&self.result, index);
        drop(explained);
        list(py, &axes)
    }
    /// Why an axis is not on a dim of the value, or result of the entry function, with this number.
    #[pyo3(signature = (number, is_result, dim, axis))]
    fn missing<'py>(
        &self,
        py: Python<'py>,
        number: Int<usize>,
        is_result: bool,
        dim: Int<usize>,
        axis: &Bound<'py, PyAxisRef>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let axis = axis.get();
        let axis = AxisName { name: axis.name.to_string(), sub: axis.sub };
        let mut explained = self.explained.lock().unwrap_or_else(PoisonError::into_inner);
        let found = if is_result {
            explained.missing_in_result(number.0, dim.0, &axis)
        } else {
            let value = id(number);
            self.is_left(value)
                .then(|| explained.missing(&self.result, value, dim.0, &axis))
                .flatten()
        };
        drop(explained);
        found.map(|found| missing_dict(py, &found)).transpose()
    }
    /// The operands and results of an op in the program that a per-device program was made from, whether
    /// it returns from the entry function, and the arguments that it depends on.
    #[allow(clippy::type_complexity)] // It is a tuple in Python.
    fn around(
        &self,
        py: Python<'_>,
        origin: &Bound<'_, PyOrigin>,
        op: Int<usize>,
    ) -> PyResult<Option<(Vec<(usize, String)>, Vec<(usize, String)>, bool, Vec<usize>)>> {
        let origin = &*origin.get().0;
        let source = origin.source(py)?;
        if op.0 >= source.num_op_ids() {
            return Ok(None);
        }
        let op = OpId::from_index(op.0);
        let op = origin.originals.as_ref().map_or(op, |originals| originals.op(op));
        let explained = self.explained.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(around) = explained.around(&source, op) else { return Ok(None) };
        let named = |values: Vec<ValueId>| {
            let left = values.into_iter().filter(|&value| self.is_left(value));
            left.map(|value| (value.index(), explained.name(value))).collect()
        };
        let CollectiveContext { operands, results, returns, arguments } = around;
        Ok(Some((named(operands), named(results), returns, arguments)))
    }
    /// The greedy runs with the changes of each visit.
    fn steps<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let explained = self.explained.lock().unwrap_or_else(PoisonError::into_inner);
        let frames = explained.frames();
        let ids = frames.iter().flat_map(|frame| &frame.visits);
        let ids = ids.flat_map(|visit| &visit.changes).flat_map(|&(_, old, new)| [old, new]);
        let ids: FxHashSet<ShardingId> = ids.collect();
        let texts = ids.into_iter().map(|id| (id, explained.sharding_text(id)));
        let texts: Vec<(ShardingId, Option<String>)> = texts.collect();
        // No lock is held while Python runs, which making objects may do.
        drop(explained);
        let mut by_id: FxHashMap<ShardingId, Option<Bound<'py, PyString>>> = FxHashMap::default();
        for (id, text) in texts {
            by_id.insert(id, text.map(|text| PyString::new(py, &text)));
        }
        let list = PyList::empty(py);
        for frame in frames {
            let visits = PyList::empty(py);
            for Visit { op, changes } in frame.visits {
                let changes = changes.into_iter().map(|(name, old, new)| {
                    (name, by_id.get(&old).cloned().flatten(), by_id.get(&new).cloned().flatten())
                });
                let (op, line) = op.map_or((None, None), |(op, line)| (Some(op), line));
                visits.append((op, line, changes.collect::<Vec<_>>()))?;
            }
            list.append((frame.priority, frame.step, frame.strategy, visits))?;
        }
        Ok(list)
    }
    /// The annotation of the value with this number, if it has one.
    fn annotation<'py>(
        &self,
        py: Python<'py>,
        value: Int<usize>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let value = id(value);
        let explained = self.explained.lock().unwrap_or_else(PoisonError::into_inner);
        let found = self.is_left(value).then(|| explained.annotation(value)).flatten();
        drop(explained);
        found.map(|source| source_dict(py, &source)).transpose()
    }
    /// The sharding of the value with this number, its rank, and for an argument its path in the
    /// user's program.
    fn describe(&self, value: Int<usize>) -> Option<Described> {
        let (value, result) = (id(value), &*self.result);
        if !self.is_left(value) {
            return None;
        }
        let sharding = result.visible_sharding(value);
        let sharding = sharding.map(|sharding| PyTensorSharding::of(&self.result, &sharding));
        let entry = result.entry_function().and_then(|entry| result.func_body(entry).get());
        let is_argument = matches!(result.def(value), ValueDef::Arg(block) if Some(block) == entry);
        let label = is_argument.then(|| result.value_location(value)).flatten();
        Some((sharding, result.types()[result.type_of(value)].rank(), label))
    }
}

/// The sharding, the rank and the path of a value.
type Described = (Option<PyTensorSharding>, Option<usize>, Option<String>);

impl PyExplainer {
    /// Whether `value` exists in the completed program.
    fn is_left(&self, value: ValueId) -> bool {
        if value.index() >= self.result.num_value_ids() {
            return false;
        }
        match self.result.def(value) {
            ValueDef::Result(op) => !self.result.is_erased(op),
            ValueDef::Arg(block) => !self.result.is_erased(self.result.block_parent_op(block)),
        }
    }
}

/// The value with this number; `NONE` if there is none.
fn id(Int(number): Int<usize>) -> ValueId {
    u32::try_from(number).map_or(ValueId::NONE, |number| ValueId::from_index(number as usize))
}

fn list<'py>(py: Python<'py>, axes: &[AxisSource]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for found in axes {
        let dict = PyDict::new(py);
        dict.set_item("axis", axis_text(&found.axis))?;
        dict.set_item("dim", found.dim)?;
        dict.set_item("source", source_dict(py, &found.source)?)?;
        let chain = PyList::empty(py);
        for step in &found.chain {
            chain.append(step_dict(py, step)?)?;
        }
        dict.set_item("chain", chain)?;
        list.append(dict)?;
    }
    Ok(list)
}

fn source_dict<'py>(py: Python<'py>, source: &Source) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", &source.name)?;
    dict.set_item("kind", source.kind.as_str())?;
    dict.set_item("label", &source.label)?;
    dict.set_item("location", &source.location)?;
    dict.set_item("sharding", &source.sharding)?;
    Ok(dict)
}

fn missing_dict<'py>(py: Python<'py>, found: &Missing) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("code", found.reason.as_str())?;
    dict.set_item("at", &found.at)?;
    dict.set_item("op", found.op.as_ref().map(|(name, _)| name))?;
    dict.set_item("location", found.op.as_ref().and_then(|(_, line)| line.as_ref()))?;
    let instead = found.instead.as_ref().map(|(value, dim, axes)| {
        let axes: Vec<String> = axes.iter().map(axis_text).collect();
        (value, dim, axes)
    });
    dict.set_item("instead", instead)?;
    Ok(dict)
}

fn axis_text(axis: &AxisName) -> String {
    let mut text = String::new();
    write_free_axis(&mut text, &axis.name, axis.sub);
    text
}

fn step_dict<'py>(py: Python<'py>, step: &Step) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("from", &step.from)?;
    dict.set_item("value", &step.value)?;
    dict.set_item("op", &step.op)?;
    dict.set_item("line", &step.line)?;
    dict.set_item("factor", &step.factor)?;
    let direction = match step.direction {
        Direction::Forward => "forward",
        Direction::Backward => "backward",
        Direction::Both | Direction::None => "both",
    };
    dict.set_item("direction", direction)?;
    dict.set_item("priority", step.priority)?;
    dict.set_item("step", step.step)?;
    Ok(dict)
}
