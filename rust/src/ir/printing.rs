//! The tables that only the printer reads: the spans of ops, names and attributes in the source text, and
//! what was changed since.
//!
//! The edits of [`Program`] keep them up to date; passes read only the location of an op
//! ([`Program::loc`]).

use super::{OpFlags, OpText, Program, Span};
use crate::index::{BlockId, FuncId, IdVec, OpId, RegionId, UseId, ValueId};
use std::sync::OnceLock;

/// The offset of a name that is not in the text: the printer makes one up.
pub const NO_NAME: u32 = u32::MAX;

/// Spans of the parts of a function's header in the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionText {
    /// The name, `@main`.
    pub name: Span,
    /// The result list after `->`, parentheses included; if there is none, the empty span at the place
    /// where `-> ...` would be inserted.
    pub results: Span,
}

/// Spans of the parts of a program in its source text, and what was changed since.
#[derive(Clone, Debug, Default)]
pub struct Printing {
    pub(super) ops: IdVec<OpId, OpText>,
    pub(super) flags: IdVec<OpId, OpFlags>,
    pub(super) value_names: IdVec<ValueId, u32>,
    pub(super) operand_names: IdVec<UseId, u32>,
    pub(super) block_headers: IdVec<BlockId, Span>,
    pub(super) region_spans: IdVec<RegionId, Span>,
    pub(super) functions: IdVec<FuncId, FunctionText>,
    /// The dictionaries of the ports, row by row.
    pub(super) port_dicts: Vec<Span>,
    /// See [`Printing::fresh_prefix`]; filled in when first needed.
    pub(super) fresh_prefix: OnceLock<String>,
    pub(super) has_moved_ops: bool,
    pub(super) has_locations: bool,
    pub(super) definitions: Vec<Span>,
}

impl Printing {
    /// The text of `op`.
    #[inline]
    pub fn op(&self, op: OpId) -> &OpText {
        &self.ops[op]
    }
    /// The parts of `op` that have changed since it was parsed.
    #[inline]
    pub fn flags(&self, op: OpId) -> OpFlags {
        self.flags[op]
    }
    /// The offset of the name `%x` of `value` in the text where it is defined (for a result of a group
    /// `%x:3` the group's name); [`NO_NAME`] if the printer has to make one up.
    #[inline]
    pub fn value_name(&self, value: ValueId) -> u32 {
        self.value_names[value]
    }
    /// Whether the text has a name for `value`.
    #[inline]
    pub fn has_name(&self, value: ValueId) -> bool {
        self.value_names[value] != NO_NAME
    }
    /// The offset of the name of the value that `slot` uses in the text of its op; [`NO_NAME`] if there is none.
    #[inline]
    pub fn operand_name(&self, slot: UseId) -> u32 {
        self.operand_names[slot]
    }
    /// The `^bb0(%a: type):` header of `block` with the white space before it; empty if it is implicit.
    #[inline]
    pub fn block_header(&self, block: BlockId) -> Span {
        self.block_headers[block]
    }
    /// The text of `region`, braces included; empty if an op's short form implies it.
    #[inline]
    pub fn region_span(&self, region: RegionId) -> Span {
        self.region_spans[region]
    }
    /// The spans of the header of `func`.
    #[inline]
    pub fn function(&self, func: FuncId) -> &FunctionText {
        &self.functions[func]
    }
    /// The prefix of the names that the printer makes up; no name in the text starts with it.
    /// `make` computes it on the first call.
    pub fn fresh_prefix(&self, make: impl FnOnce() -> String) -> &str {
        self.fresh_prefix.get_or_init(make)
    }
    /// Whether some op was moved to another block, where its results' names may clash with others in scope.
    pub const fn has_moved_ops(&self) -> bool {
        self.has_moved_ops
    }
    /// Whether the text has the location of any op or argument.
    pub const fn has_locations(&self) -> bool {
        self.has_locations
    }
    /// The definitions of aliases, and resource sections, in the order of the text.
    pub fn definitions(&self) -> &[Span] {
        &self.definitions
    }
}

impl Program {
    /// The tables for the printer.
    #[inline]
    pub fn printing(&self) -> &Printing {
        &self.printing
    }
    /// The offsets of the names of the operands of `op` in the text, one for each.
    #[inline]
    pub fn operand_names(&self, op: OpId) -> &[u32] {
        self.printing.operand_names.slice(self.operand_range(op))
    }
    /// The dictionary of argument `index` of `func` in the text, or where one would be inserted.
    pub fn arg_dict(&self, func: FuncId, index: usize) -> Span {
        self.printing.port_dicts[self.functions[func].args.position(index)]
    }
    /// The location of `op`, the text within `loc(...)`; empty if it has none.
    #[inline]
    pub fn loc(&self, op: OpId) -> Span {
        self.printing.ops[op].loc
    }
    /// Sets the location of `op`.
    pub fn set_loc(&mut self, op: OpId, loc: Span) {
        self.printing.ops[op].loc = loc;
        self.printing.flags[op].set(OpFlags::LOC_CHANGED);
    }
}
