//! Checks that memory is available before Python objects are made, since otherwise pyo3 panics and
//! Rust aborts (see [`crate::memory`]).

use super::errors::raise_unlocated;
use crate::ir::Program;
use crate::memory;
use crate::mesh::Mesh;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Fails if `bytes`, which `what` may take, cannot be allocated.
pub(super) fn room(py: Python<'_>, bytes: usize, what: &str) -> PyResult<()> {
    memory::ensure(bytes, what).map_err(|error| raise_unlocated(py, error.diagnostics))
}

/// Fails if Python, which has its own allocator, cannot allocate `bytes`, which `what` may take.
pub(super) fn room_in_python(py: Python<'_>, bytes: usize, what: &str) -> PyResult<()> {
    let Some(needed) = memory::needed(bytes) else { return Ok(()) };
    match PyBytes::new_with(py, needed, |_| Ok(())) {
        Ok(_) => Ok(()),
        Err(_) => Err(raise_unlocated(py, memory::shortage(bytes, what).diagnostics)),
    }
}

/// Fails if a list of `count` Python objects, called `what`, cannot be allocated.
pub(super) fn room_for_objects(py: Python<'_>, count: usize, what: &str) -> PyResult<()> {
    /// Bytes of an object with a few fields, of its row in Rust before conversion, and of its place
    /// in a list.
    const BYTES_PER_OBJECT: usize = 160;
    room_in_python(py, count.saturating_mul(BYTES_PER_OBJECT), what)
}

/// Fails if the text of `mesh`, or its device ids as Python numbers, cannot be allocated.
pub(super) fn room_for_mesh(py: Python<'_>, mesh: &Mesh) -> PyResult<()> {
    /// Bytes of the digits of an id, in a text that grows and then in a Python string; or of a
    /// number and its place in a list.
    const BYTES_PER_ID: usize = 64;
    let (bytes, what) =
        (mesh.device_ids.len().saturating_mul(BYTES_PER_ID), "listing the devices of the mesh");
    room(py, bytes, what)?;
    room_in_python(py, bytes, what)
}

/// Fails if a copy of `program` for running passes cannot be allocated.
pub(super) fn room_for_copy(py: Python<'_>, program: &Program) -> PyResult<()> {
    let room = memory::ensure_for_program(program.num_op_ids());
    room.map_err(|error| raise_unlocated(py, error.diagnostics))
}

/// A copy of `program`.
pub(super) fn copy(py: Python<'_>, program: &Program) -> PyResult<Program> {
    room_for_copy(py, program)?;
    Ok(program.clone())
}
