//! The ways in which the ops of a program are visited.
//!
//! A model has some hundred of them, which follow from signatures, and each op has the number of its
//! own: looking at every op costs a look at its row.

use super::edges::Edges;
use crate::context::RuleSource;
use crate::index::{Id, OpId, RuleId, SignatureId, TypeId};
use crate::ir::{OpKind, OpTraits, Payload, Program, Type};
use crate::propagation::memo::ClassId;
use crate::propagation::visit::direction::OpClass;
use crate::propagation::visit::VisitKind;
use crate::rule::OpShardingRule;
use rustc_hash::FxHashMap;

/// A row of [`Kinds`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KindId(u32);

impl KindId {
    /// A visit does nothing.
    pub const NEVER: Self = Self(u32::MAX);
    /// Not known yet.
    const UNKNOWN: Self = Self(u32::MAX - 1);
    const PLAIN: u32 = 1 << 31;
    const DISTINCT: u32 = 1 << 30;

    /// Whether a visit can do anything.
    #[inline]
    pub const fn is_some(self) -> bool {
        self.0 != u32::MAX
    }
    /// The same kind, of an op whose tensors are plain: see [`super`].
    #[inline]
    pub const fn plain(self) -> Self {
        Self(self.0 | Self::PLAIN)
    }
    /// Whether it is that, and not [`KindId::NEVER`].
    #[inline]
    pub const fn is_plain(self) -> bool {
        self.0 & Self::PLAIN != 0 && self.is_some()
    }
    /// The same kind, of an op no two of whose tensors are the same.
    #[inline]
    pub const fn distinct(self) -> Self {
        Self(self.0 | Self::DISTINCT)
    }
    /// Whether it is that.
    #[inline]
    pub const fn is_distinct(self) -> bool {
        self.0 & Self::DISTINCT != 0
    }
    #[inline]
    const fn index(self) -> usize {
        (self.0 & !(Self::PLAIN | Self::DISTINCT)) as usize
    }
}

const NEVER: [KindId; 2] = [KindId::NEVER; 2];

/// What an op is besides one with a rule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// The rule is the op's own.
    Op,
    /// A propagation barrier.
    Barrier,
    /// A data-flow edge, whose operands are the sources of the edge.
    Edge,
}

/// How an op is visited.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Kind {
    /// What a visit depends on.
    pub visit: VisitKind,
    /// What the op is.
    pub role: Role,
}

impl Kind {
    /// Whether its direction depends on the number of uses of its operands.
    const fn depends_on_uses(&self) -> bool {
        matches!(self.visit.class, OpClass::PassThrough | OpClass::DynamicSlice)
    }
}

/// All ways in which ops are visited.
#[derive(Default)]
pub struct Kinds {
    rows: Vec<Kind>,
    ids: FxHashMap<Kind, KindId>,
    /// By kind: what visits that are alike share, once there was one.
    classes: Vec<ClassId>,
    /// By signature: without and with single uses, as far as both follow from the signature.
    by_signature: Vec<[KindId; 2]>,
    identities: FxHashMap<(TypeId, usize), Option<RuleId>>,
    /// Of data-flow edges, by type and number of sources.
    edges: FxHashMap<(TypeId, usize), [KindId; 2]>,
}

impl Kinds {
    /// The row of `id`, which is not [`KindId::NEVER`].
    #[inline]
    pub fn row(&self, id: KindId) -> &Kind {
        &self.rows[id.index()]
    }
    /// The class of visits of `id`; `make` is asked at first.
    #[inline]
    pub fn class(&mut self, id: KindId, make: impl FnOnce(VisitKind) -> ClassId) -> ClassId {
        let class = self.classes[id.index()];
        if class != ClassId::UNKNOWN {
            return class;
        }
        let class = make(self.rows[id.index()].visit);
        self.classes[id.index()] = class;
        class
    }
    /// The same kind as `id` for an op whose operands have got single uses, or not.
    pub fn with_single_uses(&mut self, id: KindId, program: &Program, op: OpId) -> KindId {
        if !id.is_some() {
            return id;
        }
        let mut kind = *self.row(id);
        kind.visit.has_single_uses = kind.depends_on_uses() && has_single_uses(program, op);
        KindId(self.intern(kind).0 | id.0 & (KindId::PLAIN | KindId::DISTINCT))
    }

    fn intern(&mut self, kind: Kind) -> KindId {
        let next = KindId(self.rows.len() as u32);
        let id = *self.ids.entry(kind).or_insert(next);
        if id == next {
            self.rows.push(kind);
            self.classes.push(ClassId::UNKNOWN);
        }
        id
    }

