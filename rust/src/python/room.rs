//! Checks that memory is there before Python objects are made: where it is short, pyo3 panics and Rust aborts (see
//! [`crate::memory`]).

use super::errors::raise_unlocated;
use crate::ir::Program;
use crate::memory;
use crate::mesh::Mesh;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Fails if `bytes`, which are taken for `what`, cannot be allocated.
pub(super) fn room(py: Python<'_>, bytes: usize, what: &str) -> PyResult<()> {
    memory::ensure(bytes, what).map_err(|error| raise_unlocated(py, error.diagnostics))
}

/// Fails if Python cannot allocate `bytes`, which are taken for `what`. It has an allocator of its own.
pub(super) fn room_in_python(py: Python<'_>, bytes: usize, what: &str) -> PyResult<()> {
    let Some(needed) = memory::needed(bytes) else { return Ok(()) };
    match PyBytes::new_with(py, needed, |_| Ok(())) {
        Ok(_) => Ok(()),
        Err(_) => Err(raise_unlocated(py, memory::shortage(bytes, what).diagnostics)),
    }
}

/// Fails if a list of `count` objects of Python, which are called `what`, cannot be allocated.
pub(super) fn room_for_objects(py: Python<'_>, count: usize, what: &str) -> PyResult<()> {
    /// An object with a few fields, its row in Rust before it is converted, and its place in a list.
    const BYTES_PER_OBJECT: usize = 160;
    room_in_python(py, count.saturating_mul(BYTES_PER_OBJECT), what)
}

/// Fails if the text of `mesh`, or its device ids as numbers of Python, cannot be allocated.
pub(super) fn room_for_mesh(py: Python<'_>, mesh: &Mesh) -> PyResult<()> {
    /// The digits of an id, in a text that grows and then in one of Python; or a number and its place in a list.
    const BYTES_PER_ID: usize = 64;
    let (bytes, what) =
        (mesh.device_ids.len().saturating_mul(BYTES_PER_ID), "listing the devices of the mesh");
    room(py, bytes, what)?;
    room_in_python(py, bytes, what)
}

/// Fails if a copy of `program`, on which passes run, cannot be allocated.
pub(super) fn room_for_copy(py: Python<'_>, program: &Program) -> PyResult<()> {
    let room = memory::ensure_for_program(program.num_op_ids());
    room.map_err(|error| raise_unlocated(py, error.diagnostics))
}

/// A copy of `program`.
pub(super) fn copy(py: Python<'_>, program: &Program) -> PyResult<Program> {
    room_for_copy(py, program)?;
    Ok(program.clone())
}
