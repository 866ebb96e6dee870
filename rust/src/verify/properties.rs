//! Checks the properties (`<{...}>`) of ops in generic form against their definitions, since the
//! parser does not know which properties an op has.

use super::Verifier;
use crate::error::Span;
use crate::index::OpId;
use crate::ir::OpTraits;
use crate::stablehlo::definition_of;

impl Verifier<'_> {
    /// Checks known ops with properties that are not a dictionary or that they do not have.
    pub(super) fn properties(&mut self, given: &[(OpId, Span)]) {
        for &(op, span) in given {
            let (name, text) = (self.program.op_name(op), self.program.text().get(span));
            let is_terminator = OpTraits::of_name(name).has(OpTraits::TERMINATOR);
            // If an op has a definition, attributes without a dialect are checked against it.
            let attrs = self.program.op_attrs(op);
            let is_checked = || attrs.iter().any(|attr| !self.program.str(attr.name).contains('.'));
            let has_none = match definition_of(name, self.program.shardy()) {
                Some(definition) => definition.attributes.is_empty() && !is_checked(),
                None => is_terminator,
            };
            let says = if has_none {
                "this operation has empty properties"
            } else if text.starts_with('{') {
                continue;
            } else {
                "expected DictionaryAttr to set properties"
            };
            self.bare(op, format!("invalid properties {text} for op {name}: {says}"));
        }
    }
}
