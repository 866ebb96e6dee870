//! The concatenated operands of merged dots.
//!
//! Source: XLA's `DotMerger`.

use crate::compilers::xla_cpu::kernels::builder::Builder;
use crate::compilers::xla_cpu::kernels::graph::{Read, NONE};
use crate::index::OpId;

impl Builder<'_, '_, '_> {
    /// The item of the concatenation that `op` reads in place of operand `index`, if it is a part of merged dots and the
    /// concatenation is a kernel of its own; with that operand added to it.
    pub(in crate::compilers::xla_cpu) fn concatenated(
        &mut self,
        op: OpId,
        index: usize,
    ) -> Option<u32> {
        let part = self.layouts.merged.parts.get(&op).copied()?;
        let value = self.storage.equal.first(self.program.operand(op, index));
        let operand = self.item(value);
        if !part.is_concatenated || part.side != index || operand == NONE {
            return None;
        }
        let item = match self.concatenations.get(&part.group) {
            Some(&known) => known,
            None => {
                let kernel = self.kernel(op, false, false);
                self.make_beside(value, 0, kernel)
            }
        };
        self.concatenations.insert(part.group, item);
        let bytes = self.bytes(value);
        let whole = &mut self.graph.items[item as usize];
        whole.bytes = whole.bytes.saturating_add(bytes);
        let kernel = whole.made_by;
        self.reads.push((kernel, Read::whole(operand)));
        Some(item)
    }
}
