//! The parts of an op while it is parsed: operands, results, attributes, types. They become rows of
//! the program's tables when the op is complete.

use crate::error::Span;
use crate::index::{BlockId, TypeId};
use crate::ir::Attr;
use crate::mlir::names::NameUse;

/// A result name, `%x` or `%x:2`.
#[derive(Clone, Copy)]
pub(super) struct PendingResult<'a> {
    pub name: &'a str,
    pub count: u32,
    pub offset: u32,
}

/// An argument of a region's first block.
#[derive(Clone, Copy)]
pub(super) struct PendingArg<'a> {
    pub name: &'a str,
    pub offset: u32,
    pub ty: TypeId,
}

/// A stack for each kind of part; those of an inner op are above those of the op around it.
#[derive(Default)]
pub(super) struct Parts<'a> {
    pub operands: Vec<NameUse<'a>>,
    pub results: Vec<PendingResult<'a>>,
    /// Types of operands, then those of results.
    pub types: Vec<TypeId>,
    pub attrs: Vec<Attr>,
    /// The first block and the text of each region.
    pub regions: Vec<(BlockId, Span)>,
    /// The arguments of the next region.
    pub args: Vec<PendingArg<'a>>,
}

/// The heights of the stacks at some point of the text.
#[derive(Clone, Copy)]
pub(super) struct Heights {
    pub operands: usize,
    pub results: usize,
    pub types: usize,
    pub attrs: usize,
    pub regions: usize,
}

impl Parts<'_> {
    /// The heights of the stacks.
    pub fn heights(&self) -> Heights {
        Heights {
            operands: self.operands.len(),
            results: self.results.len(),
            types: self.types.len(),
            attrs: self.attrs.len(),
            regions: self.regions.len(),
        }
    }
}
