//! The tables of a program. They are private to `ir/`: see its documentation for how to read, build and
//! edit one.

use super::edge_spec::EdgeSpecs;
use super::function::Function;
use super::kinds::KindTable;
use super::meshes::MeshTable;
use super::op::{Attr, AttrRange, Block, Op, Operand, Region, Value};
use super::op_equivalence::AlikeOps;
use super::op_rules::OpRules;
use super::payload::Payload;
use super::port::Port;
use super::printing::Printing;
use super::signature::{SignatureRules, SignatureTable};
use super::strings::Interner;
use super::symbols::SymbolAttrs;
use super::text::TextPool;
use super::types::TypeTable;
use crate::error::Span;
use crate::index::{
    BlockId, FuncId, IdVec, OpId, PayloadId, RegionId, ShardingId, StrId, UseId, ValueId,
};
use crate::op_sharding_rule::RuleTable;
use crate::sharding::ShardingTable;
use crate::shardy::Version;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A whole module.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The version of Shardy by which the program is read, verified and propagated.
    pub(super) shardy: Version,
    /// The source and what passes have added to it.
    pub(super) text: TextPool,
    /// Names of ops, attributes and symbols.
    pub(super) strings: Interner,
    /// Types.
    pub(super) types: TypeTable,
    /// Meshes: of `sdy.mesh` ops in program order, and inlined ones in order of appearance.
    pub(super) meshes: MeshTable,
    /// Shardings.
    pub(super) shardings: ShardingTable,
    /// Rules.
    pub(super) rules: RuleTable,
    /// What the rules of ops may depend on.
    pub(super) signatures: SignatureTable,
    /// The rules of signatures.
    pub(super) signature_rules: SignatureRules,
    /// Ops; erased ones stay as rows that nothing refers to.
    pub(super) ops: IdVec<OpId, Op>,
    /// Their attribute dictionaries (for generic form: discardable and inherent together).
    pub(super) attr_ranges: IdVec<OpId, AttrRange>,
    /// Ops by kind.
    pub(super) kinds: KindTable,
    /// Op results and block arguments.
    pub(super) values: IdVec<ValueId, Value>,
    /// Their shardings: a table of its own, since propagation reads little else.
    pub(super) value_shardings: IdVec<ValueId, ShardingId>,
    /// Operand slots.
    pub(super) operands: IdVec<UseId, Operand>,
    /// Blocks.
    pub(super) blocks: IdVec<BlockId, Block>,
    /// Regions.
    pub(super) regions: IdVec<RegionId, Region>,
    /// Functions in program order at parse; passes append.
    pub(super) functions: IdVec<FuncId, Function>,
    /// Arguments and results of functions.
    pub(super) ports: Vec<Port>,
    /// Attribute dictionaries, one after the other.
    pub(super) attrs: Vec<Attr>,
    /// Whether attributes may refer to symbols.
    pub(super) symbol_attrs: SymbolAttrs,
    /// Structured attributes of ops that have some.
    pub(super) payloads: IdVec<PayloadId, Payload>,
    /// `sdy.sharding_rule` attributes, and rules a pass has put on ops.
    pub(super) op_rules: OpRules,
    /// Shardings of ops that have no results.
    pub(super) no_result_shardings: FxHashMap<OpId, Vec<ShardingId>>,
    /// For reshards and collectives that a pass has inserted, the op that required them.
    pub(super) causes: FxHashMap<OpId, OpId>,
    /// Data-flow edges that users have given to ops.
    pub(super) edge_specs: EdgeSpecs,
    /// Values of attribute and type aliases (`#loc1`, `!t`), by name with its sigil.
    pub(super) aliases: FxHashMap<StrId, Span>,
    /// The equivalence classes of ops that an earlier run has found, and the number of op ids at
    /// that time.
    pub(super) alike: Option<(Arc<AlikeOps>, usize)>,
    /// The tables for the printer.
    pub(super) printing: Printing,
    /// The `builtin.module` op.
    pub(super) module: OpId,
}
