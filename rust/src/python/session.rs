//! The program behind `shardcore.Session`: finds targets by name, and puts annotations on them.

use super::annotated::PyAnnotatedProgram;
use super::arguments::{Int, Items};
use super::edited::{are_plain, type_of, Edit};
use super::errors::raise_unlocated;
use super::mesh::PyMesh;
use super::module::PyModule;
use super::names::Names;
use super::port::PyPort;
use super::room::copy;
use super::session_runs::SessionRuns;
use super::sharding::PyTensorSharding;
use crate::index::{FuncId, Id, ValueId};
use crate::ir::{Program, Source};
use crate::session::{annotated_values, annotation, with_mesh, Target};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use std::sync::Arc;

/// A target as Python has it: its kind (0 argument, 1 result, 2 value) and its index; arguments and results are
/// those of the entry function.
type PyTarget = (u8, usize);

/// A target as an argument.
type TargetArgument = (Int<u8>, Int<usize>);

/// An edit: a target, its name in errors, and the sharding that it gets, `None` to remove the one it has.
type PyEdit = (TargetArgument, String, Option<PyTensorSharding>);

/// A program that annotations are put on; see the stub.
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
            (2, _) if index < program.num_value_ids() => Target::Value(ValueId::from_index(index)),
            _ => return Err(PyIndexError::new_err("no such target")),
        };
        Ok(target)
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
    #[pyo3(signature = (module, mesh = None))]
    fn new(py: Python<'_>, module: &Bound<'_, PyModule>, mesh: Option<PyMesh>) -> PyResult<Self> {
        let (program, filename) = (module.get().program(py)?, module.get().filename.clone());
        let imported = module.get().with_hlo_shardings(py)?;
        let program = imported.map_or(Ok(program), |module| module.program(py))?;
        let Some(mesh) = mesh else {
            return Ok(Self::of(program, filename));
        };
        let replaced = with_mesh(&mut copy(py, &program)?, &mesh.mesh);
        let text: Source =
            Arc::new(replaced.map_err(|problem| raise_unlocated(py, vec![problem]))?);
        let program = PyModule::load(py, &text, &filename)?.program(py)?;
        Ok(Self::of(program, filename))
    }
    /// The arguments and the results of the entry function.
    fn ports(&self) -> (Vec<PyPort>, Vec<PyPort>) {
        (PyPort::arguments(&self.program), PyPort::results(&self.program))
    }
    /// The target that is called `name` in `function`, by default the entry function; `None` if there is none.
    #[pyo3(signature = (name, function = None))]
    fn find(&self, name: &str, function: Option<&str>) -> Option<PyTarget> {
        let entry = self.names.entry(&self.program)?;
        let function = match function {
            None => entry,
            Some(name) => self.names.function(&self.program, name)?,
        };
        let value = self.names.find(&self.program, function, name)?;
        Some(match Target::of_value(&self.program, value) {
            Target::Argument(func, index) if func == entry => (0, index),
            _ => (2, value.index()),
        })
    }
    /// The sharding that `target` has as an annotation.
    fn annotation(&self, target: TargetArgument) -> PyResult<Option<PyTensorSharding>> {
        let id = annotation(&self.program, self.target(target)?).get();
        Ok(id.map(|id| PyTensorSharding::from_program(&self.program, id)))
    }
    /// The number of dims of `target`; `None` if it is not a ranked tensor.
    fn rank(&self, target: TargetArgument) -> PyResult<Option<usize>> {
        Ok(type_of(&self.program, self.target(target)?).rank())
    }
    /// The values that the program came with annotations of, with their names.
    fn annotated_values(&self) -> Vec<(PyTarget, String)> {
        let program = &*self.program;
        let Some(entry) = self.names.entry(program) else { return Vec::new() };
        let name = |(func, value): (FuncId, ValueId)| {
            let name = program.value_name(value);
            let name = if func == entry {
                name
            } else {
                format!("@{} {name}", program.str(program.func_name(func)))
            };
            ((2, value.index()), name)
        };
        annotated_values(program, entry).into_iter().map(name).collect()
    }
    /// The first mesh with a name that is not of one device, and its name.
    fn mesh(&self) -> Option<(&str, PyMesh)> {
        let meshes = self.program.meshes().iter().filter(|row| !row.mesh.is_maximal());
        let mut named = meshes.filter_map(|row| Some((row.symbol?, row)));
        let (symbol, row) = named.next()?;
        Some((self.program.str(symbol), PyMesh::from_verified(row.mesh.clone())))
    }
    /// The program with `edits` on it.
    fn annotated(&self, py: Python<'_>, edits: Items<PyEdit>) -> PyResult<PyAnnotatedProgram> {
        let edits = self.edits(edits)?;
        let (program, filename) = (self.program.clone(), self.filename.clone());
        PyAnnotatedProgram::new(py, program, filename, edits, self.runs.clone())
    }
    /// Whether it is clear of each of `edits` that it is valid, whatever other edits there are.
    fn are_plain(&self, edits: Items<PyEdit>) -> PyResult<bool> {
        let edits = self.edits(edits)?;
        Ok(!edits.iter().any(Edit::is_of_value) && are_plain(&self.program, &edits))
    }
}
