//! The program as dense arrays.
//!
//! Ops, values, operand slots, blocks and regions are rows of tables, and refer to each other by id.
//! Everything textual is a [`Span`] into a [`TextPool`], so that an op nobody touched is printed by
//! copying its bytes, and an attribute nobody asks for is never parsed.
//!
//! # Shardings
//!
//! Every sharding that the text has lives on a *value*, as a hash-consed [`ShardingId`]:
//!
//! | where the text has it | where it is here |
//! | --- | --- |
//! | `sdy.sharding = #sdy.sharding_per_value<...>` on an op | its results |
//! | `sdy.sharding` on a function argument | the block argument |
//! | `sdy.sharding` on a function result | [`Port::sharding`] |
//! | `sharding` of `sdy.sharding_constraint`, `sdy.reshard`, `sdy.data_flow_edge`, collectives | the result |
//! | `in_shardings` / `out_shardings` of `sdy.manual_computation`, `sdy.named_computation` | block arguments / results |
//! | a maximal sharding on an op without results | [`Program::no_result_shardings`] |
//!
//! # Uses
//!
//! A value's uses are a doubly linked list through the operand slots, most recently added first, as
//! in MLIR: the order in which users are notified is part of propagation's result.

mod annotate;
mod clone;
mod constant;
mod data_flow;
mod edge_spec;
mod edit;
mod erase;
mod findings;
mod function;
mod kinds;
mod meshes;
mod op;
mod op_info;
mod op_rules;
mod op_text;
mod payload;
mod port;
mod signature;
mod strings;
mod symbols;
mod text;
mod types;
mod uses;
mod value_map;
mod walk;

pub use crate::error::Span;
pub use constant::ConstantValue;
pub use edge_spec::{Edge, EdgeGroup, EdgeOwners, EdgeSpec, Regions};
pub use edit::Place;
pub use findings::Findings;
pub use function::{Function, ORIGINAL_NAME};
pub use kinds::KindTable;
pub use meshes::{MeshTable, ProgramMesh};
pub use op::{Attr, AttrRange, Block, Op, OpFlags, OpText, Operand, Region, Value, ValueDef};
pub use op_info::{OpInfo, OpKind, OpTraits, Syntax, OPS};
pub use op_rules::OpRules;
pub use op_text::has_one_sharding;
pub use payload::{Direction, Payload};
pub use port::{Port, PortRange};
pub use signature::{may_have_rule, write_attr, Signature, SignatureRules, SignatureTable};
pub use strings::Interner;
pub use symbols::{SymbolAttrs, SymbolTable};
pub use text::{Source, TextPool};
pub use types::{element_bits, ElementType, StaticShape, Type, TypeTable};
pub use value_map::ValueMap;
pub use walk::{PostOrder, PreOrder};

use crate::index::{
    BlockId, FuncId, Id, IdRange, IdVec, MeshId, OpId, PayloadId, RegionId, ShardingId, StrId,
    UseId, ValueId,
};
use crate::mesh::Mesh;
use crate::rule::RuleTable;
use crate::sharding::ShardingTable;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// A whole module.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The source and what passes have added to it.
    pub text: TextPool,
    /// Names of ops, attributes and symbols.
    pub strings: Interner,
    /// Types.
    pub types: TypeTable,
    /// Meshes: of `sdy.mesh` ops in program order, and inlined ones in order of appearance.
    pub meshes: MeshTable,
    /// Shardings.
    pub shardings: ShardingTable,
    /// Rules.
    pub rules: RuleTable,
    /// What the rules of ops may depend on.
    pub signatures: SignatureTable,
    /// The rules of signatures.
    pub signature_rules: SignatureRules,
    /// Ops; erased ones stay as rows that nothing refers to.
    pub ops: IdVec<OpId, Op>,
    /// Their text.
    pub op_texts: IdVec<OpId, OpText>,
    /// What happened to them since they were parsed.
    pub op_flags: IdVec<OpId, OpFlags>,
    /// Ops by kind.
    pub kinds: KindTable,
    /// Op results and block arguments.
    pub values: IdVec<ValueId, Value>,
    /// Their shardings: a table of its own, since propagation reads little else.
    pub value_shardings: IdVec<ValueId, ShardingId>,
    /// Where their names `%x` stand in the text where they are defined (for a result of a group `%x:3`
    /// the group's name); `u32::MAX` if the printer has to invent one.
    pub value_names: IdVec<ValueId, u32>,
    /// Operand slots.
    pub operands: IdVec<UseId, Operand>,
    /// Where their names start in the text of their ops; `u32::MAX` if they have none.
    pub operand_texts: IdVec<UseId, u32>,
    /// Blocks.
    pub blocks: IdVec<BlockId, Block>,
    /// Regions.
    pub regions: IdVec<RegionId, Region>,
    /// Functions in program order at parse; passes append.
    pub functions: IdVec<FuncId, Function>,
    /// Arguments and results of functions.
    pub ports: Vec<Port>,
    /// Attribute dictionaries, one after the other.
    pub attrs: Vec<Attr>,
    /// What is known of symbols in attributes.
    pub symbol_attrs: SymbolAttrs,
    /// Structured attributes of ops that have some.
    pub payloads: IdVec<PayloadId, Payload>,
    /// `sdy.sharding_rule` attributes, and rules a pass has put on ops.
    pub op_rules: OpRules,
    /// Shardings of ops that have no results.
    pub no_result_shardings: FxHashMap<OpId, Vec<ShardingId>>,
    /// For reshards and collectives that a pass has put in, the op for whose sake it did.
    pub causes: FxHashMap<OpId, OpId>,
    /// Data-flow edges that users have given to ops, by op name.
    pub edge_specs: FxHashMap<StrId, EdgeSpec>,
    /// Values of attribute and type aliases (`#loc1`, `!t`), by name with its sigil.
    pub aliases: FxHashMap<StrId, Span>,
    /// What the names of values that have none in the text start with; no name in the text does.
    pub fresh_prefix: String,
    /// Whether some op was moved out of its block: its names may be those of values that can be seen
    /// where it is now.
    pub has_moved_ops: bool,
    /// Whether the text has the location of any op or argument.
    pub has_locations: bool,
    /// The definitions of aliases, and resource sections, in the order of the text.
    pub alias_definitions: Vec<Span>,
    /// The `builtin.module` op.
    pub module: OpId,
}

