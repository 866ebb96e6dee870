//! A program with edited annotations, which is made when it is first needed.

use super::checked_values::CheckedValues;
use super::errors::raise_unlocated;
use super::room::{copy, room_for_copy};
use super::sharding::PyTensorSharding;
use crate::attribute::{too_new, verify_sharding};
use crate::error::{Code, Diagnostic, Error};
use crate::index::ShardingId;
use crate::ir::{Program, Type};
use crate::mlir::{print, read, Parsed};
use crate::pipeline::Completion;
use crate::propagation::replay::has_priority;
use crate::session::{annotate, annotation, is_surely_exported, mesh_for, Target};
use crate::sharding::{ReductionOp, TensorSharding};
use crate::shardy::Change;
use crate::verify::verify_read;
use pyo3::prelude::*;
use std::sync::{Arc, OnceLock};

/// An edit of an annotation.
pub(super) struct Edit {
    pub target: Target,
    /// The name of the target in errors.
    pub name: String,
    /// The new annotation, `None` to remove the old one.
    pub sharding: Option<PyTensorSharding>,
}

impl Edit {
    pub fn is_of_value(&self) -> bool {
        matches!(self.target, Target::Value(_))
    }
}

/// A program, and valid edits of its annotations.
pub(super) struct Edited {
    program: Arc<Program>,
    pub filename: Arc<str>,
    edits: Vec<Edit>,
    made: OnceLock<Arc<Program>>,
}

impl Edited {
    /// `program` with `edits`, which are checked; `checked` has edits of values that are known to
    /// be valid.
    pub fn new(
        py: Python<'_>,
        program: Arc<Program>,
        filename: Arc<str>,
        edits: Vec<Edit>,
        checked: &CheckedValues,
    ) -> PyResult<Self> {
        let edited = Self { program, filename, edits, made: OnceLock::new() };
        let are_plain = are_plain(&edited.program, &edited.edits);
        if !are_plain || !checked.has(&edited.edits) {
            edited.program(py)?;
            if are_plain {
                checked.add(&edited.edits);
            }
        }
        Ok(edited)
    }
    /// The edits.
    pub fn edits(&self) -> &[Edit] {
        &self.edits
    }
    /// Whether all edits are of arguments and results, without user priorities.
    pub fn are_of_ports(&self) -> bool {
        self.edits.iter().all(|edit| {
            let sharding = edit.sharding.as_ref();
            !edit.is_of_value() && !sharding.is_some_and(|it| has_priority(&it.sharding))
        })
    }
    /// Whether export accepts the program, whatever the result of propagation.
    pub fn is_surely_exported(&self, how: Completion) -> bool {
        let mut given = self.edits.iter().filter_map(|edit| edit.sharding.as_ref());
        is_surely_exported(&self.program, self.program.shardings(), how)
            && given.all(|given| given.sharding.unreduced.is_empty() && !given.mesh.is_maximal())
    }
    /// The original annotation of `target`.
    pub fn original(&self, target: Target) -> Option<PyTensorSharding> {
        let id = annotation(&self.program, target).get();
        id.map(|id| PyTensorSharding::from_program(&self.program, id))
    }
    /// Whether `target` is annotated.
    pub fn is_annotated(&self, target: Target) -> bool {
        let edit = self.edits.iter().rfind(|edit| edit.target == target);
        edit.map_or_else(
            || annotation(&self.program, target).is_some(),
            |edit| edit.sharding.is_some(),
        )
    }
    /// The annotated program.
    pub fn program(&self, py: Python<'_>) -> PyResult<Arc<Program>> {
        if let Some(made) = self.made.get() {
            return Ok(made.clone());
        }
        let made = Arc::new(self.make(py)?);
        // Another thread may have been faster.
        Ok(self.made.get_or_init(|| made).clone())
    }
    /// The annotated program, for in-place changes.
    pub fn own_program(&self, py: Python<'_>) -> PyResult<Program> {
        self.made.get().map_or_else(|| self.make(py), |made| copy(py, made))
    }
    fn make(&self, py: Python<'_>) -> PyResult<Program> {
        room_for_copy(py, &self.program)?;
        let made = py.detach(|| make(&self.program, &self.edits));
        made.map_err(|problems| raise_unlocated(py, problems))
    }
    /// `sharding` over a mesh of the program, if it is over one with a name.
    pub fn resolved(&self, sharding: &PyTensorSharding) -> Option<TensorSharding> {
        resolved(&self.program, sharding)
    }
}

/// `sharding` over a mesh of `program`, if it is over one with a name.
fn resolved(program: &Program, sharding: &PyTensorSharding) -> Option<TensorSharding> {
    let symbol = sharding.symbol.as_deref()?;
    let id = program.strings().find(symbol).and_then(|name| program.mesh_by_symbol(name))?;
    if sharding.is_mesh_known && *program.mesh(id) == *sharding.mesh {
        return Some(TensorSharding { mesh: id, ..(*sharding.sharding).clone() });
    }
    None
}

