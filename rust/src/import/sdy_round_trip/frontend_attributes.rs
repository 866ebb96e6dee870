//! Reads Shardy's frontend attributes, which are strings in a dictionary, and removes them.

use crate::attribute::{write_key, write_string};
use crate::error::{Error, Result};
use crate::index::OpId;
use crate::ir::{Attr, Program, Span};
use crate::mlir::AttrValue;

/// The prefix of the names of Shardy's frontend attributes.
pub(super) const PREFIX: &str = "xla.sdy.";

/// The attribute with the dictionary of frontend attributes.
pub(super) const FRONTEND_ATTRIBUTES: &str = "mhlo.frontend_attributes";

/// The text of a frontend attribute, and the span of the dictionary that has it.
pub(super) struct Text {
    pub(super) text: String,
    span: Span,
}

impl Text {
    /// The result of parsing the text with `read`; errors are at the dictionary.
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
    // Quotes may be escaped twice.
    let text = value.as_str()?.replace("\\\"", "\"");
    Some(Text { text, span: attr.value })
}

/// The frontend attribute `name` of `op`, without the prefix `xla.sdy.`.
pub(super) fn of_op(program: &Program, op: OpId, name: &str) -> Option<Text> {
    find(program, program.op_attrs(op), name)
}

/// The frontend attributes in `attrs` that are not Shardy's, as MLIR prints them; `None` if there
/// are none.
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

/// Removes Shardy's frontend attributes from `op`.
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
