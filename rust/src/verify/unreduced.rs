//! Checks constraints and reshards of values with unreduced axes.

use super::Verifier;
use crate::error::Code;
use crate::index::OpId;
use crate::shardy::Change;

impl Verifier<'_> {
    /// Checks the change of unreduced axes by a constraint or a reshard.
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
