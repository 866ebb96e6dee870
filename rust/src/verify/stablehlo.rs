//! Ops of `StableHLO` and CHLO against their definitions.

use super::Verifier;
use crate::index::OpId;

impl Verifier<'_> {
    /// Checks `op` against its definition, or that an op without one is allowed.
    pub(super) fn definition(&mut self, op: OpId) {
        let Some(checker) = &mut self.checker else { return };
        match checker.check(op) {
            Ok(true) => {}
            Ok(false) => self.without_definition(op),
            Err(said) => said.into_iter().for_each(|message| self.bare(op, message)),
        }
    }
}
