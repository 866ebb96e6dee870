//! Ops of `StableHLO` and CHLO against their definitions.

use super::Verifier;
use crate::index::OpId;

impl Verifier<'_> {
    /// Checks that `op` is as its definition says, or may be one without.
    pub(super) fn definition(&mut self, op: OpId) {
        let Some(checker) = &mut self.checker else { return };
        match checker.check(op) {
            Ok(true) => {}
            Ok(false) => self.without_definition(op),
            Err(said) => said.into_iter().for_each(|message| self.bare(op, message)),
        }
    }
}
