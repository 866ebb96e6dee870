//! The types of fields of the program's tables: attributes, flags and text spans of ops, definitions of values.

use super::{OpKind, OpTraits, Span};
use crate::index::{
    BlockId, Id, OpId, PayloadId, RegionId, SignatureId, StrId, TypeId, UseId, ValueId,
};

/// A run of attributes in the program's attribute table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttrRange {
    /// Position of the first.
    pub start: u32,
    /// How many.
    pub len: u32,
}

/// One `name = value` of a dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attr {
    /// The name; never `sdy.sharding` or `sdy.sharding_rule`, see the module docs.
    pub name: StrId,
    /// The text of the value. Empty for a unit attribute, at an offset that tells whether the
    /// attribute is in the `<{...}>` of the generic form.
    pub value: Span,
}

/// The parts of an op that were changed since it was parsed, for the printer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpFlags(u8);

impl OpFlags {
    /// Its attribute dictionary has to be printed anew (attributes or shardings changed).
    pub const ATTRS_CHANGED: Self = Self(1);
    /// Some operand, or the name of some operand, is not the one in the text.
    pub const OPERANDS_CHANGED: Self = Self(2);
    /// Its results' names are not the ones in the text.
    pub const RESULTS_RENAMED: Self = Self(4);
    /// It has no text of its own and is printed from its fields.
    pub const SYNTHESISED: Self = Self(8);
    /// Its name is not the one in the text; the rest of its syntax is the same.
    pub const RENAMED: Self = Self(32);
    /// Its location is not the one in the text.
    pub const LOC_CHANGED: Self = Self(64);
    /// The types of its operands or results are not the ones in the text.
    pub const TYPES_CHANGED: Self = Self(128);

    /// Whether all of `flag` is set.
    #[inline]
    pub const fn has(self, flag: Self) -> bool {
        self.0 & flag.0 == flag.0
    }
    /// Sets `flag`.
    #[inline]
    pub fn set(&mut self, flag: Self) {
        self.0 |= flag.0;
    }
    /// Whether nothing was changed.
    #[inline]
    pub const fn is_clean(self) -> bool {
        self.0 == 0
    }
}

/// An op.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    /// Its full name, `stablehlo.add`.
    pub name: StrId,
    /// What the engine knows about that name.
    pub kind: OpKind,
    /// What the engine knows about all ops of that name.
    pub traits: OpTraits,
    /// Whether it was erased.
    pub is_erased: bool,
    /// Its first operand slot.
    pub first_operand: UseId,
    /// How many operands it has.
    pub num_operands: u32,
    /// Its first result.
    pub first_result: ValueId,
    /// How many results it has.
    pub num_results: u32,
    /// Its first region.
    pub first_region: RegionId,
    /// How many regions it has.
    pub num_regions: u32,
    /// The block it is in; `NONE` for the module.
    pub parent: BlockId,
    /// The op before it in its block.
    pub prev: OpId,
    /// The op after it in its block.
    pub next: OpId,
    /// A number that grows along its block; see [`Program::number_block`](super::Program::number_block).
    pub order: u32,
    /// Its signature, `NONE` if no rule can apply.
    pub signature: SignatureId,
    /// Structured attributes.
    pub payload: PayloadId,
}

/// The text of an op. It has its own table because only the printer needs it often.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpText {
    /// Its text: from the end of the op before it (which includes leading white space and comments)
    /// to its own end, location included.
    pub span: Span,
    /// Its attribute dictionary with braces in its text, or the empty span at the place where one
    /// would be inserted (`start == end`, not zero).
    pub dict: Span,
    /// The text within `loc(...)`; empty if there is none.
    pub loc: Span,
}

/// An operand slot, and a node in the use list of its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    /// The value.
    pub value: ValueId,
    /// The op whose operand this is.
    pub owner: OpId,
    /// The use added before this one.
    pub next_use: UseId,
    /// The use added after this one; `NONE` for the newest.
    pub prev_use: UseId,
}

/// What defines a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueDef {
    /// It is a result of this op.
    Result(OpId),
    /// It is an argument of this block.
    Arg(BlockId),
}

/// An op result or a block argument.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    /// Its type.
    pub ty: TypeId,
    /// The id of the op or block that defines it, with a bit for which of the two.
    def: u32,
    /// Its newest use.
    pub first_use: UseId,
}

impl Value {
    const IS_ARG: u32 = 1 << 31;

    /// A value without uses.
    #[inline]
    pub fn new(ty: TypeId, def: ValueDef) -> Self {
        let (index, kind) = match def {
            ValueDef::Result(op) => (op.index() as u32, 0),
            ValueDef::Arg(block) => (block.index() as u32, Self::IS_ARG),
        };
        debug_assert!(index < Self::IS_ARG);
        let def = index | kind;
        Self { ty, def, first_use: UseId::NONE }
    }
    /// What defines it.
    #[inline]
    pub fn def(&self) -> ValueDef {
        let index = (self.def & !Self::IS_ARG) as usize;
        if self.def & Self::IS_ARG == 0 {
            ValueDef::Result(OpId::from_index(index))
        } else {
            ValueDef::Arg(BlockId::from_index(index))
        }
    }
}

/// A block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// The region it is in.
    pub region: RegionId,
    /// The block after it in its region.
    pub next: BlockId,
    /// Its first op.
    pub first_op: OpId,
    /// Its last op.
    pub last_op: OpId,
    /// Its first argument.
    pub first_arg: ValueId,
    /// How many arguments it has.
    pub num_args: u32,
}

/// A region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    /// The op it belongs to.
    pub op: OpId,
    /// Its first block; `NONE` if it is empty.
    pub first_block: BlockId,
    /// Its last block.
    pub last_block: BlockId,
}
