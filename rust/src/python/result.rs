//! `shardcore.Result`: what `module.propagate()` returns.

use super::compiled::compiler_named;
use super::completion::Request;
use super::kept_run::Outcome;
use super::module::PyModule;
use super::once::Once;
use super::port::PyPort;
use super::replay::Replay;
use super::totals::totals_dict;
use super::user_code::own_function;
use super::why::PyExplainer;
use crate::ir::OpKind;
use crate::spmd::sharding_checks::first_unsound;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// What `module.propagate()` returns.
#[pyclass(name = "Result", module = "shardcore", frozen)]
pub struct PyPropagationResult {
    origin: Origin,
    collectives: Once<PyModule>,
    decomposed: Once<PyModule>,
    legalizing: Once<PyPropagationResult>,
    /// By whether ports are kept, and whether the compiler simplifies the program before.
    as_xla: [[Once<PyTuple>; 2]; 2],
    explainer: Once<PyExplainer>,
    /// Whether the explicit collectives are verified.
    is_checked: AtomicBool,
}

/// The origin of a result.
enum Origin {
    /// A run of this request, which made this module.
    Run(Request, Py<PyModule>),
    /// A replay. The module is made when more than shardings is needed.
    Replay(Replay),
}

impl PyPropagationResult {
    /// The result of `request`, which made `module`.
    pub(super) fn new(request: Request, module: Py<PyModule>) -> Self {
        Self::of(Origin::Run(request, module))
    }
    /// The result of a replay.
    pub(super) fn replayed(replay: Replay) -> Self {
        Self::of(Origin::Replay(replay))
    }
    fn of(origin: Origin) -> Self {
        Self {
            origin,
            collectives: Once::new(),
            decomposed: Once::new(),
            legalizing: Once::new(),
            as_xla: [[Once::new(), Once::new()], [Once::new(), Once::new()]],
            explainer: Once::new(),
            is_checked: AtomicBool::new(false),
        }
    }
    /// The request for a new run.
    fn request(&self, py: Python<'_>) -> PyResult<Request> {
        match &self.origin {
            Origin::Run(request, _) => Ok(request.clone()),
            Origin::Replay(replay) => replay.request(py),
        }
    }
    /// `request` with composites replaced by their decompositions; `None` if it has no composites.
    fn decomposed(&self, py: Python<'_>, request: &Request) -> PyResult<Option<Request>> {
        if !request.before.has_any(&[OpKind::Composite]) {
            return Ok(None);
        }
        let completed = self.completed(py)?.get().program(py)?;
        request.decomposed(py, &completed)
    }
    /// The outcome of the replay that this result is of, if shardings can be read from it.
    fn readable(&self, py: Python<'_>) -> PyResult<Option<Arc<Outcome>>> {
        match &self.origin {
            Origin::Run(..) => Ok(None),
            Origin::Replay(replay) => replay.readable(py),
        }
    }
    /// The program with explicit reshards as collectives; it may not verify. Computed once.
    fn collectives(&self, py: Python<'_>) -> PyResult<Py<PyModule>> {
        let request = self.request(py)?;
        let make = || Py::new(py, request.complete(py, true, None)?);
        self.collectives.get(py, "the collectives of this result", make)
    }
    /// The completed program.
    fn completed(&self, py: Python<'_>) -> PyResult<Py<PyModule>> {
        match &self.origin {
            Origin::Run(_, module) => Ok(module.clone_ref(py)),
            Origin::Replay(replay) => replay.module(py),
        }
    }
}