    /// How `op` is visited.
    #[inline]
    pub fn of_op(
        &mut self,
        program: &mut Program,
        source: &dyn RuleSource,
        edges: &Edges,
        op: OpId,
        is_conservative: bool,
    ) -> KindId {
        let row = &program.ops[op];
        let signature = row.signature;
        let has_own_rule = !program.op_rules.is_empty() && program.op_rules.get(op).is_some();
        if signature.is_none() && !has_own_rule && !has_rule_by_kind(row.kind) {
            return KindId::NEVER;
        }
        let known = if has_own_rule { None } else { self.by_signature.get(signature.index()) };
        let pair = match known {
            Some(&pair) if pair[0] != KindId::UNKNOWN => pair,
            _ => {
                let signature = if has_own_rule { SignatureId::NONE } else { signature };
                self.find(program, source, edges, op, signature, is_conservative)
            }
        };
        if pair[0] == pair[1] {
            return pair[0];
        }
        pair[usize::from(has_single_uses(program, op))]
    }

    /// The kinds of `op` without and with single uses; remembered for `signature` if all ops of that
    /// signature have them.
    #[cold]
    fn find(
        &mut self,
        program: &mut Program,
        source: &dyn RuleSource,
        edges: &Edges,
        op: OpId,
        signature: SignatureId,
        is_conservative: bool,
    ) -> [KindId; 2] {
        let mut visit = VisitKind {
            rule: RuleId::NONE,
            class: OpClass::PassThrough,
            has_single_uses: false,
            is_elementwise: false,
            is_conservative: false,
        };
        let mut role = Role::Op;
        let mut edge = None;
        let mut follows_from_signature = false;
        match program.kind(op) {
            OpKind::DataFlowEdge | OpKind::FuncDataFlowEdge => {
                let num_sources = edges.sources(op).len();
                if num_sources == 0 {
                    return NEVER;
                }
                let result = program.op_results(op).next();
                edge = result.map(|result| (program.values[result].ty, num_sources));
                if let Some(&pair) = edge.and_then(|edge| self.edges.get(&edge)) {
                    return pair;
                }
                role = Role::Edge;
                visit.rule = self.identity(program, op, num_sources);
            }
            OpKind::PropagationBarrier => {
                let Some(&Payload::PropagationBarrier(direction)) = program.payload(op) else {
                    return NEVER;
                };
                role = Role::Barrier;
                visit.rule = self.identity(program, op, 1);
                visit.class = OpClass::Fixed(direction);
                visit.is_elementwise = true;
            }
            kind => {
                visit.rule = source.rule(program, op);
                if visit.rule.is_none() && kind == OpKind::ShardingConstraint {
                    visit.rule = self.identity(program, op, 1);
                }
                visit.is_elementwise = is_elementwise(program, op);
                visit.class = class(program, op, visit.is_elementwise);
                visit.is_conservative = is_conservative;
                follows_from_signature =
                    signature.is_some() && source.follows_from_signature(program, signature);
            }
        }
        let pair = if visit.rule.is_none() {
            NEVER
        } else {
            let kind = Kind { visit, role };
            let single = VisitKind { has_single_uses: kind.depends_on_uses(), ..visit };
            [self.intern(kind), self.intern(Kind { visit: single, role })]
        };
        if let Some(edge) = edge {
            self.edges.insert(edge, pair);
        }
        if follows_from_signature {
            if self.by_signature.len() <= signature.index() {
                let len = program.signatures.len();
                self.by_signature.resize(len, [KindId::UNKNOWN; 2]);
            }
            self.by_signature[signature.index()] = pair;
        }
        pair
    }

    fn identity(&mut self, program: &mut Program, op: OpId, operands: usize) -> RuleId {
        let Some(result) = program.op_results(op).next() else { return RuleId::NONE };
        let ty = program.values[result].ty;
        let make = || identity_rule(program, ty, operands);
        self.identities.entry((ty, operands)).or_insert_with(make).unwrap_or(RuleId::NONE)
    }
}

/// The rule that a data-flow edge, a barrier or a result of a function has: one factor a dim.
pub fn identity_rule(program: &mut Program, ty: TypeId, num_operands: usize) -> Option<RuleId> {
    let shape = program.types[ty].static_shape()?;
    Some(program.rules.intern(OpShardingRule::identity(&shape, num_operands, 1)))
}

/// Whether ops of `kind` have rules that need neither signature nor attribute.
#[inline]
fn has_rule_by_kind(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::DataFlowEdge
            | OpKind::FuncDataFlowEdge
            | OpKind::PropagationBarrier
            | OpKind::ShardingConstraint
    )
}

/// Whether each operand that is not a scalar has `op` as its only use.
fn has_single_uses(program: &Program, op: OpId) -> bool {
    program
        .op_operands(op)
        .iter()
        .all(|slot| slot.is_only_use() || program.types.is_scalar(program.values[slot.value].ty))
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
