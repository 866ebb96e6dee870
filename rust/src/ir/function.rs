//! What a `func.func` has beyond an op.

use super::op::AttrRange;
use super::Span;
use crate::index::{BlockId, OpId, ShardingId, StrId, TypeId};

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its `func.func` op.
    pub op: OpId,
    /// Its symbol, without `@`.
    pub name: StrId,
    /// Whether it is `private`.
    pub is_private: bool,
    /// Its body, `NONE` for a declaration. The block's arguments are the function's arguments.
    pub body: BlockId,
    /// Argument types; for a function with a body the same as its block's.
    pub arg_types: Vec<TypeId>,
    /// Shardings of the arguments of a declaration (with a body they are on the block arguments).
    pub declared_arg_shardings: Vec<ShardingId>,
    /// For each argument its other attributes.
    pub arg_attrs: Vec<AttrRange>,
    /// For each argument its dictionary in the text, or where one would be inserted.
    pub arg_dicts: Vec<Span>,
    /// Result types.
    pub result_types: Vec<TypeId>,
    /// For each result its sharding.
    pub result_shardings: Vec<ShardingId>,
    /// For each result its other attributes.
    pub result_attrs: Vec<AttrRange>,
    /// The text of the result list after `->`, parentheses included; empty if there is none (then
    /// the empty span at the place where `-> ...` would be inserted).
    pub results_span: Span,
    /// Text of the name `@main` in the header.
    pub name_span: Span,
}
