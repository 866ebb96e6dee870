//! Labels of blocks, such as `^bb0`; each region has its own.

use crate::error::{Code, Diagnostic, Result, Span};
use crate::index::{BlockId, OpId};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// A use of a label.
struct LabelUse<'a> {
    region: u32,
    label: &'a str,
    span: Span,
    /// The op that names the block as its successor.
    op: OpId,
}

/// The labels of a program that is being read. A region is given by its id in
/// [`Names`](super::Names).
#[derive(Default)]
pub(in crate::mlir) struct Labels<'a> {
    defined: FxHashMap<(u32, &'a str), BlockId>,
    uses: Vec<LabelUse<'a>>,
}

impl<'a> Labels<'a> {
    /// Records that `label`, at `span`, starts `block` of `region`; fails if another block has that label.
    pub fn define(
        &mut self,
        region: u32,
        label: &'a str,
        span: Span,
        block: BlockId,
    ) -> Result<()> {
        match self.defined.entry((region, label)) {
            Entry::Vacant(place) => {
                place.insert(block);
                Ok(())
            }
            Entry::Occupied(_) => {
                let message = format!("block ^{label} is defined twice");
                Err(Diagnostic::new(Code::RedefinedSymbol, message).at(span).into())
            }
        }
    }
    /// Records that `op` has the successor `label`, at `span`, in `region`.
    pub fn note_use(&mut self, region: u32, label: &'a str, span: Span, op: OpId) {
        self.uses.push(LabelUse { region, label, span, op });
    }
    /// How many uses there are so far.
    pub fn num_uses(&self) -> usize {
        self.uses.len()
    }
    /// The successors of ops, each as a pair of op and block; fails if a label has no block.
    pub fn successors(&self) -> Result<Vec<(OpId, BlockId)>> {
        let block_of = |used: &LabelUse<'_>| {
            let Some(&block) = self.defined.get(&(used.region, used.label)) else {
                let hint = format!("there is no block ^{} in this region", used.label);
                let problem =
                    Diagnostic::new(Code::UnknownSymbol, "reference to an undefined block");
                return Err(problem.at(used.span).with_hint(hint).into());
            };
            Ok((used.op, block))
        };
        self.uses.iter().map(block_of).collect()
    }
}
