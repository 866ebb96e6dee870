//! Reading a program: what ops, values, blocks, regions and functions are made of, by their ids.
//!
//! All of these are a look-up in a table or two and are inlined. Lists of ids ([`IdRange`]) know their
//! length and skip at once.

use super::{Attr, AttrRange, OpKind, OpRules, Operand, Payload, Program, Span, Type, ValueDef};
use crate::index::{
    BlockId, FuncId, Id, IdRange, IdVec, OpId, RegionId, ShardingId, SignatureId, StrId, TypeId,
    UseId, ValueId,
};
use std::ops::Range;

impl Program {
    /// The `builtin.module` op.
    #[inline]
    pub fn module_op(&self) -> OpId {
        self.module
    }
    /// The block of the module op.
    #[inline]
    pub fn module_block(&self) -> BlockId {
        self.region_entry(self.ops[self.module].first_region)
    }
    /// The first block of `region`, or `NONE` for an empty region.
    #[inline]
    pub fn region_entry(&self, region: RegionId) -> BlockId {
        self.regions[region].first_block
    }
    /// The op that `region` belongs to.
    #[inline]
    pub fn region_op(&self, region: RegionId) -> OpId {
        self.regions[region].op
    }
    /// The regions of `op`.
    #[inline]
    pub fn op_regions(&self, op: OpId) -> IdRange<RegionId> {
        let row = &self.ops[op];
        let start = if row.num_regions == 0 { 0 } else { row.first_region.index() };
        IdRange::new(start..start + row.num_regions as usize)
    }
    /// How many regions `op` has.
    #[inline]
    pub fn num_regions(&self, op: OpId) -> usize {
        self.ops[op].num_regions as usize
    }
    /// The `index`-th region of `op`.
    #[inline]
    pub fn region(&self, op: OpId, index: usize) -> RegionId {
        debug_assert!(index < self.num_regions(op));
        RegionId::from_index(self.ops[op].first_region.index() + index)
    }
    /// The values that `op` uses, in order.
    #[inline]
    pub fn operands(
        &self,
        op: OpId,
    ) -> impl ExactSizeIterator<Item = ValueId> + DoubleEndedIterator + Clone + '_ {
        self.op_operands(op).iter().map(|slot| slot.value)
    }
    /// How many operands `op` has.
    #[inline]
    pub fn num_operands(&self, op: OpId) -> usize {
        self.ops[op].num_operands as usize
    }
    /// The operand slots of `op`.
    #[inline]
    pub(super) fn op_operands(&self, op: OpId) -> &[Operand] {
        self.operands.slice(self.operand_range(op))
    }
    /// The ids of `op`'s operand slots.
    #[inline]
    pub fn op_uses(&self, op: OpId) -> IdRange<UseId> {
        IdRange::new(self.operand_range(op))
    }
    #[inline]
    pub(super) fn operand_range(&self, op: OpId) -> Range<usize> {
        let row = &self.ops[op];
        let start = if row.num_operands == 0 { 0 } else { row.first_operand.index() };
        start..start + row.num_operands as usize
    }
    /// The `index`-th operand of `op`.
    #[inline]
    pub fn operand(&self, op: OpId, index: usize) -> ValueId {
        self.op_operands(op)[index].value
    }
    /// The op whose operand `slot` is.
    #[inline]
    pub fn user(&self, slot: UseId) -> OpId {
        self.operands[slot].owner
    }
    /// The value that `slot` uses.
    #[inline]
    pub fn used_value(&self, slot: UseId) -> ValueId {
        self.operands[slot].value
    }
    /// The results of `op`.
    #[inline]
    pub fn op_results(&self, op: OpId) -> IdRange<ValueId> {
        let row = &self.ops[op];
        let start = if row.num_results == 0 { 0 } else { row.first_result.index() };
        IdRange::new(start..start + row.num_results as usize)
    }
    /// How many results `op` has.
    #[inline]
    pub fn num_results(&self, op: OpId) -> usize {
        self.ops[op].num_results as usize
    }
    /// The `index`-th result of `op`.
    #[inline]
    pub fn result(&self, op: OpId, index: usize) -> ValueId {
        debug_assert!(index < self.ops[op].num_results as usize);
        ValueId::from_index(self.ops[op].first_result.index() + index)
    }
    /// The arguments of `block`.
    #[inline]
    pub fn block_args(&self, block: BlockId) -> IdRange<ValueId> {
        let row = &self.blocks[block];
        let start = if row.num_args == 0 { 0 } else { row.first_arg.index() };
        IdRange::new(start..start + row.num_args as usize)
    }
    /// How many arguments `block` has.
    #[inline]
    pub fn num_block_args(&self, block: BlockId) -> usize {
        self.blocks[block].num_args as usize
    }
    /// The `index`-th argument of `block`.
    #[inline]
    pub fn block_arg(&self, block: BlockId, index: usize) -> ValueId {
        debug_assert!(index < self.num_block_args(block));
        ValueId::from_index(self.blocks[block].first_arg.index() + index)
    }
    /// The ops of `block` in order.
    #[inline]
    pub fn block_ops(&self, block: BlockId) -> impl Iterator<Item = OpId> + '_ {
        std::iter::successors(self.blocks[block].first_op.get(), |&op| self.ops[op].next.get())
    }
    /// The first op of `block`, `NONE` if it is empty.
    #[inline]
    pub fn first_op(&self, block: BlockId) -> OpId {
        self.blocks[block].first_op
    }
    /// The last op of `block`, `NONE` if it is empty.
    #[inline]
    pub fn last_op(&self, block: BlockId) -> OpId {
        self.blocks[block].last_op
    }
    /// The block after `block` in its region.
    #[inline]
    pub fn next_block(&self, block: BlockId) -> BlockId {
        self.blocks[block].next
    }
    /// The region that `block` is in.
    #[inline]
    pub fn block_region(&self, block: BlockId) -> RegionId {
        self.blocks[block].region
    }
    /// The blocks of `region` in order.
    #[inline]
    pub fn region_blocks(&self, region: RegionId) -> impl Iterator<Item = BlockId> + '_ {
        let first = self.regions[region].first_block.get();
        std::iter::successors(first, |&block| self.blocks[block].next.get())
    }
    /// The last op of the entry block of `op`'s `index`-th region.
    #[inline]
    pub fn region_terminator(&self, op: OpId, index: usize) -> Option<OpId> {
        let region = self.op_regions(op).nth(index)?;
        let block = self.region_entry(region).get()?;
        self.blocks[block].last_op.get()
    }
    /// The uses of `value`, most recently added first.
    #[inline]
    pub fn uses(&self, value: ValueId) -> impl Iterator<Item = UseId> + '_ {
        std::iter::successors(self.values[value].first_use.get(), |&slot| {
            self.operands[slot].next_use.get()
        })
    }
    /// The use of `value` that was added last, `NONE` if it has none.
    #[inline]
    pub fn newest_use(&self, value: ValueId) -> UseId {
        self.values[value].first_use
    }
    /// The use of the same value that was added before `slot`.
    #[inline]
    pub fn next_use(&self, slot: UseId) -> UseId {
        self.operands[slot].next_use
    }
    /// Whether anything uses `value`.
    #[inline]
    pub fn has_uses(&self, value: ValueId) -> bool {
        self.values[value].first_use.is_some()
    }
    /// The ops that use `value`, most recently added first, once for each use.
    #[inline]
    pub fn users(&self, value: ValueId) -> impl Iterator<Item = OpId> + '_ {
        let mut next = self.values[value].first_use;
        std::iter::from_fn(move || {
            let row = &self.operands[next.get()?];
            next = row.next_use;
            Some(row.owner)
        })
    }
    /// Whether `value` has exactly one use.
    #[inline]
    pub fn has_one_use(&self, value: ValueId) -> bool {
        let first = self.values[value].first_use;
        first.is_some() && self.operands[first].next_use.is_none()
    }
    /// Which operand of its op `slot` is.
    #[inline]
    pub fn operand_index(&self, slot: UseId) -> usize {
        slot.index() - self.ops[self.operands[slot].owner].first_operand.index()
    }
    /// Which result of its op, or argument of its block, `value` is.
    #[inline]
    pub fn value_index(&self, value: ValueId) -> usize {
        match self.values[value].def() {
            ValueDef::Result(op) => value.index() - self.ops[op].first_result.index(),
            ValueDef::Arg(block) => value.index() - self.blocks[block].first_arg.index(),
        }
    }
    /// What defines `value`.
    #[inline]
    pub fn def(&self, value: ValueId) -> ValueDef {
        self.values[value].def()
    }
    /// The op that has `value` as a result.
    #[inline]
    pub fn defining_op(&self, value: ValueId) -> Option<OpId> {
        match self.values[value].def() {
            ValueDef::Result(op) => Some(op),
            ValueDef::Arg(_) => None,
        }
    }
    /// The block that `op` is in; `NONE` for the module, and for an op that is in none yet.
    #[inline]
    pub fn parent_block(&self, op: OpId) -> BlockId {
        self.ops[op].parent
    }
    /// The op before `op` in its block.
    #[inline]
    pub fn prev_op(&self, op: OpId) -> OpId {
        self.ops[op].prev
    }
    /// The op after `op` in its block.
    #[inline]
    pub fn next_op(&self, op: OpId) -> OpId {
        self.ops[op].next
    }
    /// The op whose region holds `op`; `None` for the module.
    #[inline]
    pub fn parent_op(&self, op: OpId) -> Option<OpId> {
        Some(self.block_parent_op(self.ops[op].parent.get()?))
    }
    /// The op whose region holds `block`.
    #[inline]
    pub fn block_parent_op(&self, block: BlockId) -> OpId {
        self.regions[self.blocks[block].region].op
    }
    /// What kind of op it is.
    #[inline]
    pub fn kind(&self, op: OpId) -> OpKind {
        self.ops[op].kind
    }
    /// Whether `op` was erased.
    #[inline]
    pub fn is_erased(&self, op: OpId) -> bool {
        self.ops[op].is_erased
    }
    /// The full name of `op`.
    pub fn op_name(&self, op: OpId) -> &str {
        self.strings.get(self.ops[op].name)
    }
    /// The full name of `op` as a string of the program.
    #[inline]
    pub fn op_name_id(&self, op: OpId) -> StrId {
        self.ops[op].name
    }
    /// What the rule of `op` may depend on; `NONE` if no rule can apply.
    #[inline]
    pub fn signature(&self, op: OpId) -> SignatureId {
        self.ops[op].signature
    }
    /// The type of `value`.
    #[inline]
    pub fn value_type(&self, value: ValueId) -> &Type {
        &self.types[self.values[value].ty]
    }
    /// The id of the type of `value`.
    #[inline]
    pub fn type_of(&self, value: ValueId) -> TypeId {
        self.values[value].ty
    }
    /// How the type of `value` is written.
    pub fn value_type_text(&self, value: ValueId) -> &str {
        self.type_text(self.values[value].ty)
    }
    /// The sharding of `value`, `NONE` if it has none.
    #[inline]
    pub fn sharding(&self, value: ValueId) -> ShardingId {
        self.value_shardings[value]
    }
    /// The shardings of all values, `NONE` for those that have none: a table of its own, since
    /// propagation reads little else.
    #[inline]
    pub fn value_shardings(&self) -> &IdVec<ValueId, ShardingId> {
        &self.value_shardings
    }
    /// The shardings of `op`, which has no results; `None` if it has no sharding attribute.
    pub fn no_result_shardings(&self, op: OpId) -> Option<&[ShardingId]> {
        self.no_result_shardings.get(&op).map(Vec::as_slice)
    }
    /// The structured attributes of `op`.
    #[inline]
    pub fn payload(&self, op: OpId) -> Option<&Payload> {
        self.ops[op].payload.get().map(|id| &self.payloads[id])
    }
    /// The attribute dictionary of `op`.
    #[inline]
    pub fn op_attrs(&self, op: OpId) -> &[Attr] {
        self.attr_list(self.attr_ranges[op])
    }
    /// The attributes in `range` of the attribute table.
    #[inline]
    pub fn attr_list(&self, range: AttrRange) -> &[Attr] {
        &self.attrs[range.start as usize..(range.start + range.len) as usize]
    }
    /// The text of attribute `name` of `op`.
    pub fn attr(&self, op: OpId, name: &str) -> Option<&str> {
        self.attr_value(op, name).map(|span| self.text.get(span))
    }
    /// The span of the text of attribute `name` of `op`.
    pub fn attr_value(&self, op: OpId, name: &str) -> Option<Span> {
        let attrs = self.op_attrs(op).iter();
        attrs.copied().find(|attr| self.strings.get(attr.name) == name).map(|attr| attr.value)
    }
    /// The op that required `op`, a reshard or collective that a pass has inserted.
    pub fn cause(&self, op: OpId) -> Option<OpId> {
        self.causes.get(&op).copied()
    }
    /// The span of the definition of the alias `name`, given with its sigil; never another alias.
    pub fn alias(&self, name: StrId) -> Option<Span> {
        self.aliases.get(&name).copied()
    }
    /// Whether the text defines aliases.
    pub fn has_aliases(&self) -> bool {
        !self.aliases.is_empty()
    }
    /// Which rule each op carries as its `sdy.sharding_rule` attribute.
    #[inline]
    pub fn op_rules(&self) -> &OpRules {
        &self.op_rules
    }
}

