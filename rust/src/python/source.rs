//! Converts a string, bytes or a file to the text of a program.

use super::arguments::too_many;
use super::errors::decode;
use super::user_code::{self, own_function};
use crate::ir::Source;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyString};
use std::path::Path;
use std::sync::Arc;

/// The most bytes that are read, since the parser rejects longer texts.
const MAX_BYTES: usize = i32::MAX as usize;

/// The text of `program`, a string or bytes.
pub(super) fn source(program: &Bound<'_, PyAny>, filename: &str) -> PyResult<Source> {
    let py = program.py();
    if let Ok(text) = program.cast::<PyString>() {
        return Ok(match PyBackedStr::try_from(text.clone()) {
            Ok(text) => Arc::new(text),
            // The string has a lone surrogate, which UTF-8 cannot encode.
            Err(_) => Arc::new(decode(py, surrogates_as_bytes(text)?, filename)?),
        });
    }
    if let Ok(bytes) = program.cast::<PyBytes>() {
        return Ok(Arc::new(text_of(py, bytes.as_bytes().to_vec(), filename)?));
    }
    Err(PyTypeError::new_err("Module.parse takes str or bytes"))
}

/// The text of the file at `path`, which errors call `filename`.
pub(super) fn source_of_file(py: Python<'_>, path: &Path, filename: &str) -> PyResult<Source> {
    // Reading a FIFO or a terminal may block for a long time, and Python's reads handle signals.
    let size = py.detach(|| {
        let file = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        Some(usize::try_from(file.len()).unwrap_or(usize::MAX))
    });
    let bytes = match size {
        Some(size) if size > MAX_BYTES => return Err(too_many(py, "bytes of text", MAX_BYTES)),
        Some(_) => py.detach(|| std::fs::read(path))?,
        None => read_slowly(py, path)?,
    };
    Ok(Arc::new(text_of(py, bytes, filename)?))
}

/// Reads all of `path` with Python.
fn read_slowly(py: Python<'_>, path: &Path) -> PyResult<Vec<u8>> {
    const PIECE: usize = 1 << 20;
    user_code::call(py, || {
        let file = py.import("io")?.call_method1("FileIO", (path.as_os_str(),))?;
        let mut bytes = Vec::new();
        let read = loop {
            let piece = match file.call_method1("read", (PIECE,)) {
                Ok(piece) => piece.extract::<Option<Vec<u8>>>()?.unwrap_or_default(),
                Err(error) => break Err(error),
            };
            if piece.is_empty() {
                break Ok(bytes);
            }
            if bytes.len() + piece.len() > MAX_BYTES {
                break Err(too_many(py, "bytes of text", MAX_BYTES));
            }
            if bytes.try_reserve(piece.len()).is_err() {
                break Err(too_many(py, "bytes of text", bytes.len()));
            }
            bytes.extend(piece);
        };
        file.call_method0("close")?;
        read
    })
}

/// The text of `bytes`: UTF-8, or MLIR bytecode, which Python converts.
fn text_of(py: Python<'_>, bytes: Vec<u8>, filename: &str) -> PyResult<String> {
    /// The first bytes of MLIR bytecode.
    const MAGIC: &[u8] = b"ML\xefR";
    if !bytes.starts_with(MAGIC) {
        return decode(py, bytes, filename);
    }
    let arguments = (PyBytes::new(py, &bytes), filename);
    own_function(py, "shardcore.bytecode", "to_text", arguments, None)?.extract()
}

/// The string as UTF-8, in which surrogates are encoded like other characters.
fn surrogates_as_bytes(text: &Bound<'_, PyString>) -> PyResult<Vec<u8>> {
    text.call_method1("encode", ("utf-8", "surrogatepass"))?.extract()
}
