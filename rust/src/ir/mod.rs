//! The in-memory representation of a program, as dense arrays.
//!
//! Ops, values, operand slots, blocks and regions are rows of tables, and refer to each other by id.
//! Everything textual is a [`Span`] into a [`TextPool`], so that an unchanged op is printed by
//! copying its bytes, and an attribute that nothing reads is never parsed.
//!
//! # Shardings
//!
//! Every sharding in the text is stored on a *value*, as a hash-consed [`ShardingId`]:
//!
//! | in the text | in the tables |
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
mod graft;
mod id_slots;
mod kinds;
mod meshes;
mod op;
mod op_equivalence;
mod op_info;
mod op_rules;
mod op_text;
mod payload;
mod port;
mod printing;
mod program;
mod read;
mod retype;
mod rows;
mod signature;
mod signature_cache;
mod strings;
mod symbols;
mod tables;
mod tensor_types;
mod text;
mod transform;
mod types;
mod unused;
mod uses;
mod value_map;
mod walk;

pub use crate::error::Span;
pub use attr_text::{int_array, int_attr, joined};
pub use build::{InsertPoint, NewOp};
pub use constant::ConstantValue;
pub use edge_spec::{Edge, EdgeGroup, EdgeOwners, EdgeSpec, Order, Regions};
pub use edit::Place;
pub use findings::Findings;
use function::Function;
pub use function::ORIGINAL_NAME;
pub use meshes::{MeshTable, ProgramMesh};
pub use op::{Attr, AttrRange, OpFlags, OpText, ValueDef};
use op::{Block, Op, Operand, Region, Value};
pub use op_equivalence::AlikeOps;
pub use op_info::{has_one_sharding, OpInfo, OpKind, OpTraits, Syntax, OPS};
pub use op_rules::OpRules;
pub use payload::{Direction, Payload};
pub use port::Port;
use port::PortRange;
pub use printing::{FunctionText, Printing, NO_NAME};
pub use program::Program;
pub use signature::{may_have_rule, write_attr, Signature, SignatureRules, SignatureTable};
pub use signature_cache::{is_portable, SignatureCache, MAX_ENTRIES};
pub use strings::Interner;
pub use symbols::{symbols_in, SymbolTable};
pub use tables::Tables;
pub use text::{Source, TextPool};
pub use types::{element_bits, ElementType, StaticShape, Type, TypeTable};
pub use unused::Unused;
pub use value_map::ValueMap;
pub use walk::{PostOrder, PreOrder};
