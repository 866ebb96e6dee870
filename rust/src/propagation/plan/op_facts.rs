//! The position of each op, and facts to find the dependents of a value: one word for each op.

use crate::index::{IdVec, OpId};

/// The position of an op in the order of visits, with facts about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpFacts(u32);

impl OpFacts {
    /// An upper bound of positions.
    pub const MAX: usize = 1 << Self::POSITION_BITS;
    const POSITION_BITS: u32 = 28;
    /// The op is visited.
    pub const VISITED: u32 = 1 << 28;
    /// An op around it is visited.
    pub const IN_VISITED_OP: u32 = 1 << 29;
    /// The op forwards operands: it is a return or a call, or its operands are sources of data-flow
    /// edges.
    pub const FORWARDS_OPERANDS: u32 = 1 << 30;
    /// A data-flow edge.
    pub const EDGE: u32 = 1 << 31;
    /// The facts of ops without a position.
    const NOWHERE: Self = Self(Self::MAX as u32 - 1);

    /// The position.
    #[inline]
    pub const fn position(self) -> u32 {
        self.0 & (Self::MAX as u32 - 1)
    }
    /// Whether one of `facts` holds.
    #[inline]
    pub const fn has_any(self, facts: u32) -> bool {
        self.0 & facts != 0
    }
}

/// The positions and facts of all ops of a program.
#[derive(Clone)]
pub struct OpFactsTable(IdVec<OpId, OpFacts>);

impl OpFactsTable {
    /// A table for `num_ops` ops without positions.
    pub fn new(num_ops: usize) -> Self {
        Self(IdVec::filled(OpFacts::NOWHERE, num_ops))
    }
    /// Sets the position and the facts of `op`.
    #[inline]
    pub fn put(&mut self, op: OpId, position: u32, facts: u32) {
        self.0[op] = OpFacts(position | facts);
    }
    /// The position and facts of `op`.
    #[inline]
    pub fn of(&self, op: OpId) -> OpFacts {
        self.0[op]
    }
    /// The position of `op`.
    #[inline]
    pub fn position(&self, op: OpId) -> u32 {
        self.0[op].position()
    }
    /// Adds `facts` to those of `op`.
    #[inline]
    pub fn add(&mut self, op: OpId, facts: u32) {
        self.0[op].0 |= facts;
    }
    /// Clears the position of `op`, which is erased.
    pub fn remove(&mut self, op: OpId) {
        let position = self.position(op);
        self.0[op] = OpFacts(position);
    }
}
