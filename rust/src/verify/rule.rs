//! Checks `sdy.sharding_rule` attributes.

use super::Verifier;
use crate::attribute::{verify_rule_ranks, verify_rule_shapes};
use crate::index::OpId;
use crate::ir::OpKind;
use crate::shardy::Change;

impl Verifier<'_> {
    /// Checks the `sdy.sharding_rule` of `op`, if it has one.
    pub(super) fn rule(&mut self, op: OpId) {
        let Some(rule) = self.program.op_rules().get(op).get() else { return };
        let rule = &self.program.rules()[rule];
        let [operands, results] = self.program.static_shapes(op);
        // The reference's own rules for these ops have factor sizes that differ from the dims, and
        // a program may contain such rules.
        let has_other_sizes = match self.program.kind(op) {
            OpKind::Convolution | OpKind::Concatenate => true,
            OpKind::Reshape => self.program.shardy().has(Change::PaddedReshapes),
            _ => false,
        };
        let check = if has_other_sizes { verify_rule_ranks } else { verify_rule_shapes };
        let found = check(rule, &operands, &results);
        if found.is_empty() {
            return;
        }
        let span = self.program.attr_span(op, "sdy.sharding_rule");
        for problem in found {
            let mut problem = self.problem(op, problem.code, &problem.message);
            problem.span = span;
            self.report(op, problem);
        }
    }
}
