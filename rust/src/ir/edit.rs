//! Edits: the only ways to change a program's structure. They keep use lists and print flags right.

use super::{Op, OpFlags, OpKind, OpText, Program, NO_NAME, OPS};
use crate::index::{BlockId, OpId, RegionId, RuleId, SignatureId};
use crate::shardy::Version;

/// Where an op is inserted.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// Right before this op.
    Before(OpId),
    /// Right after this op.
    After(OpId),
    /// At the start of this block.
    Start(BlockId),
    /// At the end of this block.
    End(BlockId),
}

impl Program {
    /// The version of Shardy by which the program is read, verified and propagated.
    #[inline]
    pub const fn shardy(&self) -> Version {
        self.shardy
    }
    /// Sets the version of Shardy for what follows.
    pub fn follow(&mut self, shardy: Version) {
        if self.shardy != shardy {
            self.shardy = shardy;
            // Rules depend on the version.
            self.signature_rules.reset(0);
        }
    }
    /// Turns `op` into an op of `kind` with the same operands, results, regions and location. Of
    /// its attributes only the payload stays, which the caller replaces. Use lists are ordered as
    /// if a new op had replaced `op`; results keep their names.
    pub fn recast_op(&mut self, op: OpId, kind: OpKind) {
        let (name, traits) = (self.kind_name(kind), OPS[kind as usize].traits);
        let row = &mut self.ops[op];
        self.kinds.removed(row.kind);
        self.kinds.added(op, kind, name);
        (row.name, row.kind, row.traits) = (name, kind, traits);
        self.printing.flags[op] = OpFlags::SYNTHESISED;
        let text = &mut self.printing.ops[op];
        *text = OpText { loc: text.loc, ..OpText::default() };
        row.signature = SignatureId::NONE;
        self.op_rules.set(op, RuleId::NONE);
        if !self.no_result_shardings.is_empty() {
            self.no_result_shardings.remove(&op);
        }
        for slot in self.op_uses(op) {
            self.printing.operand_names[slot] = NO_NAME;
            self.make_newest_use(slot);
        }
        for result in self.op_results(op) {
            self.reverse_uses(result);
        }
    }
    /// Puts `op`, which is in no block, at `place`.
    #[inline]
    pub fn insert_op(&mut self, op: OpId, place: Place) {
        let (block, prev, next) = match place {
            Place::Before(at) => (self.ops[at].parent, self.ops[at].prev, at),
            Place::After(at) => (self.ops[at].parent, at, self.ops[at].next),
            Place::Start(block) => (block, OpId::NONE, self.blocks[block].first_op),
            Place::End(block) => (block, self.blocks[block].last_op, OpId::NONE),
        };
        let row = &mut self.ops[op];
        (row.parent, row.prev, row.next) = (block, prev, next);
        match prev.get() {
            Some(prev) => self.ops[prev].next = op,
            None => self.blocks[block].first_op = op,
        }
        match next.get() {
            Some(next) => self.ops[next].prev = op,
            None => self.blocks[block].last_op = op,
        }
        self.number_op(op);
    }
    /// Takes `op` out of its block; it keeps its operands and uses.
    #[inline]
    pub fn unlink_op(&mut self, op: OpId) {
        let Op { parent, prev, next, .. } = self.ops[op];
        match prev.get() {
            Some(prev) => self.ops[prev].next = next,
            None => self.blocks[parent].first_op = next,
        }
        match next.get() {
            Some(next) => self.ops[next].prev = prev,
            None => self.blocks[parent].last_op = prev,
        }
        let row = &mut self.ops[op];
        (row.parent, row.prev, row.next) = (BlockId::NONE, OpId::NONE, OpId::NONE);
    }
    /// Moves `op` to `place`.
    pub fn move_op(&mut self, op: OpId, place: Place) {
        let block = self.ops[op].parent;
        self.unlink_op(op);
        self.insert_op(op, place);
        self.printing.has_moved_ops |= self.ops[op].parent != block;
    }
    /// Erases `op` and all ops inside it; its results must have no uses left (outside it).
    #[inline]
    pub fn erase_op(&mut self, op: OpId) {
        let mut next = Some(op);
        while let Some(inner) = next {
            for slot in self.op_uses(inner) {
                self.unlink_use(slot);
            }
            self.mark_erased(inner);
            next = self.next_in_pre_order(inner, op);
        }
        self.unlink_op(op);
    }
    pub(super) fn mark_erased(&mut self, op: OpId) {
        let row = &mut self.ops[op];
        if !row.is_erased {
            row.is_erased = true;
            self.kinds.removed(row.kind);
        }
    }
    /// Removes the regions of `op`, which have no blocks.
    pub fn drop_regions(&mut self, op: OpId) {
        debug_assert!(self.op_regions(op).all(|region| self.region_entry(region).is_none()));
        self.ops[op].num_regions = 0;
    }
    /// Moves all blocks of `from` to the end of `to`.
    pub fn take_blocks(&mut self, from: RegionId, to: RegionId) {
        let first = std::mem::take(&mut self.regions[from].first_block);
        let last = std::mem::take(&mut self.regions[from].last_block);
        if first.is_none() {
            return;
        }
        match self.regions[to].last_block.get() {
            Some(last) => self.blocks[last].next = first,
            None => self.regions[to].first_block = first,
        }
        self.regions[to].last_block = last;
        let mut block = first;
        while block.is_some() {
            self.blocks[block].region = to;
            block = self.blocks[block].next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{FuncId, Id, UseId, ValueId};
    use crate::ir::NewOp;

    /// The users of each value of the only function, newest first: the position of the op in the
    /// block, and the operand index.
    fn users(program: &Program, body: BlockId) -> Vec<Vec<(usize, usize)>> {
        let ops: Vec<OpId> = program.block_ops(body).collect();
        let user = |slot: UseId| {
            let owner = program.operands[slot].owner;
            (ops.iter().position(|&op| op == owner).unwrap(), program.operand_index(slot))
        };
        let results = ops.iter().flat_map(|&op| program.op_results(op));
        program
            .block_args(body)
            .chain(results)
            .map(|value| program.uses(value).map(user).collect())
            .collect()
    }

    #[test]
    fn a_recast_op_has_the_uses_of_a_new_one_in_its_place() {
        let text = "func.func private @g(tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>\n\
            func.func @f(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {\n\
            %0 = stablehlo.add %a, %b : tensor<2xf32>\n\
            %1 = call @g(%a, %b, %a) : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>\n\
            %2 = stablehlo.add %1, %a : tensor<2xf32>\n\
            %3 = stablehlo.add %b, %1 : tensor<2xf32>\n\
            return %1 : tensor<2xf32>\n}";
        let parsed = crate::mlir::parse(text.into()).unwrap();
        let body = parsed.functions[FuncId::from_index(1)].body;
        let call = parsed.block_ops(body).nth(1).unwrap();
        let mut recast = parsed.clone();
        recast.recast_op(call, OpKind::NamedComputation);
        let mut replaced = parsed.clone();
        let operands: Vec<ValueId> = replaced.operands(call).collect();
        let (old, ty) = (replaced.result(call, 0), replaced.type_of(replaced.result(call, 0)));
        let new = NewOp::of_kind(OpKind::NamedComputation, &operands, &[ty]);
        let new = replaced.build(new, replaced.before(call));
        replaced.replace_all_uses(old, replaced.result(new, 0));
        replaced.erase_op(call);
        assert_eq!(users(&recast, body), users(&replaced, body));
        assert_ne!(users(&recast, body), users(&parsed, body));
        assert!(recast.has_any(&[OpKind::NamedComputation]) && !recast.has_any(&[OpKind::Call]));
    }
}
