//! `shardcore.Module`.

use super::arguments::Int;
use super::attribute::to_python;
use super::completion::Request;
use super::composites::without_composites;
use super::edges::PyDataFlowEdge;
use super::errors::{raise, raise_unlocated};
use super::factor_table::PyFactorTable;
use super::hlo::imported;
use super::mesh::named_meshes;
use super::names::{called, LastNames};
use super::op::PyOp;
use super::port::PyPort;
use super::result::PyPropagationResult;
use super::room::room_for_objects;
use super::rule::PyOpShardingRule;
use super::run_options::RunOptions;
use super::shardy::version;
use super::source::{source, source_of_file};
use super::text::text;
use super::totals::totals_dict;
use super::user_code::{self, call_own, own_function};
use super::value::PyValue;
use crate::error::Error;
use crate::import::hlo_annotations::HLO_SHARDING;
use crate::import::sdy_round_trip::is_exported;
use crate::index::{FuncId, ValueId};
use crate::ir::{Program, Source};
use crate::mlir::{self, Parsed};
use crate::module::{Maker, Module, Origin, Read, Ticket};
use crate::shardy::Version;
use crate::verify::verify_read;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use rustc_hash::FxHashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A parsed MLIR module; see the stub for the contract.
#[pyclass(name = "Module", module = "shardcore", frozen)]
pub struct PyModule {
    /// The program, which values refer to; [`crate::module`] describes its state while passes run
    /// on it.
    pub(super) held: Module,
    /// The filename in errors.
    pub(super) filename: Arc<str>,
    pub(super) names: LastNames,
}

impl PyModule {
    /// A module of `program`, with `filename` in its errors.
    pub(super) fn new(program: impl Into<Arc<Program>>, filename: Arc<str>) -> Self {
        Self { held: Module::new(program), filename, names: LastNames::default() }
    }
    /// A module of `program`, which `make` can make again, with `filename` in its errors.
    pub(super) fn made_by(program: Program, make: Arc<Maker>, filename: Arc<str>) -> Self {
        let (held, names) = (Module::made_by(program, make), LastNames::default());
        Self { held, filename, names }
    }
    /// A module with the last state of this one, which both share.
    pub(super) fn share(&self) -> Self {
        let (held, names) = (self.held.share(), LastNames::default());
        Self { held, filename: self.filename.clone(), names }
    }
    /// The last state of the program, see [`crate::module`].
    pub(super) fn program(&self, py: Python<'_>) -> PyResult<Arc<Program>> {
        /// The pause between two attempts to read the state.
        const PAUSE: Duration = Duration::from_millis(2);
        loop {
            match self.held.read() {
                Read::Ready(program) => return Ok(program),
                Read::Make(ticket) => return self.make(py, &ticket),
                Read::Wait => py.detach(|| std::thread::sleep(PAUSE)),
                Read::Lost => {
                    return Err(self.raise(py, &Error::internal("a program was lost"), ""))
                }
            }
            py.check_signals()?;
        }
    }
    /// Rebuilds the program of `ticket`.
    fn make(&self, py: Python<'_>, ticket: &Ticket<Origin>) -> PyResult<Arc<Program>> {
        let mut raised = None;
        let made = py.detach(|| {
            ticket.origin.make(&mut |_| {
                let checked = user_code::attach(check_signals);
                checked.map_err(|error| raised = Some(error)).is_ok()
            })
        });
        let (made, error) = match made {
            Ok(program) => (Some(program), None),
            Err(error) => (None, Some(error)),
        };
        match (self.held.made(ticket, made), error) {
            (Some(program), _) => Ok(program),
            (None, Some(error)) => Err(raised.unwrap_or_else(|| self.raise(py, &error, ""))),
            (None, None) => Err(self.raise(py, &Error::internal("a program was lost"), "")),
        }
    }
    fn raise(&self, py: Python<'_>, error: &Error, text: &str) -> PyErr {
        raise(py, error, text, &self.filename)
    }
    /// Parses `source` for version `shardy`, and verifies it.
    pub(super) fn load(
        py: Python<'_>,
        source: &Source,
        filename: &str,
        shardy: Version,
    ) -> PyResult<Self> {
        let parsed = py.detach(|| {
            let Parsed { program, findings } = mlir::read(source.clone(), shardy)?;
            Error::check(verify_read(&program, findings))?;
            Ok(program)
        });
        let text = (**source).as_ref();
        let program = parsed.map_err(|error: Error| raise(py, &error, text, filename))?;
        let (held, names) = (Module::parsed(program, source.clone()), LastNames::default());
        Ok(Self { held, filename: filename.into(), names })
    }
    /// The module with imported shardings: what Shardy exported, or, if there are no `sdy`
    /// shardings, `mhlo.sharding` attributes. `None` if it has none.
    pub(super) fn with_hlo_shardings(&self, py: Python<'_>) -> PyResult<Option<Self>> {
        let program = self.program(py)?;
        let has_notation =
            || program.shardings().is_empty() && program.find_name(HLO_SHARDING).is_some();
        if !py.detach(|| is_exported(&program)) && !has_notation() {
            return Ok(None);
        }
        imported(py, self, None)
    }
}

