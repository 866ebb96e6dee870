//! Rules that are written on ops.

use super::Verifier;
use crate::attribute::{verify_rule_ranks, verify_rule_shapes};
use crate::index::{OpId, TypeId};
use crate::ir::OpKind;

impl Verifier<'_> {
    /// Checks the `sdy.sharding_rule` of `op`, if it has one.
    pub(super) fn rule(&mut self, op: OpId) {
        let Some(rule) = self.program.op_rules.get(op).get() else { return };
        let rule = &self.program.rules[rule];
        let shape = |ty: TypeId| self.program.types[ty].static_shape();
        let operands = self.program.op_operands(op).iter();
        let operands: Vec<_> =
            operands.map(|slot| shape(self.program.values[slot.value].ty)).collect();
        let results = self.program.op_results(op);
        let results: Vec<_> = results.map(|value| shape(self.program.values[value].ty)).collect();
        // The reference's own rules for these ops have other sizes than the dims, and a program may
        // keep its rules.
        let has_other_sizes =
            matches!(self.program.kind(op), OpKind::Convolution | OpKind::Concatenate);
        let check = if has_other_sizes { verify_rule_ranks } else { verify_rule_shapes };
        let found = check(rule, &operands, &results);
        if found.is_empty() {
            return;
        }
        let span = self.attr_span(op, "sdy.sharding_rule").or_else(|| self.name_span(op));
        let name = self.program.op_name(op);
        for mut diagnostic in found {
            diagnostic.span = span;
            diagnostic.message = format!("{name}: {}", diagnostic.message);
            self.diagnostics.push(diagnostic);
        }
    }
}
