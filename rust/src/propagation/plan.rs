//! What propagation knows about a program before it starts: where each op stands in the order of
//! visits, and how it is visited.

use super::direction::OpClass;
use super::edges::Edges;
use super::effects::is_trivially_dead;
use crate::context::RuleSource;
use crate::index::{IdVec, OpId, RuleId, TypeId};
use crate::ir::{Direction, OpKind, OpTraits, Payload, Program, Type};
use crate::rule::OpShardingRule;
use rustc_hash::FxHashMap;

/// Ops with more tensors than this are visited by the kinds of tensors they have.
const MAX_NARROW: usize = 16;

/// How an op is visited, in one byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Visit(u8);

impl Visit {
    /// A visit does nothing.
    pub const NEVER: Self = Self(0);
    const VISITED: u8 = 1;
    const ELEMENTWISE: u8 = 2;
    const EDGE: u8 = 4;
    const BARRIER: u8 = 8;
    const CLASS_SHIFT: u8 = 4;
    const CLASS: u8 = 7;
    const WIDE: u8 = 128;

    fn new(class: OpClass, flags: u8) -> Self {
        let class = match class {
            OpClass::PassThrough => 0,
            OpClass::DynamicSlice => 1,
            OpClass::Broadcast => 2,
            OpClass::Other => 3,
            OpClass::Fixed(Direction::None) => 4,
            OpClass::Fixed(Direction::Forward) => 5,
            OpClass::Fixed(Direction::Backward) => 6,
            OpClass::Fixed(Direction::Both) => 7,
        };
        Self(Self::VISITED | flags | class << Self::CLASS_SHIFT)
    }
    /// Whether a visit can do anything.
    #[inline]
    pub const fn is_some(self) -> bool {
        self.0 != 0
    }
    /// Whether the op is elementwise.
    #[inline]
    pub const fn is_elementwise(self) -> bool {
        self.0 & Self::ELEMENTWISE != 0
    }
    /// Whether it is a data-flow edge, whose operands are the sources of the edge.
    #[inline]
    pub const fn is_edge(self) -> bool {
        self.0 & Self::EDGE != 0
    }
    /// Whether the rule is the op's own, as opposed to an edge's or a barrier's.
    #[inline]
    pub const fn has_own_rule(self) -> bool {
        self.0 & (Self::EDGE | Self::BARRIER) == 0
    }
    /// Whether it has many tensors.
    #[inline]
    pub const fn is_wide(self) -> bool {
        self.0 & Self::WIDE != 0
    }
    /// The same visit of an op that has so many tensors.
    const fn with_tensors(self, num_tensors: usize) -> Self {
        Self(if num_tensors > MAX_NARROW { self.0 | Self::WIDE } else { self.0 })
    }
    /// Whether its direction depends on the number of uses of its operands.
    #[inline]
    pub const fn depends_on_uses(self) -> bool {
        matches!(self.class(), OpClass::PassThrough | OpClass::DynamicSlice)
    }
    /// How its direction depends on the step.
    #[inline]
    pub const fn class(self) -> OpClass {
        match self.0 >> Self::CLASS_SHIFT & Self::CLASS {
            0 => OpClass::PassThrough,
            1 => OpClass::DynamicSlice,
            2 => OpClass::Broadcast,
            3 => OpClass::Other,
            4 => OpClass::Fixed(Direction::None),
            5 => OpClass::Fixed(Direction::Forward),
            6 => OpClass::Fixed(Direction::Backward),
            _ => OpClass::Fixed(Direction::Both),
        }
    }
}

/// Position, rule and kind of visit of every op.
pub(super) struct Plan {
    /// The ops in pre-order, without the module.
    pub order: Vec<OpId>,
    /// Where each op stands in it.
    pub positions: IdVec<OpId, u32>,
    /// By position: the rule.
    pub rules: Vec<RuleId>,
    /// By position: how it is visited.
    pub visits: Vec<Visit>,
    /// Ops inside an op that is visited.
    pub has_visited_parent: bool,
    /// Data-flow edges and where shardings are kept.
    pub edges: Edges,
    /// By position, in order: ops that nothing uses and that may go.
    pub unused: Vec<u32>,
}

