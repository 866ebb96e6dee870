//! Edits: the only ways to change a program's structure. They keep use lists and print flags right.

use super::{
    Block, Op, OpFlags, OpKind, OpText, Operand, Program, Region, Span, Value, ValueDef, OPS,
};
use crate::index::{
    BlockId, OpId, PayloadId, RegionId, RuleId, ShardingId, SignatureId, StrId, TypeId, UseId,
    ValueId,
};

/// Where to put an op.
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
    /// Makes room for as many more ops, with values and operands as in most programs, if there is memory:
    /// tables that grow leave what they were behind for a while.
    pub fn reserve(&mut self, ops: usize) {
        let (values, operands) = (ops + ops / 8, ops + ops / 2);
        self.ops.reserve(ops);
        self.op_texts.reserve(ops);
        self.op_flags.reserve(ops);
        self.values.reserve(values);
        self.value_names.reserve(values);
        self.value_shardings.reserve(values);
        self.operands.reserve(operands);
        self.operand_texts.reserve(operands);
    }
    /// Adds a row for an op of which only the name is known, in no block yet.
    pub fn new_op_row(&mut self, name: StrId, kind: OpKind) -> OpId {
        let traits = self.kinds.traits_of(name, self.strings.get(name), kind);
        self.kinds.added(self.ops.next_id(), kind);
        self.op_texts.push(OpText::default());
        self.op_flags.push(OpFlags::default());
        self.ops.push(Op {
            name,
            kind,
            traits,
            first_operand: UseId::NONE,
            num_operands: 0,
            first_result: ValueId::NONE,
            num_results: 0,
            first_region: RegionId::NONE,
            num_regions: 0,
            parent: BlockId::NONE,
            prev: OpId::NONE,
            next: OpId::NONE,
            order: 0,
            signature: SignatureId::NONE,
            payload: PayloadId::NONE,
        })
    }
    /// Adds an op that has no text of its own, in no block yet.
    pub fn create_op(&mut self, name: &str, operands: &[ValueId], result_types: &[TypeId]) -> OpId {
        match OpKind::from_name(name) {
            OpKind::Other => {
                let name = self.strings.intern(name);
                self.create_row(name, OpKind::Other, operands, result_types)
            }
            kind => self.create_op_of(kind, operands, result_types),
        }
    }
    /// The same by its kind, which is not `Other`.
    pub fn create_op_of(
        &mut self,
        kind: OpKind,
        operands: &[ValueId],
        result_types: &[TypeId],
    ) -> OpId {
        let name = self.kind_name(kind);
        self.create_row(name, kind, operands, result_types)
    }
    fn create_row(
        &mut self,
        name: StrId,
        kind: OpKind,
        operands: &[ValueId],
        result_types: &[TypeId],
    ) -> OpId {
        let op = self.new_op_row(name, kind);
        self.op_flags[op] = OpFlags::SYNTHESISED;
        self.add_operands(op, operands.iter().map(|&value| (value, u32::MAX)));
        self.add_results(op, result_types.iter().map(|&ty| (ty, u32::MAX)));
        op
    }
    /// Makes of `op` an op of `kind` with the same operands, results, regions and location, and no
    /// attributes but the structured ones, which the caller replaces. Uses are in the order in which
    /// they were had a new op taken the place of `op`; results keep their names.
    pub fn recast_op(&mut self, op: OpId, kind: OpKind) {
        let (name, traits) = (self.kind_name(kind), OPS[kind as usize].traits);
        let row = &mut self.ops[op];
        self.kinds.removed(row.kind);
        self.kinds.added(op, kind);
        (row.name, row.kind, row.traits) = (name, kind, traits);
        self.op_flags[op] = OpFlags::SYNTHESISED;
        let text = &mut self.op_texts[op];
        *text = OpText { loc: text.loc, ..OpText::default() };
        row.signature = SignatureId::NONE;
        self.op_rules.set(op, RuleId::NONE);
        if !self.no_result_shardings.is_empty() {
            self.no_result_shardings.remove(&op);
        }
        for slot in self.op_uses(op) {
            self.operand_texts[slot] = u32::MAX;
            self.make_newest_use(slot);
        }
        for result in self.op_results(op) {
            self.reverse_uses(result);
        }
    }
    /// Gives `op`, which has none, its operands: values and where their names stand in the text.
    pub fn add_operands(&mut self, op: OpId, operands: impl IntoIterator<Item = (ValueId, u32)>) {
        let first = self.operands.next_id();
        let mut count = 0;
        for (value, text) in operands {
            self.push_operand(op, value, text);
            count += 1;
        }
        self.ops[op].num_operands = count;
        self.ops[op].first_operand = if count == 0 { UseId::NONE } else { first };
    }
    /// Adds an operand slot; the caller tells `op` of it.
    #[inline]
    pub(crate) fn push_operand(&mut self, op: OpId, value: ValueId, text: u32) {
        let slot = self.operands.push(Operand {
            value,
            owner: op,
            next_use: UseId::NONE,
            prev_use: UseId::NONE,
        });
        self.operand_texts.push(text);
        self.link_use(slot, value);
    }
    /// Adds a value that stands for one whose definition comes later; `op` is in no block.
    pub(crate) fn new_placeholder(&mut self, op: OpId, ty: TypeId) -> ValueId {
        self.push_result(op, ty, u32::MAX)
    }
    /// Adds a result; the caller tells `op` of it.
    #[inline]
    pub(crate) fn push_result(&mut self, op: OpId, ty: TypeId, name: u32) -> ValueId {
        self.push_value(Value::new(ty, ValueDef::Result(op)), name, ShardingId::NONE)
    }
    /// Adds a value.
    #[inline]
    pub(super) fn push_value(&mut self, value: Value, name: u32, sharding: ShardingId) -> ValueId {
        self.value_names.push(name);
        self.value_shardings.push(sharding);
        self.values.push(value)
    }
    /// Makes the uses of `placeholder` uses of `value`, as in [`Program::replace_all_uses`] but
    /// without a trace: it is what the text says.
    pub(crate) fn bind_placeholder(&mut self, placeholder: ValueId, value: ValueId) {
        while let Some(slot) = self.values[placeholder].first_use.get() {
            self.unlink_use(slot);
            self.link_use(slot, value);
        }
    }
    /// Gives `op`, which has none, its results: types and where their names stand in the text.
    pub fn add_results(&mut self, op: OpId, results: impl IntoIterator<Item = (TypeId, u32)>) {
        let first = self.values.next_id();
        let mut count = 0;
        for (ty, name) in results {
            self.push_result(op, ty, name);
            count += 1;
        }
        self.ops[op].num_results = count;
        self.ops[op].first_result = if count == 0 { ValueId::NONE } else { first };
    }
    /// Gives `op`, which has none, `count` empty regions.
    pub fn add_regions(&mut self, op: OpId, count: usize) {
        let first = self.regions.next_id();
        for _ in 0..count {
            self.regions.push(Region {
                op,
                first_block: BlockId::NONE,
                last_block: BlockId::NONE,
                span: Span::EMPTY,
            });
        }
        self.ops[op].num_regions = count as u32;
        self.ops[op].first_region = if count == 0 { RegionId::NONE } else { first };
    }
    /// Appends an empty block to `region`.
    pub fn add_block(&mut self, region: RegionId) -> BlockId {
        let block = self.blocks.push(Block {
            region,
            next: BlockId::NONE,
            first_op: OpId::NONE,
            last_op: OpId::NONE,
            first_arg: ValueId::NONE,
            num_args: 0,
            header: Span::EMPTY,
        });
        match self.regions[region].last_block.get() {
            Some(last) => self.blocks[last].next = block,
            None => self.regions[region].first_block = block,
        }
        self.regions[region].last_block = block;
        block
    }
    /// Gives `block`, which has none, its arguments: types and where their names stand in the text.
    pub fn add_block_args(
        &mut self,
        block: BlockId,
        args: impl IntoIterator<Item = (TypeId, u32)>,
    ) {
        let first = self.values.next_id();
        let mut count = 0;
        for (ty, name) in args {
            self.push_value(Value::new(ty, ValueDef::Arg(block)), name, ShardingId::NONE);
            count += 1;
        }
        self.blocks[block].num_args = count;
        self.blocks[block].first_arg = if count == 0 { ValueId::NONE } else { first };
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
        self.has_moved_ops |= self.ops[op].parent != block;
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
    fn mark_erased(&mut self, op: OpId) {
        if !self.op_flags[op].has(OpFlags::ERASED) {
            self.op_flags[op].set(OpFlags::ERASED);
            self.kinds.removed(self.ops[op].kind);
        }
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
    use crate::index::{FuncId, Id};

    /// The users of each value of the only function, newest first, by their place in the block.
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
        let operands: Vec<ValueId> = replaced.op_operands(call).iter().map(|o| o.value).collect();
        let (old, ty) = (replaced.result(call, 0), replaced.values[replaced.result(call, 0)].ty);
        let new = replaced.create_op_of(OpKind::NamedComputation, &operands, &[ty]);
        replaced.insert_op(new, Place::Before(call));
        replaced.replace_all_uses(old, replaced.result(new, 0));
        replaced.erase_op(call);
        assert_eq!(users(&recast, body), users(&replaced, body));
        assert_ne!(users(&recast, body), users(&parsed, body));
        assert!(recast.has_any(&[OpKind::NamedComputation]) && !recast.has_any(&[OpKind::Call]));
    }
}
