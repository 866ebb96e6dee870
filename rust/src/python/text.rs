//! The text of a program as a Python string.
//!
//! Converting a whole Rust string would hold two copies at a time. A long text is therefore passed
//! in pieces, which Python appends in place.

use super::room::room_in_python;
use super::user_code;
use crate::ir::Program;
use crate::mlir::print_in_pieces;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// The text of `program`.
pub(super) fn text<'py>(py: Python<'py>, program: &Program) -> PyResult<Bound<'py, PyString>> {
    // Python may move a text that it appends to.
    let length = program.text().source().len();
    room_in_python(
        py,
        length.saturating_mul(2) + program.num_op_ids() * 64,
        "printing the program",
    )?;
    let mut joined: Option<Py<PyAny>> = None;
    let mut outcome = Ok(());
    let last = py.detach(|| {
        print_in_pieces(program, &mut |piece| {
            if outcome.is_ok() {
                outcome = user_code::attach(|py| append(py, &mut joined, piece));
            }
        })
    });
    outcome?;
    let Some(joined) = joined else { return Ok(PyString::new(py, &last)) };
    let joined = joined.bind(py);
    user_code::call_own(py, || {
        joined.call_method1("send", (&last,))?;
        Ok(joined.call_method1("send", (py.None(),))?.cast_into()?)
    })
}

/// Appends `piece` to `joined`, or starts it.
fn append(py: Python<'_>, joined: &mut Option<Py<PyAny>>, piece: &str) -> PyResult<()> {
    let joined = if let Some(joined) = joined {
        joined.bind(py)
    } else {
        let new = py.import("shardcore._pieces")?.call_method0("joined")?;
        new.call_method0("__next__")?;
        joined.insert(new.unbind()).bind(py)
    };
    joined.call_method1("send", (piece,))?;
    Ok(())
}