/// Whether the edits of arguments and results in `edits` can be seen to be valid without making the
/// program; other edits do not affect that.
pub(super) fn are_plain(program: &Program, edits: &[Edit]) -> bool {
    let is_valid = |ty: &Type, sharding: &PyTensorSharding| {
        let (Type::RankedTensor { shape, .. }, Some(found)) = (ty, resolved(program, sharding))
        else {
            return false;
        };
        let is_known =
            program.shardy().has(Change::ReductionOps) || found.reduction_op == ReductionOp::Sum;
        is_known
            && verify_sharding(&found, program.mesh(found.mesh), Some(shape), program.shardy())
                .is_empty()
    };
    let of_ports = edits.iter().filter(|edit| !edit.is_of_value());
    let mut set = of_ports.filter_map(|edit| Some((edit.target, edit.sharding.as_ref()?)));
    // Most edits are alike: arguments of one type get one sharding.
    let mut last: Option<(&Type, &PyTensorSharding)> = None;
    set.all(|(target, sharding)| {
        let now = (type_of(program, target), sharding);
        let is_last = last.is_some_and(|last| std::ptr::eq(last.0, now.0) && last.1 == now.1);
        last = Some(now);
        is_last || is_valid(now.0, now.1)
    })
}

/// The type of `target`.
pub(super) fn type_of(program: &Program, target: Target) -> &Type {
    let ty = match target {
        Target::Argument(func, index) => program.func_args(func)[index].ty,
        Target::Result(func, index) => program.func_results(func)[index].ty,
        Target::Value(value) => program.type_of(value),
    };
    &program.types()[ty]
}

/// `program` with `edits`, which are checked.
fn make(program: &Program, edits: &[Edit]) -> Result<Program, Vec<Diagnostic>> {
    let mut program = program.clone();
    let mut interned = Vec::with_capacity(edits.len());
    let mut problems = Vec::new();
    let mut constrains = false;
    for Edit { target, name, sharding } in edits {
        constrains |= matches!(target, Target::Value(_));
        let id = match sharding {
            None => Ok(ShardingId::NONE),
            Some(sharding) => intern(&mut program, sharding, *target),
        };
        match id {
            Ok(id) => interned.push((*target, id)),
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
    // As in the text, ops and values are numbered, and constraints are checked against their
    // surroundings.
    let Parsed { program, findings } =
        read(Arc::new(print(&program)), program.shardy()).map_err(of_error)?;
    Error::check(verify_read(&program, findings)).map_err(of_error)?;
    Ok(program)
}

fn of_error(error: Error) -> Vec<Diagnostic> {
    error.diagnostics
}

/// `problem` with the name of the edited target.
fn named(problem: Diagnostic, name: &str) -> Diagnostic {
    let message = format!("{name}: {}", problem.message);
    Diagnostic { message, ..problem }
}

/// The id of `sharding`, which is for `target`.
fn intern(
    program: &mut Program,
    sharding: &PyTensorSharding,
    target: Target,
) -> Result<ShardingId, Vec<Diagnostic>> {
    if type_of(program, target).rank().is_none() {
        let problem = Diagnostic::new(Code::InvalidSharding, "only ranked tensors have shardings");
        return Err(vec![problem]);
    }
    if sharding.sharding.reduction_op != ReductionOp::Sum {
        let what = format!("unreduced={}{{...}}", sharding.sharding.reduction_op.keyword());
        if let Some(problem) = too_new(&what, Change::ReductionOps, program.shardy()) {
            return Err(vec![problem]);
        }
    }
    let sharding = in_program(sharding, program)?;
    let shape = type_of(program, target).shape();
    let problems = verify_sharding(&sharding, program.mesh(sharding.mesh), shape, program.shardy());
    if problems.is_empty() {
        Ok(program.intern_sharding(sharding))
    } else {
        Err(problems)
    }
}

/// `sharding` over a mesh of `program`; its mesh is added if it is new.
///
/// # Errors
///
/// The program has another mesh of that name, or none if the sharding has only the name of its
/// mesh.
fn in_program(
    sharding: &PyTensorSharding,
    program: &mut Program,
) -> Result<TensorSharding, Vec<Diagnostic>> {
    let symbol = sharding.symbol.as_deref();
    if sharding.is_mesh_known {
        let mesh = mesh_for(program, &sharding.mesh, symbol).map_err(|problem| vec![problem])?;
        return Ok(TensorSharding { mesh, ..(*sharding.sharding).clone() });
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
    let found = TensorSharding { mesh: id, ..sharding.parts().resolve(mesh, &mut problems) };
    if problems.is_empty() {
        Ok(found)
    } else {
        Err(problems)
    }
}
