//! The state of the parser.
//!
//! Nested ops are on an explicit stack of [`OpenRegion`]s, so that nesting takes no stack frames.
//! The parts of an op are also collected on stacks ([`Parts`]) and moved to the program's tables
//! when the op is complete, after its regions: that is when MLIR creates it, which determines the
//! order of uses.

use super::location_aliases::LocationAliases;
use super::op_names::{OpName, OpNames};
use super::parts::{Heights, Parts};
use super::templates::Templates;
use super::types::Types;
use crate::error::{Result, Span};
use crate::index::{BlockId, FuncId, OpId, TypeId, ValueId};
use crate::ir::Program;
use crate::mlir::cursor::Cursor;
use crate::mlir::grammar::Grammar;
use crate::mlir::meaning::{Annotations, Notes};
use crate::mlir::names::{Labels, NameUse, Names};

/// The parser of a program. Its fields are independent of each other.
pub(super) struct Parser<'a> {
    /// The position in the text.
    pub cursor: Cursor<'a>,
    /// The program parsed so far.
    pub program: Program,
    pub op_names: OpNames<'a>,
    pub types: Types<'a>,
    /// The names of values.
    pub names: Names<'a>,
    /// The labels of blocks.
    pub labels: Labels<'a>,
    pub location_aliases: LocationAliases<'a>,
    /// The records that are resolved at the end.
    pub notes: Notes<'a>,
    /// The parts of incomplete ops.
    pub parts: Parts<'a>,
    pub open_regions: Vec<OpenRegion>,
    /// The end of the last op, block label or opening brace.
    pub last_end: u32,
    pub templates: Templates,
    /// A buffer for the key of a signature.
    pub signature_key: String,
}

/// An op that is not complete.
#[derive(Clone, Copy)]
pub(super) struct PendingOp {
    pub op: OpId,
    pub name: OpName,
    pub is_generic: bool,
    /// The offset of its text, including leading space.
    pub start: u32,
    /// The offset of its name.
    pub name_start: u32,
    /// The heights of the stacks of parts below its own parts.
    pub base: Heights,
    /// The number of types on the stack that are types of operands.
    pub num_inputs: usize,
    /// From its name to its types or first region.
    pub syntax: Span,
    /// Its attribute dictionary, or the empty span where one would be inserted.
    pub dict: Span,
    pub annotations: Annotations,
    /// The function, if it is a `func.func`.
    pub function: FuncId,
}

/// What the parser expects after a region.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// More regions or `)`, then the rest of the generic form.
    Generic,
    /// Only the location.
    Nothing,
    /// The body of a `stablehlo.while`.
    Do,
    /// An attribute dictionary, then as [`After::Signature`].
    Dictionary,
    /// A colon, a function type.
    Signature,
    /// A colon and a function type.
    FunctionType,
    /// A colon and the types of the results, which are also those of the operands.
    Types,
}

/// A region that is being read.
pub(super) struct OpenRegion {
    /// The op that it belongs to.
    pub pending: PendingOp,
    pub after: After,
    /// Its offset.
    pub start: u32,
    pub first_block: BlockId,
    /// The block that ops are added to; `NONE` if there is none yet.
    pub block: BlockId,
}

impl<'a> Parser<'a> {
    /// A parser at the start of `text`.
    pub fn new(text: &'a str, program: Program) -> Self {
        Self {
            cursor: Cursor::new(text, 0),
            program,
            op_names: OpNames::default(),
            types: Types::default(),
            names: Names::new(text),
            labels: Labels::default(),
            location_aliases: LocationAliases::default(),
            notes: Notes::new(text),
            parts: Parts::default(),
            open_regions: Vec::new(),
            last_end: 0,
            templates: Templates::default(),
            signature_key: String::new(),
        }
    }
    /// Starts the op called `name`, whose text starts at `start` and whose name at `name_start`.
    pub fn begin(&mut self, name: OpName, start: u32, name_start: u32) -> PendingOp {
        PendingOp {
            op: self.program.push_op(name.id, name.kind),
            name,
            is_generic: false,
            start,
            name_start,
            base: self.parts.heights(),
            num_inputs: 0,
            syntax: Span::EMPTY,
            dict: Span::EMPTY,
            annotations: Annotations::NONE,
            function: FuncId::NONE,
        }
    }
    /// The text at `span`.
    pub fn text_at(&self, span: Span) -> &'a str {
        self.cursor.text().get(span.start as usize..span.end as usize).unwrap_or("")
    }
    /// The span of the name of `pending`.
    pub fn name_span(&self, pending: &PendingOp) -> Span {
        let mut cursor = Cursor::new(self.cursor.text(), pending.name_start as usize);
        if cursor.peek() == b'"' {
            // The string was parsed before, so it is closed.
            let _ = cursor.string();
        } else {
            cursor.name();
        }
        cursor.span_since(pending.name_start as usize)
    }
    /// A parser of the grammar at this position, which checks and skips attributes, types and locations.
    pub fn grammar(&mut self) -> Grammar<'_, 'a> {
        Grammar::new(&mut self.cursor, Some(&self.program))
    }
    /// Reads a type.
    pub fn parse_type(&mut self) -> Result<TypeId> {
        self.types.read(&mut self.cursor, &mut self.program)
    }
    /// Reads one or more types, separated by commas, onto the stack of types.
    pub fn push_types(&mut self) -> Result<()> {
        self.types.read_some(&mut self.cursor, &mut self.program, &mut self.parts.types)
    }
    /// How many types `pending` has on the stack.
    pub fn num_types(&self, pending: &PendingOp) -> usize {
        self.parts.types.len() - pending.base.types
    }
    /// How many operands `pending` has on the stack.
    pub fn num_operands(&self, pending: &PendingOp) -> usize {
        self.parts.operands.len() - pending.base.operands
    }
    /// Binds `name` to `count` values from `first` on.
    pub fn define(&mut self, name: &'a str, first: ValueId, count: u32) -> Result<()> {
        self.names.define(&mut self.program, name, first, count)
    }
    /// Adds an operand of type `ty` to `op`.
    pub fn add_operand(&mut self, op: OpId, operand: NameUse<'a>, ty: TypeId) -> Result<()> {
        let value = self.names.resolve(&mut self.program, op, operand, ty)?;
        self.program.push_operand(op, value, operand.span.start);
        Ok(())
    }
}
