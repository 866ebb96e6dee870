//! The program behind `shardcore.Session`: finds targets by name, and sets annotations.

use super::annotated::PyAnnotatedProgram;
use super::arguments::{Int, Items};
use super::composites::without_composites;
use super::edited::{are_plain, type_of, Edit};
use super::errors::raise_unlocated;
use super::mesh::{named_meshes, PyMesh};
use super::module::PyModule;
use super::names::{ambiguous, Names};
use super::port::PyPort;
use super::room::copy;
use super::session_runs::SessionRuns;
use super::sharding::PyTensorSharding;
use crate::index::{FuncId, Id, ValueId};
use crate::ir::{Program, Source};
use crate::mlir::Denoted;
use crate::session::{annotated_values, annotation, with_mesh, Target};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// A target in Python: its kind and its index. Kind 0 is an argument, 1 a result of the entry
/// function, 2 a value; kinds from 3 on are the results of other functions, one kind for each
/// function.
type PyTarget = (u32, usize);

/// The kind of the results of the first function.
const FIRST_RESULTS: u32 = 3;

/// A target as an argument.
type TargetArgument = (Int<u32>, Int<usize>);

/// An edit: a target, its name in errors, and its new sharding, `None` to remove the annotation.
type PyEdit = (TargetArgument, String, Option<PyTensorSharding>);

/// A program that can be annotated; see the stub.
#[pyclass(name = "SessionProgram", module = "shardcore", frozen)]
pub struct PySessionProgram {
    program: Arc<Program>,
    filename: Arc<str>,
    names: Names,
    runs: Arc<SessionRuns>,
}

impl PySessionProgram {
    fn of(program: Arc<Program>, filename: Arc<str>) -> Self {
        Self { program, filename, names: Names::default(), runs: Arc::default() }
    }
    fn target(&self, (Int(kind), Int(index)): TargetArgument) -> PyResult<Target> {
        let (program, entry) = (&*self.program, self.names.entry(&self.program));
        let target = match (kind, entry) {
            (0, Some(func)) if index < program.func_args(func).len() => {
                Target::Argument(func, index)
            }
            (1, Some(func)) if index < program.func_results(func).len() => {
                Target::Result(func, index)
            }
            (2, _) if index < program.num_value_ids() => {
                Target::of_value(program, ValueId::from_index(index))
            }
            (FIRST_RESULTS.., _) => {
                let number = (kind - FIRST_RESULTS) as usize;
                let known = number < program.num_function_ids();
                let func = known.then(|| FuncId::from_index(number));
                let func = func.filter(|&func| index < program.func_results(func).len());
                let func = func.ok_or_else(|| PyIndexError::new_err("no such target"))?;
                Target::Result(func, index)
            }
            _ => return Err(PyIndexError::new_err("no such target")),
        };
        Ok(target)
    }
    /// The kind of the results of `func`.
    fn kind_of_results(&self, func: FuncId) -> u32 {
        if self.names.entry(&self.program) == Some(func) {
            return 1;
        }
        u32::try_from(func.index()).map_or(u32::MAX, |number| number.saturating_add(FIRST_RESULTS))
    }
    fn edits(&self, edits: Items<PyEdit>) -> PyResult<Vec<Edit>> {
        let edit =
            |(target, name, sharding)| Ok(Edit { target: self.target(target)?, name, sharding });
        edits.0.into_iter().map(edit).collect()
    }
}

