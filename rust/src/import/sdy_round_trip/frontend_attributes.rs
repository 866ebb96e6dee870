//! Reads frontend attributes, which are strings by name, and takes away those that were read.

use crate::attribute::{write_key, write_string};
use crate::error::{Error, Result};
use crate::index::OpId;
use crate::ir::{Attr, Program, Span};
use crate::mlir::AttrValue;

/// How the names of what Shardy exports start.
pub(super) const PREFIX: &str = "xla.sdy.";

/// The name of the attribute that has them.
pub(super) const FRONTEND_ATTRIBUTES: &str = "mhlo.frontend_attributes";

/// The text of a frontend attribute, and the place of the dictionary that has it.
pub(super) struct Text {
    pub(super) text: String,
    span: Span,
}

impl Text {
    /// What `read` makes of the text; its mistakes are at the dictionary.
    pub(super) fn parse<T>(&self, read: impl FnOnce(&str) -> Result<T>) -> Result<T> {
        read(&self.text).map_err(|error| {
            let diagnostics = error.diagnostics.into_iter().map(|found| found.at(self.span));
            Error { diagnostics: diagnostics.collect() }
        })
    }
}

/// The frontend attribute `name` among `attrs`, without the prefix `xla.sdy.`.
pub(super) fn find(program: &Program, attrs: &[Attr], name: &str) -> Option<Text> {
    let attr = attrs.iter().find(|attr| program.str(attr.name) == FRONTEND_ATTRIBUTES)?;
    let value = AttrValue::parse(program.text().get(attr.value));
    let is_wanted = |field: &str| field.strip_prefix(PREFIX) == Some(name);
    let (_, value) = value.fields()?.iter().find(|(field, _)| is_wanted(field))?;
    // Quotes may be escaped once more.
    let text = value.as_str()?.replace("\\\"", "\"");
    Some(Text { text, span: attr.value })
}

/// The frontend attribute `name` of `op`, without the prefix `xla.sdy.`.
pub(super) fn of_op(program: &Program, op: OpId, name: &str) -> Option<Text> {
    find(program, program.op_attrs(op), name)
}

/// The frontend attributes of `attrs` that Shardy has not made, as MLIR writes them: `None` if all are its own.
pub(super) fn others(program: &Program, attrs: &[Attr]) -> Option<String> {
    let attr = attrs.iter().find(|attr| program.str(attr.name) == FRONTEND_ATTRIBUTES)?;
    let text = program.text().get(attr.value);
    let value = AttrValue::parse(text);
    let fields = value.fields()?.iter().filter(|(name, _)| !name.starts_with(PREFIX));
    let mut out = String::new();
    for (name, value) in fields {
        let Some(value) = value.as_str() else { return Some(text.to_owned()) };
        out.push_str(if out.is_empty() { "{" } else { ", " });
        write_key(&mut out, name);
        out.push_str(" = ");
        write_string(&mut out, value);
    }
    (!out.is_empty()).then(|| out + "}")
}

/// Takes what Shardy has made away from the frontend attributes of `op`.
pub(super) fn clean(program: &mut Program, op: OpId) {
    let attrs = program.op_attrs(op);
    if !attrs.iter().any(|attr| program.str(attr.name) == FRONTEND_ATTRIBUTES) {
        return;
    }
    match others(program, attrs) {
        Some(text) => program.set_attr(op, FRONTEND_ATTRIBUTES, &text),
        None => {
            program.remove_attr(op, FRONTEND_ATTRIBUTES);
        }
    }
}
