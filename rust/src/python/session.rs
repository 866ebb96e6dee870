//! The program behind `shardcore.Session`: finds targets by name, and puts annotations on them.

use super::arguments::{Int, Items};
use super::dim_sharding::resolve_all;
use super::errors::raise_unlocated;
use super::mesh::PyMesh;
use super::module::PyModule;
use super::names::Names;
use super::port::PyPort;
use super::sharding::PyTensorSharding;
use crate::attribute::verify_sharding;
use crate::error::{Code, Diagnostic, Error};
use crate::index::{Id, ShardingId, ValueId};
use crate::ir::{OpKind, Program, Source, Type};
use crate::mlir::{print, read, Parsed};
use crate::session::{annotate, annotation, mesh_for, with_mesh, Target};
use crate::sharding::TensorSharding;
use crate::verify::verify_read;
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
}

impl PySessionProgram {
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
    fn type_of(&self, target: Target) -> &Type {
        let program = &*self.program;
        let ty = match target {
            Target::Argument(func, index) => program.func_args(func)[index].ty,
            Target::Result(func, index) => program.func_results(func)[index].ty,
            Target::Value(value) => program.type_of(value),
        };
        &program.types()[ty]
    }
    /// The program with `edits` on it, which are checked.
    fn edited(&self, py: Python<'_>, edits: &[PyEdit]) -> PyResult<Program> {
        let targets = edits.iter().map(|(target, ..)| self.target(*target));
        let targets = targets.collect::<PyResult<Vec<Target>>>()?;
        let edited = py.detach(|| self.edited_at(edits, &targets));
        edited.map_err(|problems| raise_unlocated(py, problems))
    }
    fn edited_at(&self, edits: &[PyEdit], targets: &[Target]) -> Result<Program, Vec<Diagnostic>> {
        let mut program = Program::clone(&self.program);
        let mut interned = Vec::with_capacity(edits.len());
        let mut problems = Vec::new();
        let mut constrains = false;
        for ((_, name, sharding), &target) in edits.iter().zip(targets) {
            constrains |= matches!(target, Target::Value(_));
            let id = match sharding {
                None => Ok(ShardingId::NONE),
                Some(sharding) => intern(&mut program, sharding, self.type_of(target)),
            };
            match id {
                Ok(id) => interned.push((target, id)),
                Err(found) => {
                    problems.extend(found.into_iter().map(|problem| named(problem, name)));
                }
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        annotate(&mut program, &interned).map_err(|problem| vec![problem])?;
        if !constrains {
            return Ok(program);
        }
        // Ops and values are numbered as in the text, and what is around a constraint is checked too.
        let Parsed { program, findings } = read(Arc::new(print(&program))).map_err(of_error)?;
        Error::check(verify_read(&program, findings)).map_err(of_error)?;
        Ok(program)
    }
}

fn of_error(error: Error) -> Vec<Diagnostic> {
    error.diagnostics
}

/// `problem` with an edit of the target called `name`.
fn named(problem: Diagnostic, name: &str) -> Diagnostic {
    let message = format!("{name}: {}", problem.message);
    Diagnostic { message, ..problem }
}

/// The id of `sharding`, which is for a value of type `ty`.
fn intern(
    program: &mut Program,
    sharding: &PyTensorSharding,
    ty: &Type,
) -> Result<ShardingId, Vec<Diagnostic>> {
    let Type::RankedTensor { shape, .. } = ty else {
        let problem = Diagnostic::new(Code::InvalidSharding, "only ranked tensors have shardings");
        return Err(vec![problem]);
    };
    let sharding = in_program(sharding, program)?;
    let problems = verify_sharding(&sharding, program.mesh(sharding.mesh), Some(shape));
    if problems.is_empty() {
        Ok(program.intern_sharding(sharding))
    } else {
        Err(problems)
    }
}

/// `sharding` over a mesh of `program`, to which its mesh is added if it is a new one.
///
/// # Errors
/// The program has another mesh of that name, or none where the sharding says no more than the name.
fn in_program(
    sharding: &PyTensorSharding,
    program: &mut Program,
) -> Result<TensorSharding, Vec<Diagnostic>> {
    let symbol = sharding.symbol.as_deref();
    if sharding.is_mesh_known {
        let mesh = mesh_for(program, &sharding.mesh, symbol).map_err(|problem| vec![problem])?;
        return Ok(TensorSharding { mesh, ..sharding.sharding.clone() });
    }
    let name = symbol.unwrap_or_default();
    let known = program.strings().find(name).and_then(|name| program.mesh_by_symbol(name));
    let Some(id) = known else {
        let message = format!("the program has no mesh @{name}");
        let hint = "name one of its meshes, or give the sharding a mesh: sharding.with_mesh(mesh)";
        return Err(vec![Diagnostic::new(Code::UnknownMesh, message).with_hint(hint)]);
    };
    let mesh = program.mesh(id);
    let mut problems = Vec::new();
    let (dims, replicated, unreduced) = sharding.parts();
    let found = TensorSharding {
        mesh: id,
        dims: dims.iter().map(|dim| dim.resolve(mesh, &mut problems)).collect(),
        replicated: resolve_all(&replicated, mesh, &mut problems),
        unreduced: resolve_all(&unreduced, mesh, &mut problems),
    };
    if problems.is_empty() {
        Ok(found)
    } else {
        Err(problems)
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
            return Ok(Self { program, filename, names: Names::default() });
        };
        let replaced = with_mesh(&mut Program::clone(&program), &mesh.mesh);
        let text: Source =
            Arc::new(replaced.map_err(|problem| raise_unlocated(py, vec![problem]))?);
        let program = PyModule::load(py, &text, &filename)?.program(py)?;
        Ok(Self { program, filename, names: Names::default() })
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
        Ok(self.type_of(self.target(target)?).rank())
    }
    /// The constraints of the entry function: for each its result.
    fn constraints(&self) -> Vec<(PyTarget, String)> {
        let program = &*self.program;
        let Some(entry) = self.names.entry(program) else { return Vec::new() };
        let ops = program.pre_order(program.func_op(entry));
        ops.filter(|&op| program.kind(op) == OpKind::ShardingConstraint)
            .map(|op| program.result(op, 0))
            .map(|value| ((2, value.index()), program.value_name(value)))
            .collect()
    }
    /// The first mesh with a name, and its name.
    fn mesh(&self) -> Option<(&str, PyMesh)> {
        let mut named = self.program.meshes().iter().filter_map(|row| Some((row.symbol?, row)));
        let (symbol, row) = named.next()?;
        Some((self.program.str(symbol), PyMesh::from_verified(row.mesh.clone())))
    }
    /// The program with `edits` on it.
    fn annotated(&self, py: Python<'_>, edits: Items<PyEdit>) -> PyResult<PyModule> {
        let edited = self.edited(py, &edits.0)?;
        Ok(PyModule::new(edited, self.filename.clone()))
    }
}
