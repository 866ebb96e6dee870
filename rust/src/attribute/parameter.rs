//! The reference's messages if a part of an attribute cannot be parsed: after the error itself, a
//! message for the failed parameter of each enclosing attribute.

use super::cursor::Cursor;
use crate::error::{Code, Diagnostic, Error, Result};
use std::fmt::Write as _;

/// A parameter of an attribute, as the reference declares it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameter {
    owner: &'static str,
    name: &'static str,
    /// Its C++ type; empty if the reference's message does not have it.
    kind: &'static str,
}

impl Parameter {
    /// The parameter `name` of `owner`.
    pub const fn new(owner: &'static str, name: &'static str, kind: &'static str) -> Self {
        Self { owner, name, kind }
    }
    /// The message that it could not be parsed.
    pub fn failure(&self) -> String {
        let Self { owner, name, kind } = self;
        let mut message = format!("failed to parse {owner} parameter '{name}'");
        if !kind.is_empty() {
            let _ = write!(message, " which is to be a `{kind}`");
        }
        message
    }
}

/// Whether `error` is a syntax error, which stops parsing, not a verification error.
pub(super) fn is_of_syntax(error: &Error) -> bool {
    error.diagnostics.iter().all(|problem| matches!(problem.code, Code::Syntax | Code::InvalidMesh))
}

/// `error` with a hint.
pub(super) fn with_hint(mut error: Error, hint: &str) -> Error {
    if let Some(problem) = error.diagnostics.last_mut() {
        problem.hint = Some(hint.to_owned());
    }
    error
}

impl Cursor<'_> {
    /// Reads a parameter; if that fails, adds the parameter's message.
    pub(super) fn parameter<T>(
        &mut self,
        parameter: &Parameter,
        read: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let read = read(self);
        self.or_failed(read, || parameter.failure())
    }
    /// Adds the message of `failure` to a syntax error.
    pub(super) fn or_failed<T>(
        &mut self,
        read: Result<T>,
        failure: impl FnOnce() -> String,
    ) -> Result<T> {
        read.map_err(|mut error| {
            if is_of_syntax(&error) {
                error.diagnostics.push(Diagnostic::new(Code::Syntax, failure()).at(self.token()));
            }
            error
        })
    }
}