#[pymethods]
impl PyPropagationResult {
    #[getter]
    fn module(&self, py: Python<'_>) -> PyResult<Py<PyModule>> {
        self.completed(py)
    }
    /// The program with explicit reshards as collectives; computed once.
    #[getter]
    fn with_collectives(&self, py: Python<'_>) -> PyResult<Py<PyModule>> {
        let module = self.collectives(py)?;
        if !self.is_checked.load(Ordering::Relaxed) {
            self.request(py)?.check(py, &*module.get().program(py)?)?;
            self.is_checked.store(true, Ordering::Relaxed);
        }
        Ok(module)
    }
    /// The program with explicit reshards, from which per-device programs are made. Reshards are
    /// collectives if devices can hold the intermediate shards, which they cannot if sub-axes do
    /// not nest; between meshes with different device orders there may be collectives that do not
    /// verify. Composites, which Shardy does not know, are replaced by their decompositions.
    fn _resharded(&self, py: Python<'_>) -> PyResult<Py<PyModule>> {
        let request = self.request(py)?;
        let decomposed = self.decomposed(py, &request)?;
        let (request, module) = match decomposed {
            Some(decomposed) => {
                let module = Py::new(py, decomposed.complete(py, true, None)?)?;
                (decomposed, module)
            }
            None => (request, self.collectives(py)?),
        };
        let is_sound = first_unsound(&*module.get().program(py)?).is_none();
        if is_sound && request.check(py, &*module.get().program(py)?).is_ok() {
            return Ok(module);
        }
        let module = request.complete_with_reshards(py)?;
        if is_sound {
            request.check(py, &*module.program(py)?)?;
        }
        Py::new(py, module)
    }
    /// The program from which per-device programs are made: CHLO ops are sharded like the ops that
    /// XLA legalizes them to, and composites are replaced by their decompositions.
    fn _legalized(slf: &Bound<'_, Self>) -> PyResult<Py<PyModule>> {
        let (py, this) = (slf.py(), slf.get());
        let request = this.request(py)?;
        if let Some(decomposed) = this.decomposed(py, &request)? {
            let legalizing = decomposed.legalizing();
            let make = || Py::new(py, legalizing.complete(py, false, None)?);
            return this.decomposed.get(py, "the legalized program of this result", make);
        }
        Self::_legalizing(slf)?.get().completed(py)
    }
    /// The result in which CHLO ops are sharded like the ops that XLA legalizes them to; this
    /// result if that makes no difference.
    fn _legalizing(slf: &Bound<'_, Self>) -> PyResult<Py<Self>> {
        let (py, this) = (slf.py(), slf.get());
        let request = this.request(py)?;
        if !request.leaves_chlo() {
            return Ok(slf.clone().unbind());
        }
        let legalizing = request.legalizing();
        let make = || {
            let module = Py::new(py, legalizing.complete(py, false, None)?)?;
            Py::new(py, Self::new(legalizing.clone(), module))
        };
        this.legalizing.get(py, "the legalized program of this result", make)
    }
    /// The program completed after inlining its calls, with arguments and results placed as in this
    /// result; `None` if this result reshards no call.
    fn _inlined(&self, py: Python<'_>) -> PyResult<Option<PyModule>> {
        let completed = self.completed(py)?.get().program(py)?;
        self.request(py)?.complete_inlined(py, &completed)
    }
    /// The program completed as in this XLA compiler, and the originals of clones; made once. Open
    /// ports are sharded as in XLA or, if `keep_ports`, as in this result.
    #[pyo3(name = "_as_xla", signature = (keep_ports, compiler = "none"))]
    fn as_xla(&self, py: Python<'_>, keep_ports: bool, compiler: &str) -> PyResult<Py<PyTuple>> {
        let compiler = compiler_named(compiler);
        let make = || {
            if let Origin::Replay(replay) = &self.origin {
                if let Some(made) = replay.as_xla(py, compiler, keep_ports)? {
                    return Ok(made);
                }
            }
            let request = self.request(py)?;
            if !keep_ports {
                return request.complete_as_xla(py, compiler, None);
            }
            let completed = self.completed(py)?.get().program(py)?;
            let made = self.as_xla(py, false, compiler.name())?;
            request.keep_ports(py, compiler, made, &completed)
        };
        let is_simplified = compiler.simplifies_before_partitioning();
        let once = &self.as_xla[usize::from(keep_ports)][usize::from(is_simplified)];
        once.get(py, "the program of this result as XLA completes it", make)
    }
    /// The explainer of the result; made at the first call, by another propagation.
    #[getter]
    fn _explainer(&self, py: Python<'_>) -> PyResult<Py<PyExplainer>> {
        let make = || {
            let result = self.completed(py)?.get().program(py)?;
            Py::new(py, self.request(py)?.explain(py, result)?)
        };
        self.explainer.get(py, "the explanations of this result", make)
    }
    /// Frees the memory of the explainer, which is made again when it is needed.
    fn _forget_explainer(&self) {
        self.explainer.forget();
    }
    /// The program before propagation.
    fn _given(&self, py: Python<'_>) -> PyResult<PyModule> {
        let request = self.request(py)?;
        Ok(PyModule::new(request.before, request.filename))
    }
    /// The bytes that one device holds of the arguments, and of the results.
    fn _port_bytes(&self, py: Python<'_>) -> PyResult<[u128; 2]> {
        if let Some(outcome) = self.readable(py)? {
            return Ok(outcome.prepared.port_bytes(&outcome.replayed));
        }
        let program = self.completed(py)?.get().program(py)?;
        let totals = py.detach(|| program.totals());
        Ok([totals.arguments.bytes_per_device, totals.results.bytes_per_device])
    }
    /// The options of the propagation by their Python names.
    fn _options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.request(py)?.options.by_name(py)
    }
    /// The origins of the axes of a value.
    #[pyo3(signature = (value, axis = None, dim = None))]
    fn why<'py>(
        slf: &Bound<'py, Self>,
        value: Bound<'py, PyAny>,
        axis: Option<Bound<'py, PyAny>>,
        dim: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        own_function(slf.py(), "shardcore.why", "why", (slf, value, axis, dim), None)
    }
    /// Why an axis is not on a dim of a value.
    fn why_not<'py>(
        slf: &Bound<'py, Self>,
        value: Bound<'py, PyAny>,
        dim: Bound<'py, PyAny>,
        axis: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        own_function(slf.py(), "shardcore.why", "why_not", (slf, value, dim, axis), None)
    }
    /// What each visit changed.
    fn steps<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        own_function(slf.py(), "shardcore.why.steps", "steps", (slf,), None)
    }
    /// The computation graph.
    #[pyo3(signature = (path = None, **options))]
    fn graph<'py>(
        slf: &Bound<'py, Self>,
        path: Option<Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        own_function(slf.py(), "shardcore.report.graph", "graph", (slf, path), options)
    }
    /// The findings of `shardcore.diagnose`.
    #[pyo3(signature = (hardware = None, *, ignore = None, hardware_file = None))]
    fn diagnostics<'py>(
        slf: &Bound<'py, Self>,
        hardware: Option<Bound<'py, PyAny>>,
        ignore: Option<Bound<'py, PyAny>>,
        hardware_file: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = PyDict::new(slf.py());
        options.set_item("hardware_file", hardware_file)?;
        if let Some(ignore) = ignore {
            options.set_item("ignore", ignore)?;
        }
        let arguments = (slf, hardware);
        own_function(slf.py(), "shardcore.diagnose", "diagnostics", arguments, Some(&options))
    }
    /// Warnings about annotated axes that the result does not have.
    #[getter]
    fn warnings<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        own_function(slf.py(), "shardcore.trimmed_axes", "warnings", (slf,), None)
    }
    /// The arguments and the results of the entry function with their annotations before
    /// propagation.
    fn _annotated(&self, py: Python<'_>) -> PyResult<(Vec<PyPort>, Vec<PyPort>)> {
        let before = self.request(py)?.before;
        Ok((PyPort::arguments(&before), PyPort::results(&before)))
    }
    #[pyo3(signature = (hardware = None, policy = "xla", **options),
           text_signature = "($self, hardware=None, policy='xla', *, topology=None, mapping=None, hardware_file=None, \
                             exact=False, efficiency=1.0, one_way=False, slices=None, dcn=None, tokens=None, combine=None, \
                             improve=None, compiler=None, keep_ports=False)")]
    fn cost<'py>(
        slf: &Bound<'py, Self>,
        hardware: Option<Bound<'py, PyAny>>,
        policy: &str,
        options: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = options.unwrap_or_else(|| PyDict::new(slf.py()));
        options.set_item("policy", policy)?;
        if let Some(hardware) = hardware {
            options.set_item("hardware", hardware)?;
        }
        own_function(slf.py(), "shardcore.costs", "cost", (slf,), Some(&options))
    }
    /// The program of one device.
    #[pyo3(signature = (policy = "least", *, compiler = "none", progress = None))]
    fn partition<'py>(
        slf: &Bound<'py, Self>,
        policy: &str,
        compiler: &str,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = PyDict::new(slf.py());
        options.set_item("compiler", compiler)?;
        options.set_item("progress", progress)?;
        let arguments = (slf, policy);
        own_function(slf.py(), "shardcore.partition", "partition", arguments, Some(&options))
    }
    fn values(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.completed(py)?.call_method0(py, "values")
    }
    fn __getitem__(&self, py: Python<'_>, key: Py<PyAny>) -> PyResult<Py<PyAny>> {
        self.completed(py)?.call_method1(py, "__getitem__", (key,))
    }
    fn at(&self, py: Python<'_>, place: &str) -> PyResult<Py<PyAny>> {
        self.completed(py)?.call_method1(py, "at", (place,))
    }
    fn arguments(&self, py: Python<'_>) -> PyResult<Vec<PyPort>> {
        match self.readable(py)? {
            Some(outcome) => Ok(PyPort::completed_arguments(&outcome)),
            None => Ok(PyPort::arguments(&self.completed(py)?.get().program(py)?)),
        }
    }
    fn results(&self, py: Python<'_>) -> PyResult<Vec<PyPort>> {
        match self.readable(py)? {
            Some(outcome) => Ok(PyPort::completed_results(&outcome)),
            None => Ok(PyPort::results(&self.completed(py)?.get().program(py)?)),
        }
    }
    /// Compares the result with `expect`, a file or a mapping.
    #[pyo3(signature = (expect, *, update = false))]
    fn check<'py>(
        slf: &Bound<'py, Self>,
        expect: Bound<'py, PyAny>,
        update: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        own_function(slf.py(), "shardcore.expect", "check", (slf, expect, update), None)
    }
    /// Writes a page about the result to a file.
    #[pyo3(signature = (path, hardware = None, **options))]
    fn report<'py>(
        slf: &Bound<'py, Self>,
        path: Bound<'py, PyAny>,
        hardware: Option<Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let arguments = (slf, path, hardware);
        own_function(slf.py(), "shardcore.report.page", "write_page", arguments, options)
    }
    /// The page as an object that notebooks display.
    #[pyo3(signature = (hardware = None, **options))]
    fn show<'py>(
        slf: &Bound<'py, Self>,
        hardware: Option<Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        own_function(slf.py(), "shardcore.report.page", "show", (slf, hardware), options)
    }
    fn __str__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        own_function(slf.py(), "shardcore.report.table", "result_text", (slf,), None)
    }
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        own_function(slf.py(), "shardcore.report.html", "result_html", (slf,), None)
    }
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let before = self.request(py)?.before;
        let (dict, after) = (PyDict::new(py), self.completed(py)?.get().program(py)?);
        let (totals_before, totals_after) = py.detach(|| (before.totals(), after.totals()));
        dict.set_item("shardy", after.shardy().name())?;
        dict.set_item("ops", after.num_ops())?;
        dict.set_item("before", totals_dict(py, &before, &totals_before)?)?;
        dict.set_item("after", totals_dict(py, &after, &totals_after)?)?;
        Ok(dict)
    }
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let totals = self.completed(py)?.get().program(py)?.totals();
        Ok(format!(
            "<shardcore.Result: {} of {} values sharded, {} argument bytes per device>",
            totals.all.sharded_values, totals.all.values, totals.arguments.bytes_per_device
        ))
    }
}