#[pymethods]
impl PyModule {
    #[staticmethod]
    #[pyo3(signature = (text, *, filename = "<string>", shardy = None))]
    fn parse(
        py: Python<'_>,
        text: &Bound<'_, PyAny>,
        filename: &str,
        shardy: Option<&str>,
    ) -> PyResult<Self> {
        let shardy = version(py, shardy)?;
        Self::load(py, &source(text, filename)?, filename, shardy)
    }

    #[staticmethod]
    #[pyo3(signature = (path, *, shardy = None))]
    fn from_file(py: Python<'_>, path: PathBuf, shardy: Option<&str>) -> PyResult<Self> {
        let (name, shardy) = (path.display().to_string(), version(py, shardy)?);
        Self::load(py, &source_of_file(py, &path, &name)?, &name, shardy)
    }

    fn __str__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        text(py, &*self.program(py)?)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let program = self.program(py)?;
        let functions: Vec<String> = program
            .functions_in_order()
            .into_iter()
            .take(4)
            .map(|id| format!("@{}", program.str(program.func_name(id))))
            .collect();
        let meshes: Vec<String> = program
            .meshes()
            .iter()
            .filter_map(|mesh| {
                let symbol = program.str(mesh.symbol?);
                Some(format!("@{symbol} {}", crate::attribute::print_mesh(&mesh.mesh)))
            })
            .collect();
        Ok(format!(
            "<shardcore.Module of {} {}: {}{}; meshes: {}>",
            program.num_ops(),
            if program.num_ops() == 1 { "op" } else { "ops" },
            if functions.is_empty() { "no function".into() } else { functions.join(", ") },
            if program.functions_in_order().len() > 4 { ", ..." } else { "" },
            if meshes.is_empty() { "none".into() } else { meshes.join(", ") },
        ))
    }

    /// The program's version of Shardy.
    #[getter]
    fn shardy(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.program(py)?.shardy().name())
    }
    /// Number of ops, including the module op.
    #[getter]
    fn num_ops(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.program(py)?.num_ops())
    }
    #[getter]
    fn entry(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let program = self.program(py)?;
        Ok(program.entry_function().map(|func| program.str(program.func_name(func)).to_owned()))
    }
    fn values(&self, py: Python<'_>) -> PyResult<Vec<PyValue>> {
        let program = self.program(py)?;
        room_for_objects(py, program.num_value_ids(), "listing the values")?;
        let names = self.names.of(&program);
        let owners = py.detach(|| owners(&program)).into_iter();
        Ok(owners
            .map(|(value, function)| PyValue::new(program.clone(), names.clone(), value, function))
            .collect())
    }

    pub(super) fn __getitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<PyValue> {
        let py = key.py();
        let program = self.program(py)?;
        let names = self.names.of(&program);
        let (function, value) = called(key, (&program, &names))?;
        Ok(PyValue::new(program, names, value, function))
    }

    /// Every op of every function, in program order.
    fn ops(&self, py: Python<'_>) -> PyResult<Vec<PyOp>> {
        let program = self.program(py)?;
        room_for_objects(py, program.num_op_ids(), "listing the ops")?;
        Ok(PyOp::of(&program, &self.names.of(&program), PyOp::ids(&program)))
    }
    /// The filename in errors.
    #[getter]
    fn filename(&self) -> &str {
        &self.filename
    }
    /// Runs the program on `NumPy`.
    #[pyo3(signature = (*arrays, devices = None, replicas = None, function = None))]
    fn simulate<'py>(
        slf: &Bound<'py, Self>,
        arrays: &Bound<'py, PyTuple>,
        devices: Option<Int<u32>>,
        replicas: Option<Int<u32>>,
        function: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let options = PyDict::new(py);
        options.set_item("devices", devices.map(|Int(count)| count))?;
        options.set_item("replicas", replicas.map(|Int(count)| count))?;
        let arguments = (slf, function);
        let simulator = own_function(py, "shardcore.simulate", "Simulator", arguments, None)?;
        call_own(py, || simulator.call(arrays, Some(&options)))
    }
    /// The attributes of the module itself.
    #[getter]
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (dict, program) = (PyDict::new(py), self.program(py)?);
        for (name, value) in mlir::op_attributes(&program, program.module_op()) {
            dict.set_item(name, to_python(py, &value)?)?;
        }
        Ok(dict)
    }
    /// The arguments of the entry function.
    fn arguments(&self, py: Python<'_>) -> PyResult<Vec<PyPort>> {
        Ok(PyPort::arguments(&self.program(py)?))
    }
    /// The results of the entry function.
    fn results(&self, py: Python<'_>) -> PyResult<Vec<PyPort>> {
        Ok(PyPort::results(&self.program(py)?))
    }
    /// The arguments and results by path, `shardcore.session.paths.Ports`.
    #[getter]
    fn _ports<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let program = self.program(py)?;
        self.names.of(&program).ports(py, &program)
    }
    /// The named meshes, in program order.
    #[getter]
    fn meshes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        named_meshes(py, &*self.program(py)?)
    }
    /// The values of a line of the user's program.
    fn at(&self, py: Python<'_>, place: &str) -> PyResult<Vec<PyValue>> {
        let program = self.program(py)?;
        let names = self.names.of(&program);
        let calls = names.call_sites(&program);
        let found = py.detach(|| program.values_at_place(place, &calls));
        let values = found.map_err(|problem| raise_unlocated(py, vec![problem]))?;
        let of_function = owners(&program);
        let wanted: FxHashSet<ValueId> = values.into_iter().collect();
        Ok(of_function
            .into_iter()
            .filter(|(value, _)| wanted.contains(value))
            .map(|(value, function)| PyValue::new(program.clone(), names.clone(), value, function))
            .collect())
    }

    #[pyo3(signature = (*, progress = None, **options),
           text_signature = "($self, *, up_to_priority=None, keep_non_divisible_on_io=False, keep_sub_axes_on_io=False, \
                             dedup_functions_fully=False, legalize_chlo=False, strategy=None, max_ops=None, progress=None)")]
    fn propagate(
        &self,
        py: Python<'_>,
        progress: Option<Py<PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyPropagationResult> {
        let options = RunOptions::read("Module.propagate", options)?;
        let imported = self.with_hlo_shardings(py)?;
        let mut before = imported.as_ref().unwrap_or(self).program(py)?;
        if options.legalize_chlo {
            before = without_composites(py, before)?;
        }
        Request { before, filename: self.filename.clone(), options }.result(py, progress.as_ref())
    }

    /// A session for editing the annotations.
    #[pyo3(signature = (**options))]
    fn session<'py>(
        slf: &Bound<'py, Self>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        own_function(slf.py(), "shardcore.session", "Session", (slf,), options)
    }

    /// The data-flow edges of its ops.
    fn edges(&self, py: Python<'_>) -> PyResult<Vec<PyDataFlowEdge>> {
        let program = self.program(py)?;
        let names = self.names.of(&program);
        PyDataFlowEdge::all(py, &program, &names, &self.filename)
    }

    /// The factor table of `target`: an edge, or the op that defines a `Value` or the value with a
    /// name.
    fn factor_table(&self, py: Python<'_>, target: &Bound<'_, PyAny>) -> PyResult<PyFactorTable> {
        if let Ok(edge) = target.cast::<PyDataFlowEdge>() {
            return edge.get().factor_table(py);
        }
        // Names are looked up in the current state; a run may replace the module's state meanwhile.
        let (program, value) = if let Ok(value) = target.cast::<PyValue>() {
            let program = self.program(py)?;
            (program.clone(), value.get().id_in(&program))
        } else {
            self.__getitem__(target)?.parts()
        };
        let value = value.ok_or_else(|| PyTypeError::new_err("a value of another module"))?;
        PyFactorTable::of_value(py, &program, value, &self.filename)
    }

    /// The sharding rule of the op that defines `target`: a `Value` or a name.
    fn rule(&self, py: Python<'_>, target: &Bound<'_, PyAny>) -> PyResult<PyOpShardingRule> {
        Ok(PyOpShardingRule { rule: self.factor_table(py, target)?.into_rule() })
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        own_function(slf.py(), "shardcore.report.html", "module_html", (slf,), None)
    }

    /// Totals of the module as plain data.
    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let program = self.program(py)?;
        let totals = py.detach(|| program.totals());
        totals_dict(py, &program, &totals)
    }

    fn __copy__(&self) -> Self {
        self.share()
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.share()
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyString>,))> {
        let parse = py.get_type::<Self>().getattr("parse")?;
        let named = PyDict::new(py);
        named.set_item("filename", &*self.filename)?;
        named.set_item("shardy", self.shardy(py)?)?;
        let parse = py.import("functools")?.getattr("partial")?.call((parse,), Some(&named))?;
        Ok((parse, (self.__str__(py)?,)))
    }
}

fn check_signals(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}

/// Every value with the function it is in.
fn owners(program: &Program) -> Vec<(ValueId, FuncId)> {
    let mut pairs = Vec::with_capacity(program.num_value_ids());
    for function in program.functions_in_order() {
        let op = program.func_op(function);
        pairs.extend(program.values_of(op).into_iter().map(|value| (value, function)));
    }
    pairs
}