#[pymethods]
impl PySessionProgram {
    #[new]
    #[pyo3(signature = (module, mesh = None, inlines_composites = false))]
    fn new(
        py: Python<'_>,
        module: &Bound<'_, PyModule>,
        mesh: Option<PyMesh>,
        inlines_composites: bool,
    ) -> PyResult<Self> {
        let (program, filename) = (module.get().program(py)?, module.get().filename.clone());
        let imported = module.get().with_hlo_shardings(py)?;
        let mut program = imported.map_or(Ok(program), |module| module.program(py))?;
        if inlines_composites {
            program = without_composites(py, program)?;
        }
        let Some(mesh) = mesh else {
            return Ok(Self::of(program, filename));
        };
        let replaced = with_mesh(&mut copy(py, &program)?, &mesh.mesh);
        let text: Source =
            Arc::new(replaced.map_err(|problem| raise_unlocated(py, vec![problem]))?);
        let program = PyModule::load(py, &text, &filename, program.shardy())?.program(py)?;
        Ok(Self::of(program, filename))
    }
    /// The arguments and the results of the entry function.
    fn ports(&self) -> (Vec<PyPort>, Vec<PyPort>) {
        (PyPort::arguments(&self.program), PyPort::results(&self.program))
    }
    /// The target called `name`: an argument, a result or a value in a function; `None` if there is
    /// none.
    fn find(&self, py: Python<'_>, name: &str) -> PyResult<Option<PyTarget>> {
        let (program, entry) = (&*self.program, self.names.entry(&self.program));
        let Ok((Some(function), path)) = self.names.split(program, name) else { return Ok(None) };
        if let Some(index) = path.strip_prefix("result ") {
            let index = index.trim().parse().ok();
            let index = index.filter(|&index| index < program.func_results(function).len());
            return Ok(index.map(|index| (self.kind_of_results(function), index)));
        }
        let value = match self.names.find(program, function, path) {
            Denoted::Nothing => return Ok(None),
            Denoted::Value(value) => value,
            Denoted::Several(several) => {
                let several: Vec<String> = several
                    .iter()
                    .map(|name| self.names.in_function(program, function, name))
                    .collect();
                return Err(raise_unlocated(py, vec![ambiguous(name, &several)]));
            }
        };
        Ok(Some(match Target::of_value(program, value) {
            Target::Argument(func, index) if Some(func) == entry => (0, index),
            _ => (2, value.index()),
        }))
    }
    /// The unambiguous name of `target`.
    fn name(&self, target: TargetArgument) -> PyResult<String> {
        let program = &*self.program;
        Ok(match self.target(target)? {
            Target::Argument(func, index) => match program.func_body(func).get() {
                Some(body) => self.names.name(program, func, program.block_arg(body, index)),
                None => self.names.in_function(program, func, &format!("%arg{index}")),
            },
            Target::Result(func, index) => {
                self.names.in_function(program, func, &format!("result {index}"))
            }
            Target::Value(value) => {
                let func = program.function_of_value(value);
                self.names.name(program, func, value)
            }
        })
    }
    /// The annotation of `target`.
    fn annotation(&self, target: TargetArgument) -> PyResult<Option<PyTensorSharding>> {
        let id = annotation(&self.program, self.target(target)?).get();
        Ok(id.map(|id| PyTensorSharding::from_program(&self.program, id)))
    }
    /// The number of dims of `target`; `None` if it is not a ranked tensor.
    fn rank(&self, target: TargetArgument) -> PyResult<Option<usize>> {
        Ok(type_of(&self.program, self.target(target)?).rank())
    }
    /// The originally annotated targets other than the arguments and results of the entry function.
    fn annotated_values(&self) -> Vec<PyTarget> {
        let program = &*self.program;
        let Some(entry) = self.names.entry(program) else { return Vec::new() };
        let target = |target| match target {
            Target::Result(func, index) => Some((self.kind_of_results(func), index)),
            Target::Argument(func, index) => {
                let body = program.func_body(func).get()?;
                Some((2, program.block_arg(body, index).index()))
            }
            Target::Value(value) => Some((2, value.index())),
        };
        annotated_values(program, entry).into_iter().filter_map(target).collect()
    }
    /// The first mesh with axes, and its name: preferably a named one, or else one that is inlined
    /// in shardings.
    fn mesh(&self) -> Option<(Option<&str>, PyMesh)> {
        let meshes = || self.program.meshes().iter().filter(|row| !row.mesh.axes.is_empty());
        let row = meshes().find(|row| row.symbol.is_some()).or_else(|| meshes().next())?;
        let symbol = row.symbol.map(|symbol| self.program.str(symbol));
        Some((symbol, PyMesh::from_verified(row.mesh.clone())))
    }
    /// The named meshes, in program order.
    #[getter]
    fn meshes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        named_meshes(py, &self.program)
    }
    /// The program with `edits`.
    fn annotated(&self, py: Python<'_>, edits: Items<PyEdit>) -> PyResult<PyAnnotatedProgram> {
        let edits = self.edits(edits)?;
        let (program, filename) = (self.program.clone(), self.filename.clone());
        PyAnnotatedProgram::new(py, program, filename, edits, self.runs.clone())
    }
    /// Whether each of `edits` can be seen to be valid, whatever other edits there are.
    fn are_plain(&self, edits: Items<PyEdit>) -> PyResult<bool> {
        let edits = self.edits(edits)?;
        Ok(!edits.iter().any(Edit::is_of_value) && are_plain(&self.program, &edits))
    }
}
