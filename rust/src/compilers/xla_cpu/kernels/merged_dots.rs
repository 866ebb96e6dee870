//! The concatenated operands of merged dots, and their results, which are slices of one array.
//!
//! Source: XLA's `DotMerger`.

use crate::compilers::xla_cpu::fusion::op_facts::Fact;
use crate::compilers::xla_cpu::kernels::builder::Builder;
use crate::compilers::xla_cpu::kernels::graph::{Graph, Read, NONE};
use crate::index::{OpId, ValueId};

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
        let known = self.concatenations.get(&part.group).copied();
        let item = known.unwrap_or_else(|| {
            let kernel = self.kernel(op, false, false);
            self.make_beside(value, 0, kernel)
        });
        self.concatenations.insert(part.group, item);
        let bytes = self.bytes(value);
        let bytes = self.in_space(value, bytes);
        let whole = &mut self.graph.items[item as usize];
        whole.bytes = whole.bytes.saturating_add(bytes);
        let kernel = whole.made_by;
        self.reads.push((kernel, Read::whole(operand)));
        Some(item)
    }
    /// Makes what `kernel` writes for `op`, from which `value`, its result, is taken: a part of one array, if dots are merged.
    pub(in crate::compilers::xla_cpu) fn make_whole(
        &mut self,
        op: OpId,
        value: ValueId,
        kernel: u32,
    ) -> u32 {
        let bytes = self.whole_bytes(op);
        let Some(part) = self.layouts.merged.parts.get(&op) else {
            return self.make(value, bytes, kernel);
        };
        let (group, bytes) = (part.group, self.in_space(value, bytes));
        let known = self.merged_results.get(&group).copied();
        let whole = known.unwrap_or_else(|| self.make_beside(value, 0, kernel));
        self.merged_results.insert(group, whole);
        let all = &mut self.graph.items[whole as usize].bytes;
        *all = all.saturating_add(bytes);
        self.name(value, whole, kernel);
        self.item(value)
    }
    /// The bytes of the part of the result of merged dots that `item` is, if it is one; and whether it is split into parts that are
    /// yet to be summed.
    pub(in crate::compilers::xla_cpu) fn part_of_merged(
        &mut self,
        graph: &Graph,
        item: u32,
    ) -> Option<(u128, bool)> {
        let item = &graph.items[item as usize];
        if item.name_of == NONE || self.layouts.merged.parts.is_empty() {
            return None;
        }
        let mut op = self.program.defining_op(item.value)?;
        while self.storage.facts.has(op, Fact::NAME) {
            op = self.program.defining_op(self.storage.equal.first(self.program.operand(op, 0)))?;
        }
        let whole = self.program.defining_op(graph.items[item.name_of as usize].value)?;
        let parts = &self.layouts.merged.parts;
        let is_part = parts.get(&op)?.group == parts.get(&whole)?.group;
        let bytes = self.whole_bytes(op);
        is_part.then(|| (bytes, self.layouts.split_k(self.program, self.works, op) > 1))
    }
    /// `bytes`, if `value` is in the memory that is counted; else 0.
    pub(in crate::compilers::xla_cpu) fn in_space(&self, value: ValueId, bytes: u128) -> u128 {
        let is_there = self.space.is_none_or(|space| self.works.spaces.takes(space, value));
        if is_there {
            bytes
        } else {
            0
        }
    }
}