impl Program {
    /// The mesh of `id`.
    pub fn mesh(&self, id: MeshId) -> &Mesh {
        &self.meshes[id].mesh
    }
    /// The named mesh with this symbol.
    pub fn mesh_by_symbol(&self, symbol: StrId) -> Option<MeshId> {
        self.meshes.named(symbol)
    }
    /// The mesh that a sharding is over; `NONE` for the absent sharding.
    #[inline]
    pub fn mesh_of(&self, sharding: ShardingId) -> MeshId {
        self.shardings.get(sharding).map_or(MeshId::NONE, |sharding| sharding.mesh)
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
    /// The regions of `op`.
    #[inline]
    pub fn op_regions(&self, op: OpId) -> IdRange<RegionId> {
        let row = &self.ops[op];
        let start = if row.num_regions == 0 { 0 } else { row.first_region.index() };
        IdRange::new(start..start + row.num_regions as usize)
    }
    /// The operand slots of `op`.
    #[inline]
    pub fn op_operands(&self, op: OpId) -> &[Operand] {
        self.operands.slice(self.operand_range(op))
    }
    /// Where the names of the operands of `op` start in the text.
    #[inline]
    pub fn operand_texts(&self, op: OpId) -> &[u32] {
        self.operand_texts.slice(self.operand_range(op))
    }
    /// The ids of `op`'s operand slots.
    #[inline]
    pub fn op_uses(&self, op: OpId) -> IdRange<UseId> {
        IdRange::new(self.operand_range(op))
    }
    #[inline]
    fn operand_range(&self, op: OpId) -> Range<usize> {
        let row = &self.ops[op];
        let start = if row.num_operands == 0 { 0 } else { row.first_operand.index() };
        start..start + row.num_operands as usize
    }
    /// The `index`-th operand of `op`.
    #[inline]
    pub fn operand(&self, op: OpId, index: usize) -> ValueId {
        self.op_operands(op)[index].value
    }
    /// The results of `op`.
    #[inline]
    pub fn op_results(&self, op: OpId) -> IdRange<ValueId> {
        let row = &self.ops[op];
        let start = if row.num_results == 0 { 0 } else { row.first_result.index() };
        IdRange::new(start..start + row.num_results as usize)
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
    /// The ops of `block` in order.
    #[inline]
    pub fn block_ops(&self, block: BlockId) -> impl Iterator<Item = OpId> + '_ {
        std::iter::successors(self.blocks[block].first_op.get(), |&op| self.ops[op].next.get())
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
    /// The op that has `value` as a result.
    #[inline]
    pub fn defining_op(&self, value: ValueId) -> Option<OpId> {
        match self.values[value].def() {
            ValueDef::Result(op) => Some(op),
            ValueDef::Arg(_) => None,
        }
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
    /// The full name of `op`.
    pub fn op_name(&self, op: OpId) -> &str {
        self.strings.get(self.ops[op].name)
    }
    /// The type of `value`.
    #[inline]
    pub fn value_type(&self, value: ValueId) -> &Type {
        &self.types[self.values[value].ty]
    }
    /// The sharding of `value`, `NONE` if it has none.
    #[inline]
    pub fn sharding(&self, value: ValueId) -> ShardingId {
        self.value_shardings[value]
    }
    /// The structured attributes of `op`.
    #[inline]
    pub fn payload(&self, op: OpId) -> Option<&Payload> {
        self.ops[op].payload.get().map(|id| &self.payloads[id])
    }
    /// The attribute dictionary of `op`.
    #[inline]
    pub fn op_attrs(&self, op: OpId) -> &[Attr] {
        self.attr_list(self.op_texts[op].attrs)
    }
    /// The attributes in `range` of the attribute table.
    #[inline]
    pub fn attr_list(&self, range: AttrRange) -> &[Attr] {
        &self.attrs[range.start as usize..(range.start + range.len) as usize]
    }
    /// The text of attribute `name` of `op`.
    pub fn attr(&self, op: OpId, name: &str) -> Option<&str> {
        let attr = self.op_attrs(op).iter().find(|attr| self.strings.get(attr.name) == name)?;
        Some(self.text.get(attr.value))
    }
    /// The function that `op`, a `func.func`, is.
    #[inline]
    pub fn function_of(&self, op: OpId) -> FuncId {
        match self.payload(op) {
            Some(Payload::Function(id)) => *id,
            _ => FuncId::NONE,
        }
    }
    /// The functions whose ops are in the module, in program order.
    pub fn functions_in_order(&self) -> Vec<FuncId> {
        let ops = self.block_ops(self.module_block());
        ops.map(|op| self.function_of(op)).filter(|func| func.is_some()).collect()
    }
}
