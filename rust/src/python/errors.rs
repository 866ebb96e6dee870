//! Converts the engine's errors to the exceptions of `shardcore/errors.py`.

use super::user_code::{self, call_own};
use crate::diagnostics::{Location, Locator};
use crate::error::{Code, Diagnostic, Error, Span};
use pyo3::exceptions::PyOSError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::borrow::Cow;

/// The class of `shardcore.errors` for errors with this code.
fn class_name(code: Code) -> &'static str {
    match code {
        Code::Syntax
        | Code::ShardyVersion
        | Code::NestedTooDeeply
        | Code::UndefinedValue
        | Code::RedefinedValue
        | Code::TypeMismatch
        | Code::RedefinedSymbol
        | Code::UnknownSymbol => "ParseError",
        Code::InvalidMesh
        | Code::UnknownMesh
        | Code::UnknownAxis
        | Code::AxisOverlap
        | Code::InvalidSubAxis
        | Code::InvalidSharding
        | Code::InvalidRule
        | Code::InvalidOp
        | Code::InvalidGroup => "VerificationError",
        Code::RecursiveCall | Code::NoConvergence | Code::UnsupportedType => "PropagationError",
        Code::InvalidPipeline => "PipelineError",
        Code::UnknownLocation => "LocationError",
        Code::Unpartitionable => "PartitionError",
        Code::ProgramTooLarge => "ProgramTooLargeError",
        Code::Busy => "BusyError",
        Code::InvalidProblem | Code::Io | Code::Interrupted | Code::Internal => "ShardcoreError",
    }
}

/// The exception for `error`, whose spans are in `source`, a text called `filename`. An interrupt
/// becomes a `KeyboardInterrupt`, or the exception that a user's function raised to interrupt; an
/// I/O error becomes an `OSError`.
pub fn raise(py: Python<'_>, error: &Error, source: &str, filename: &str) -> PyErr {
    match error.diagnostics.first().map(|first| first.code) {
        Some(Code::Interrupted) => user_code::interruption(),
        Some(Code::Io) => PyOSError::new_err(error.diagnostics[0].message.clone()),
        _ => exception(py, error, source, filename).unwrap_or_else(|failure| failure),
    }
}

/// The exception for errors in values that are not text.
pub fn raise_unlocated(py: Python<'_>, diagnostics: Vec<Diagnostic>) -> PyErr {
    raise(py, &Error { diagnostics }, "", "")
}

fn exception(py: Python<'_>, error: &Error, source: &str, filename: &str) -> PyResult<PyErr> {
    call_own(py, || made(py, error, source, filename))
}

fn made(py: Python<'_>, error: &Error, source: &str, filename: &str) -> PyResult<PyErr> {
    let errors = py.import(intern!(py, "shardcore.errors"))?;
    let place_class = errors.getattr(intern!(py, "Place"))?;
    let class = errors.getattr(intern!(py, "Diagnostic"))?;
    let mut locator = Locator::new(source);
    let mut place = |span: Option<Span>| -> PyResult<Option<Bound<'_, PyAny>>> {
        let Some(Location { line, column, end_column, text, text_column }) =
            span.and_then(|span| locator.locate(span))
        else {
            return Ok(None);
        };
        place_class.call1((line, column, end_column, text, text_column)).map(Some)
    };
    let most: usize = errors.getattr(intern!(py, "MOST_DIAGNOSTICS"))?.extract()?;
    let mut diagnostics = Vec::new();
    for diagnostic in error.diagnostics.iter().take(most) {
        let at = place(diagnostic.span)?;
        let detail = place(diagnostic.detail)?;
        let related = match &diagnostic.related {
            Some((span, label)) => place(Some(*span))?.map(|place| (place, label.clone())),
            None => None,
        };
        let (code, message) = (diagnostic.code.as_str(), &diagnostic.message);
        let filename = at.as_ref().map(|_| filename);
        let hint = &diagnostic.hint;
        diagnostics.push(class.call1((code, message, hint, filename, at, related, detail))?);
    }
    let name = error.diagnostics.first().map_or("ShardcoreError", |first| class_name(first.code));
    let raised = errors.getattr(name)?.call1((PyTuple::new(py, diagnostics)?,))?;
    Ok(PyErr::from_value(raised))
}

/// The first characters of `text`, for a message. Control characters are replaced by visible ones,
/// as by `shardcore.controls.visible`, since a message is one line and may be printed to a
/// terminal.
pub fn shown(text: &str) -> Cow<'_, str> {
    const MOST: usize = 60;
    let cut = text.char_indices().nth(MOST).map(|(end, _)| end);
    let first = &text[..cut.unwrap_or(text.len())];
    if cut.is_none() && !first.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut shown: String = first.chars().map(visible).collect();
    if cut.is_some() {
        shown.push_str("...");
    }
    Cow::Owned(shown)
}

/// Whether `c` is a control character or changes the text direction.
fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// `c`, or the visible character that replaces it.
fn visible(c: char) -> char {
    match u32::from(c) {
        0x7F => '\u{2421}',
        code @ 0..0x20 => char::from_u32(0x2400 + code).unwrap_or(char::REPLACEMENT_CHARACTER),
        _ if steers(c) => char::REPLACEMENT_CHARACTER,
        _ => c,
    }
}

/// The text of `bytes`, which has to be UTF-8.
pub fn decode(py: Python<'_>, bytes: Vec<u8>, filename: &str) -> PyResult<String> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) => {
            // Show the text up to the invalid byte only: the rest is not known to be UTF-8.
            let valid = error.utf8_error().valid_up_to();
            let bytes = error.as_bytes();
            let good = String::from_utf8_lossy(&bytes[..valid]);
            let at = u32::try_from(valid).unwrap_or(0);
            let message = format!("byte 0x{:02X} is not UTF-8", bytes[valid]);
            let diagnostic = Diagnostic::new(Code::Syntax, message).at(Span::new(at, at));
            Err(raise(py, &diagnostic.into(), &good, filename))
        }
    }
}
