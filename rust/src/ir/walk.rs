//! Walks over an op and all ops inside it, in linear time, without recursion or allocation.

use super::Program;
use crate::index::{BlockId, Id, OpId, RegionId, ValueId};

/// Iterates over an op and all ops inside it: an op before its regions, in program order.
pub struct PreOrder<'a> {
    program: &'a Program,
    root: OpId,
    last: OpId,
    skip: bool,
}

/// Iterates over an op and all ops inside it: an op after its regions, in program order.
pub struct PostOrder<'a> {
    program: &'a Program,
    root: OpId,
    last: OpId,
}

impl PreOrder<'_> {
    /// Skips the ops inside the op that was returned last.
    pub fn skip_inside(&mut self) {
        self.skip = true;
    }
}

impl Program {
    /// The op of `block` that is `op` or encloses it; `None` if there is none.
    pub fn ancestor_in(&self, op: OpId, block: BlockId) -> Option<OpId> {
        let mut op = op;
        while self.parent_block(op) != block {
            op = self.parent_op(op)?;
        }
        Some(op)
    }
    /// Every value in `root`, in program order: the results of an op, then the arguments of
    /// its blocks, then what is inside.
    pub fn values_of(&self, root: OpId) -> Vec<ValueId> {
        let mut values = Vec::new();
        for op in self.pre_order(root) {
            values.extend(self.op_results(op));
            for region in self.op_regions(op) {
                values.extend(self.region_blocks(region).flat_map(|block| self.block_args(block)));
            }
        }
        values
    }
    /// Number of ops in the module, itself included.
    pub fn num_ops(&self) -> usize {
        self.pre_order(self.module).count()
    }
    /// `root` and all ops inside it, in pre-order.
    pub fn pre_order(&self, root: OpId) -> PreOrder<'_> {
        PreOrder { program: self, root, last: OpId::NONE, skip: false }
    }
    /// `root` and all ops inside it, in post-order; this is how MLIR walks unless told otherwise.
    pub fn post_order(&self, root: OpId) -> PostOrder<'_> {
        PostOrder { program: self, root, last: OpId::NONE }
    }
    /// The op after `op` in a pre-order walk of `root`: for walks during which ops are edited.
    #[inline]
    pub fn next_in_pre_order(&self, op: OpId, root: OpId) -> Option<OpId> {
        let row = &self.ops[op];
        if row.num_regions == 0 {
            if op == root {
                return None;
            }
            if row.next.is_some() {
                return row.next.get();
            }
        }
        self.step_in_pre_order(op, root)
    }
    #[inline(never)]
    fn step_in_pre_order(&self, op: OpId, root: OpId) -> Option<OpId> {
        self.first_op_from_region(op, 0).or_else(|| self.next_outside(op, root))
    }
    /// The first op in or after `region` among the regions of its op.
    fn first_op_from_region(&self, op: OpId, mut region: usize) -> Option<OpId> {
        let regions = &self.ops[op];
        while region < regions.num_regions as usize {
            let id = RegionId::from_index(regions.first_region.index() + region);
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
        region.index() - self.ops[self.regions[region].op].first_region.index()
    }
    /// The first op of a post-order walk of `op`.
    fn innermost_first(&self, mut op: OpId) -> OpId {
        while let Some(first) = self.first_op_from_region(op, 0) {
            op = first;
        }
        op
    }
    /// The op after `op` among those that have the same parent.
    fn next_sibling(&self, op: OpId) -> Option<OpId> {
        if let Some(next) = self.ops[op].next.get() {
            return Some(next);
        }
        let parent = self.ops[op].parent;
        let region = self.blocks[parent].region;
        let mut block = self.blocks[parent].next;
        while block.is_some() {
            if let Some(first) = self.blocks[block].first_op.get() {
                return Some(first);
            }
            block = self.blocks[block].next;
        }
        self.first_op_from_region(self.regions[region].op, self.region_index(region) + 1)
    }
    /// The op in `root` after `op` and everything inside it, in pre-order.
    #[inline]
    pub fn next_outside(&self, op: OpId, root: OpId) -> Option<OpId> {
        let next = self.ops[op].next;
        if next.is_some() && op != root {
            return next.get();
        }
        self.step_outside(op, root)
    }
    #[inline(never)]
    fn step_outside(&self, mut op: OpId, root: OpId) -> Option<OpId> {
        while op != root {
            if let Some(next) = self.next_sibling(op) {
                return Some(next);
            }
            op = self.block_parent_op(self.ops[op].parent);
        }
        None
    }
}

impl Iterator for PreOrder<'_> {
    type Item = OpId;

    #[inline]
    fn next(&mut self) -> Option<OpId> {
        let next = match self.last.get() {
            None => self.root.get(),
            Some(last) if std::mem::take(&mut self.skip) => {
                self.program.next_outside(last, self.root)
            }
            Some(last) => self.program.next_in_pre_order(last, self.root),
        };
        self.last = next.unwrap_or(self.last);
        next
    }
}

impl PostOrder<'_> {
    /// The next op if it is not simply the next one in the current block.
    fn step(&mut self) -> Option<OpId> {
        let program = self.program;
        let next = match self.last.get() {
            None => program.innermost_first(self.root.get()?),
            Some(last) if last == self.root => return None,
            Some(last) => match program.next_sibling(last) {
                Some(sibling) => program.innermost_first(sibling),
                None => program.block_parent_op(program.ops[last].parent),
            },
        };
        self.last = next;
        Some(next)
    }
}

impl Iterator for PostOrder<'_> {
    type Item = OpId;

    #[inline]
    fn next(&mut self) -> Option<OpId> {
        let last = self.last.get().filter(|&last| last != self.root);
        let next = last.and_then(|last| self.program.ops[last].next.get());
        if let Some(next) = next.filter(|&next| self.program.ops[next].num_regions == 0) {
            self.last = next;
            return Some(next);
        }
        self.step()
    }
}
