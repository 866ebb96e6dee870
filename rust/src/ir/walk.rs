//! Pre-order walks.

use super::Program;
use crate::index::{OpId, RegionId};

/// Iterates over an op and all ops inside it: an op before its regions, in program order.
pub struct PreOrder<'a> {
    program: &'a Program,
    root: OpId,
    next: OpId,
}

impl Program {
    /// `root` and all ops inside it, in pre-order. Linear, without recursion or allocation.
    pub fn pre_order(&self, root: OpId) -> PreOrder<'_> {
        PreOrder { program: self, root, next: root }
    }
    /// The first op in or after `region` among the regions of its op.
    fn first_op_from_region(&self, op: OpId, mut region: usize) -> Option<OpId> {
        let regions = &self.ops[op];
        while region < regions.num_regions as usize {
            let id = self.op_regions(op).nth(region)?;
            let mut block = self.region_entry(id);
            while block.is_some() {
                if let Some(first) = self.blocks[block].first_op.get() {
                    return Some(first);
                }
                block = self.blocks[block].next;
            }
            region += 1;
        }
        None
    }
    /// Which region of its op `region` is.
    fn region_index(&self, region: RegionId) -> usize {
        let op = self.regions[region].op;
        self.op_regions(op).position(|candidate| candidate == region).unwrap_or(0)
    }
    /// The op after `op` and everything inside it, staying inside `root`.
    fn next_after(&self, mut op: OpId, root: OpId) -> Option<OpId> {
        while op != root {
            if let Some(next) = self.ops[op].next.get() {
                return Some(next);
            }
            let mut block = self.blocks[self.ops[op].parent].next;
            let region = self.blocks[self.ops[op].parent].region;
            while block.is_some() {
                if let Some(first) = self.blocks[block].first_op.get() {
                    return Some(first);
                }
                block = self.blocks[block].next;
            }
            let parent = self.regions[region].op;
            if let Some(first) = self.first_op_from_region(parent, self.region_index(region) + 1) {
                return Some(first);
            }
            op = parent;
        }
        None
    }
}

impl Iterator for PreOrder<'_> {
    type Item = OpId;

    fn next(&mut self) -> Option<OpId> {
        let op = self.next.get()?;
        let inside = self.program.first_op_from_region(op, 0);
        self.next = inside.or_else(|| self.program.next_after(op, self.root)).unwrap_or(OpId::NONE);
        Some(op)
    }
}
