//! Where each op stands, and what has to be known of it to tell who hears of a change: one word an op.

use crate::index::{IdVec, OpId};
use crate::ir::{EdgeSpec, OpKind, Program};

/// The position of an op in the order of visits, with facts about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Spot(u32);

impl Spot {
    /// How many positions there are.
    pub const MAX: usize = 1 << Self::POSITION_BITS;
    const POSITION_BITS: u32 = 28;
    /// A visit can do something.
    pub const VISITED: u32 = 1 << 28;
    /// An op around it is visited.
    pub const INSIDE: u32 = 1 << 29;
    /// Its operands go on to somewhere else: it is a return or a call, or data-flow edges start there.
    pub const HANDS_ON: u32 = 1 << 30;
    /// A data-flow edge.
    pub const EDGE: u32 = 1 << 31;
    /// Ops that are in no block.
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

/// The spots of all ops of a program, and the ops in order.
pub(super) struct Spots {
    by_op: IdVec<OpId, Spot>,
    /// The ops in pre-order, without the module.
    pub order: Vec<OpId>,
    /// Those among them that have regions or may have edges, until [`super::edges`] has seen them.
    pub special: Vec<OpId>,
}

impl Spots {
    /// The spots in `program`, of ops that are not visited so far.
    pub fn new(program: &Program) -> Self {
        let mut spots = Self {
            by_op: IdVec::filled(Spot::NOWHERE, program.ops.len()),
            order: Vec::with_capacity(program.ops.len()),
            special: Vec::new(),
        };
        let has_user_edges = !program.edge_specs.is_empty();
        let mut walk = program.pre_order(program.module);
        walk.next();
        for op in walk {
            let row = &program.ops[op];
            let mut spot = spots.order.len() as u32;
            match row.kind {
                OpKind::FuncReturn | OpKind::SdyReturn | OpKind::StablehloReturn | OpKind::Call => {
                    spot |= Spot::HANDS_ON;
                }
                OpKind::DataFlowEdge => spot |= Spot::EDGE,
                OpKind::FuncDataFlowEdge => spots.special.push(op),
                kind => {
                    let may_have_edges = has_user_edges || EdgeSpec::of_kind(kind).is_some();
                    if may_have_edges || row.num_regions > 0 {
                        spots.special.push(op);
                    }
                }
            }
            spots.by_op[op] = Spot(spot);
            spots.order.push(op);
        }
        spots
    }
    /// The spot of `op`.
    #[inline]
    pub fn of(&self, op: OpId) -> Spot {
        self.by_op[op]
    }
    /// Where `op` stands.
    #[inline]
    pub fn position(&self, op: OpId) -> u32 {
        self.by_op[op].position()
    }
    /// Says that `facts` hold of `op`.
    #[inline]
    pub fn add(&mut self, op: OpId, facts: u32) {
        self.by_op[op].0 |= facts;
    }
    /// Takes out `op`, which is erased.
    pub fn remove(&mut self, op: OpId) {
        let position = self.position(op);
        self.by_op[op] = Spot(position);
    }
}
