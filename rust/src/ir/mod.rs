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
mod attr_text;
mod build;
mod clone;
mod constant;
mod data_flow;
mod edge_spec;
mod edit;
mod erase;
mod findings;
mod from_text;
mod function;
mod kinds;
mod meshes;
mod op;
mod op_info;
mod op_rules;
mod op_text;
mod payload;
mod port;
mod printing;
mod read;
mod retype;
mod rows;
mod signature;
mod strings;
mod symbols;
mod tables;
mod text;
mod transform;
mod types;
mod uses;
mod value_map;
mod walk;

pub use crate::error::Span;
pub use attr_text::{int_array, int_attr, joined};
pub use build::{InsertPoint, NewOp};
pub use constant::ConstantValue;
pub use edge_spec::{Edge, EdgeGroup, EdgeOwners, EdgeSpec, Regions};
pub use edit::Place;
pub use findings::Findings;
pub use function::{Function, ORIGINAL_NAME};
use kinds::KindTable;
pub use meshes::{MeshTable, ProgramMesh};
pub use op::{Attr, AttrRange, Block, Op, OpFlags, OpText, Operand, Region, Value, ValueDef};
pub use op_info::{OpInfo, OpKind, OpTraits, Syntax, OPS};
pub use op_rules::OpRules;
pub use op_text::has_one_sharding;
pub use payload::{Direction, Payload};
pub use port::{Port, PortRange};
pub use printing::{FunctionText, Printing, NO_NAME};
pub use signature::{may_have_rule, write_attr, Signature, SignatureRules, SignatureTable};
pub use strings::Interner;
pub use symbols::{SymbolAttrs, SymbolTable};
pub use tables::Tables;
pub use text::{Source, TextPool};
pub use types::{element_bits, ElementType, StaticShape, Type, TypeTable};
pub use value_map::ValueMap;
pub use walk::{PostOrder, PreOrder};

use crate::index::{
    BlockId, FuncId, IdVec, OpId, PayloadId, RegionId, ShardingId, StrId, UseId, ValueId,
};
use crate::rule::RuleTable;
use crate::sharding::ShardingTable;
use rustc_hash::FxHashMap;

/// A whole module.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The source and what passes have added to it.
    text: TextPool,
    /// Names of ops, attributes and symbols.
    strings: Interner,
    /// Types.
    types: TypeTable,
    /// Meshes: of `sdy.mesh` ops in program order, and inlined ones in order of appearance.
    meshes: MeshTable,
    /// Shardings.
    shardings: ShardingTable,
    /// Rules.
    rules: RuleTable,
    /// What the rules of ops may depend on.
    signatures: SignatureTable,
    /// The rules of signatures.
    signature_rules: SignatureRules,
    /// Ops; erased ones stay as rows that nothing refers to.
    ops: IdVec<OpId, Op>,
    /// Their attribute dictionaries (for generic form: discardable and inherent together).
    attr_ranges: IdVec<OpId, AttrRange>,
    /// Ops by kind.
    kinds: KindTable,
    /// Op results and block arguments.
    values: IdVec<ValueId, Value>,
    /// Their shardings: a table of its own, since propagation reads little else.
    value_shardings: IdVec<ValueId, ShardingId>,
    /// Operand slots.
    operands: IdVec<UseId, Operand>,
    /// Blocks.
    blocks: IdVec<BlockId, Block>,
    /// Regions.
    regions: IdVec<RegionId, Region>,
    /// Functions in program order at parse; passes append.
    functions: IdVec<FuncId, Function>,
    /// Arguments and results of functions.
    ports: Vec<Port>,
    /// Attribute dictionaries, one after the other.
    attrs: Vec<Attr>,
    /// What is known of symbols in attributes.
    symbol_attrs: SymbolAttrs,
    /// Structured attributes of ops that have some.
    payloads: IdVec<PayloadId, Payload>,
    /// `sdy.sharding_rule` attributes, and rules a pass has put on ops.
    op_rules: OpRules,
    /// Shardings of ops that have no results.
    no_result_shardings: FxHashMap<OpId, Vec<ShardingId>>,
    /// For reshards and collectives that a pass has put in, the op for whose sake it did.
    causes: FxHashMap<OpId, OpId>,
    /// Data-flow edges that users have given to ops, by op name.
    edge_specs: FxHashMap<StrId, EdgeSpec>,
    /// Values of attribute and type aliases (`#loc1`, `!t`), by name with its sigil.
    aliases: FxHashMap<StrId, Span>,
    /// What the printer needs to know.
    printing: Printing,
    /// The `builtin.module` op.
    module: OpId,
}
