//! Prints pipelines with all options, as MLIR does.

use super::options::OptionKind;
use super::{Item, Passes, Pipeline, Step};
use std::fmt;

impl fmt::Display for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.passes.fmt(f)
    }
}

impl fmt::Display for Passes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.anchor)?;
        for (index, item) in self.items.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            match item {
                Item::Step(step) => step.fmt(f)?,
                Item::Nested(inner) => inner.fmt(f)?,
            }
        }
        f.write_str(")")
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spec.name)?;
        let shown = self.options.shown();
        if shown.is_empty() {
            return Ok(());
        }
        f.write_str("{")?;
        for (index, (spec, value)) in shown.into_iter().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            match spec.kind {
                // As in MLIR, an empty list is not printed, except for the spaces around it.
                OptionKind::List(_) if value.is_empty() => {}
                OptionKind::List(_) => write!(f, "{}={{{value}}}", spec.name)?,
                OptionKind::Text if needs_braces(value) => write!(f, "{}={{{value}}}", spec.name)?,
                _ => write!(f, "{}={value}", spec.name)?,
            }
        }
        f.write_str("}")
    }
}

/// Whether a value has to be written in braces so that it can be parsed.
fn needs_braces(value: &str) -> bool {
    let quote = value.find(['{', '\'', '"']).unwrap_or(value.len());
    value.find(' ').is_some_and(|space| space < quote)
}