/// Sizes of tables with one row for each op, value and so on; erased rows count.
impl Program {
    /// How many ids of ops there are, those of erased ops included.
    #[inline]
    pub fn num_op_ids(&self) -> usize {
        self.ops.len()
    }
    /// All ids of ops, in the order in which they were made, those of erased ops included.
    pub fn op_ids(&self) -> IdRange<OpId> {
        self.ops.ids()
    }
    /// How many ids of values there are.
    #[inline]
    pub fn num_value_ids(&self) -> usize {
        self.values.len()
    }
    /// All ids of values, in the order in which they were made.
    pub fn value_ids(&self) -> IdRange<ValueId> {
        self.values.ids()
    }
    /// How many ids of operand slots there are.
    #[inline]
    pub fn num_use_ids(&self) -> usize {
        self.operands.len()
    }
    /// How many ids of blocks there are.
    pub fn num_block_ids(&self) -> usize {
        self.blocks.len()
    }
    /// All ids of regions.
    pub fn region_ids(&self) -> IdRange<RegionId> {
        self.regions.ids()
    }
    /// How many ids of functions there are.
    pub fn num_func_ids(&self) -> usize {
        self.functions.len()
    }
    /// All ids of functions: in program order at parse, then those that passes made.
    pub fn func_ids(&self) -> IdRange<FuncId> {
        self.functions.ids()
    }
}