impl Plan {
    /// Looks at every op of `program`, whose rules `source` has prepared.
    pub fn new(program: &mut Program, source: &dyn RuleSource) -> Self {
        let mut order: Vec<OpId> = Vec::with_capacity(program.ops.len());
        order.extend(program.pre_order(program.module).skip(1));
        let mut positions = IdVec::filled(u32::MAX, program.ops.len());
        for (position, &op) in order.iter().enumerate() {
            positions[op] = position as u32;
        }
        let edges = Edges::new(program, source, &order);
        let mut plan = Self {
            rules: vec![RuleId::NONE; order.len()],
            visits: vec![Visit::NEVER; order.len()],
            has_visited_parent: false,
            unused: Vec::new(),
            order,
            positions,
            edges,
        };
        let mut builder = Builder { source, identities: FxHashMap::default() };
        for position in 0..plan.order.len() {
            let op = plan.order[position];
            let (rule, visit) = builder.visit(program, &plan.edges, op);
            plan.rules[position] = rule;
            plan.visits[position] = visit;
            plan.has_visited_parent |= visit.is_some() && program.ops[op].num_regions > 0;
            if is_trivially_dead(program, op) {
                plan.unused.push(position as u32);
            }
        }
        plan
    }
    /// The rule that a data-flow edge, a barrier or a result of a function has: one factor a dim.
    pub fn identity_rule(program: &mut Program, ty: TypeId, num_operands: usize) -> Option<RuleId> {
        let shape = program.types[ty].static_shape()?;
        Some(program.rules.intern(OpShardingRule::identity(&shape, num_operands, 1)))
    }
}

struct Builder<'a> {
    source: &'a dyn RuleSource,
    identities: FxHashMap<(TypeId, usize), Option<RuleId>>,
}

impl Builder<'_> {
    fn visit(&mut self, program: &mut Program, edges: &Edges, op: OpId) -> (RuleId, Visit) {
        let never = (RuleId::NONE, Visit::NEVER);
        match program.kind(op) {
            OpKind::DataFlowEdge | OpKind::FuncDataFlowEdge => {
                let num_sources = edges.sources(op).len();
                if num_sources == 0 {
                    return never;
                }
                let rule = self.identity(program, op, num_sources);
                let visit = Visit::new(OpClass::PassThrough, Visit::EDGE);
                let visit = visit.with_tensors(num_sources + 1);
                rule.map_or(never, |rule| (rule, visit))
            }
            OpKind::PropagationBarrier => {
                let Some(&Payload::PropagationBarrier(direction)) = program.payload(op) else {
                    return never;
                };
                let flags = Visit::BARRIER | Visit::ELEMENTWISE;
                let visit = Visit::new(OpClass::Fixed(direction), flags);
                self.identity(program, op, 1).map_or(never, |rule| (rule, visit))
            }
            kind => {
                let mut rule = self.source.rule(program, op);
                if rule.is_none() && kind == OpKind::ShardingConstraint {
                    rule = self.identity(program, op, 1).unwrap_or(RuleId::NONE);
                }
                if rule.is_none() {
                    return never;
                }
                let is_elementwise = Self::is_elementwise(program, op);
                let class = class(program, op, is_elementwise);
                let flags = if is_elementwise { Visit::ELEMENTWISE } else { 0 };
                let row = &program.ops[op];
                let num_tensors = row.num_operands as usize + row.num_results as usize;
                (rule, Visit::new(class, flags).with_tensors(num_tensors))
            }
        }
    }

    fn identity(&mut self, program: &mut Program, op: OpId, operands: usize) -> Option<RuleId> {
        let ty = program.values[program.op_results(op).next()?].ty;
        *self
            .identities
            .entry((ty, operands))
            .or_insert_with(|| Plan::identity_rule(program, ty, operands))
    }

    fn is_elementwise(program: &Program, op: OpId) -> bool {
        match program.kind(op) {
            OpKind::ShardingConstraint | OpKind::Reshard => true,
            OpKind::BitcastConvert => {
                let shape = |value| match program.value_type(value) {
                    Type::RankedTensor { shape, .. } => Some(shape),
                    _ => None,
                };
                let operand = program.op_operands(op).first().map(|slot| slot.value);
                operand.and_then(shape) == program.op_results(op).next().and_then(shape)
            }
            _ => program.has_traits(op, OpTraits::ELEMENTWISE),
        }
    }
}

fn class(program: &Program, op: OpId, is_elementwise: bool) -> OpClass {
    match program.kind(op) {
        _ if is_elementwise => OpClass::PassThrough,
        OpKind::Reshape | OpKind::Transpose => OpClass::PassThrough,
        OpKind::CustomCall if is_offload(program, op) => OpClass::PassThrough,
        OpKind::DynamicSlice | OpKind::DynamicUpdateSlice => OpClass::DynamicSlice,
        OpKind::BroadcastInDim => OpClass::Broadcast,
        _ => OpClass::Other,
    }
}

/// Whether `op`, a custom call, moves its operand between the memories of device and host.
fn is_offload(program: &Program, op: OpId) -> bool {
    let is_offload = |target: &str| matches!(target, "MoveToDevice" | "MoveToHost");
    if let Some(target) = program.attr(op, "call_target_name") {
        return is_offload(target.trim_matches('"'));
    }
    let Some(signature) = program.ops[op].signature.get() else { return false };
    let syntax = program.text.get(program.signatures[signature].syntax);
    let target = syntax.trim_start().strip_prefix('@').unwrap_or_default();
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$' | '-');
    is_offload(target.split(|c| !is_word(c)).next().unwrap_or_default())
}
