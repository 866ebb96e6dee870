//! Labels of blocks, `^bb0`, each of one block of its region.

use crate::error::{Code, Diagnostic, Result, Span};
use rustc_hash::FxHashSet;

/// The labels of a program that is being read. A region is known by its id in [`Names`](super::Names).
#[derive(Default)]
pub(in crate::mlir) struct Labels<'a> {
    defined: FxHashSet<(u32, &'a str)>,
    uses: Vec<(u32, &'a str, Span)>,
}

impl<'a> Labels<'a> {
    /// Records that `label`, at `span`, starts a block of `region`; fails if another block has that label.
    pub fn define(&mut self, region: u32, label: &'a str, span: Span) -> Result<()> {
        if self.defined.insert((region, label)) {
            return Ok(());
        }
        let message = format!("block ^{label} is defined twice");
        Err(Diagnostic::new(Code::RedefinedSymbol, message).at(span).into())
    }
    /// Records that `label` is used in `region`, at `span`.
    pub fn note_use(&mut self, region: u32, label: &'a str, span: Span) {
        self.uses.push((region, label, span));
    }
    /// How many uses there are so far.
    pub fn num_uses(&self) -> usize {
        self.uses.len()
    }
    /// Fails if a label that is used has no block.
    pub fn check(&self) -> Result<()> {
        for &(region, label, span) in &self.uses {
            if !self.defined.contains(&(region, label)) {
                let message = format!("there is no block ^{label} in this region");
                return Err(Diagnostic::new(Code::UnknownSymbol, message).at(span).into());
            }
        }
        Ok(())
    }
}
