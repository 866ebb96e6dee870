//! Checks constraints and reshards of values that have still to be reduced.

use super::Verifier;
use crate::error::Code;
use crate::index::OpId;
use crate::shardy::Change;

impl Verifier<'_> {
    /// Checks what a constraint or a reshard does to unreduced axes.
    pub(super) fn resharding(&mut self, op: OpId) {
        if !self.program.shardy().has(Change::UnreducedTransitions) || self.malformed.contains(&op)
        {
            return;
        }
        if let Some(message) = self.program.resharding_problem(op) {
            self.report_at_sharding(op, Code::InvalidOp, &message);
        }
    }
}
