//! `shardcore.import_hlo_shardings`: `shardcore/gspmd` converts the notation, and Rust changes the
//! module.

use super::errors::raise;
use super::mesh::PyMesh;
use super::module::PyModule;
use super::room::copy;
use super::user_code::call_own;
use crate::error::Error;
use crate::import::hlo_annotations::{annotations, Annotation, Site};
use crate::import::hlo_shardings::{apply, mesh_symbol, only_mesh, Meaning};
use crate::import::sdy_round_trip;
use crate::index::StrId;
use crate::ir::{Program, Source};
use crate::mesh::Mesh;
use crate::mlir;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::sync::Arc;

/// See the stub.
#[pyfunction]
#[pyo3(signature = (module, mesh = None))]
pub fn import_hlo_shardings(
    py: Python<'_>,
    module: &Bound<'_, PyModule>,
    mesh: Option<PyMesh>,
) -> PyResult<Py<PyModule>> {
    match imported(py, module.get(), mesh)? {
        Some(imported) => Py::new(py, imported),
        None => Ok(module.clone().unbind()),
    }
}

/// The module with its annotations in `sdy`; `None` if it has none.
pub(super) fn imported(
    py: Python<'_>,
    module: &PyModule,
    mesh: Option<PyMesh>,
) -> PyResult<Option<PyModule>> {
    let raised = |error: Error, program: &Program| {
        raise(py, &error, program.text().source(), &module.filename)
    };
    let mut program = copy(py, &*module.program(py)?)?;
    let is_exported = sdy_round_trip::is_exported(&program);
    if is_exported {
        sdy_round_trip::run(&mut program).map_err(|error| raised(error, &program))?;
    }
    sdy_round_trip::split_shape_changes(&mut program);
    let found = annotations(&program).map_err(|error| raised(error, &program))?;
    if found.is_empty() {
        return if is_exported { parsed_again(py, module, &program).map(Some) } else { Ok(None) };
    }
    let only = only_mesh(&program);
    let mut symbol = only.unwrap_or_else(|| mesh_symbol(&mut program));
    let mut said = meanings(py, (&program, &module.filename), &found, mesh.clone(), symbol)?;
    if program.mesh_by_symbol(symbol).is_some_and(|id| *program.mesh(id) != said.0) {
        symbol = mesh_symbol(&mut program);
        said = meanings(py, (&program, &module.filename), &found, mesh, symbol)?;
    }
    let (mesh, meanings) = said;
    let changed = apply(&mut program, &found, &meanings, mesh, symbol);
    changed.map_err(|error| raised(error, &program))?;
    parsed_again(py, module, &program).map(Some)
}

/// `program`, which was made from `module`, parsed from its text, so that uses are in the text's
/// order and everything is verified.
fn parsed_again(py: Python<'_>, module: &PyModule, program: &Program) -> PyResult<PyModule> {
    let text: Source = Arc::new(mlir::print(program));
    PyModule::load(py, &text, &module.filename, program.shardy())
}

/// Calls `shardcore.gspmd` for the mesh, and for the shardings of each annotation.
fn meanings(
    py: Python<'_>,
    (program, filename): (&Program, &str),
    found: &[Annotation],
    mesh: Option<PyMesh>,
    symbol: StrId,
) -> PyResult<(Mesh, Vec<Meaning>)> {
    let gspmd = py.import("shardcore.gspmd.meanings")?;
    let class = gspmd.getattr("Annotation")?;
    let rows = PyList::empty(py);
    for annotation in found {
        let kind = match annotation.site {
            Site::Argument(..) | Site::Result(..) | Site::Op(_) => "values",
            Site::Constraint(_) => "constraint",
            Site::ToShards(_) => "to_shards",
            Site::ToFull(_) => "to_full",
        };
        let span = (annotation.span.start, annotation.span.end);
        let ranks = annotation.ranks.clone();
        rows.append(class.call1((kind, &*annotation.text, span, ranks, &*annotation.config))?)?;
    }
    let attrs = program.op_attrs(program.module_op()).iter();
    let partitions = attrs
        .filter(|attr| program.str(attr.name) == "mhlo.num_partitions")
        .find_map(|attr| program.text().get(attr.value).split(' ').next()?.parse::<i64>().ok());
    let source = (program.text().source(), filename);
    let arguments = (rows, source, partitions, mesh, program.str(symbol));
    let answer = call_own(py, || gspmd.call_method1("meanings", arguments))?;
    let (mesh, rows): (PyMesh, Vec<(Vec<Option<String>>, Vec<Option<i64>>, Vec<String>)>) =
        answer.extract()?;
    let meanings = rows
        .into_iter()
        .map(|(shardings, groups, manual_axes)| Meaning { shardings, groups, manual_axes })
        .collect();
    Ok((Mesh::clone(&mesh.mesh), meanings))
}
