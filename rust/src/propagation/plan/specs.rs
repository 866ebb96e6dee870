//! The specs of visits: everything that a visit depends on except shardings.
//!
//! A model has a few hundred different *specs*. A spec is a function of the op's signature in most
//! cases, so that planning an op takes one look-up by its signature.

use super::edges::Edges;
use crate::context::RuleSource;
use crate::index::{Id, OpId, RuleId, SignatureId, TypeId};
use crate::ir::{OpKind, OpTraits, Payload, Program, Type};
use crate::op_sharding_rule::OpShardingRule;
use crate::propagation::visit::direction::OpClass;
use crate::propagation::visit::{SpecId, VisitSpec};
use rustc_hash::FxHashMap;

/// How an op is visited: the id of its spec, and two facts about its tensors, in one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpVisit(u32);

impl OpVisit {
    /// The op is not visited: it has no rule.
    pub const NEVER: Self = Self(u32::MAX);
    /// Not computed yet.
    const UNKNOWN: Self = Self(u32::MAX - 1);
    const PLAIN: u32 = 1 << 31;
    const DISTINCT: u32 = 1 << 30;

    /// The spec; `None` if the op is not visited.
    #[inline]
    pub fn spec(self) -> Option<SpecId> {
        self.is_some().then_some(SpecId(self.0 & !(Self::PLAIN | Self::DISTINCT)))
    }
    /// Whether the op is visited.
    #[inline]
    pub const fn is_some(self) -> bool {
        self.0 != u32::MAX
    }
    /// This visit, of an op with plain tensors: at most [`super::WIDE`] values that hold their own
    /// shardings.
    #[inline]
    pub const fn plain(self) -> Self {
        Self(self.0 | Self::PLAIN)
    }
    /// Whether the op is visited and its tensors are plain.
    #[inline]
    pub const fn is_plain(self) -> bool {
        self.0 & Self::PLAIN != 0 && self.is_some()
    }
    /// This visit, of an op whose tensors are distinct values.
    #[inline]
    pub const fn distinct(self) -> Self {
        Self(self.0 | Self::DISTINCT)
    }
    /// Whether the op's tensors are distinct values.
    #[inline]
    pub const fn is_distinct(self) -> bool {
        self.0 & Self::DISTINCT != 0
    }
}

const NEVER: [OpVisit; 2] = [OpVisit::NEVER; 2];

/// Whether the direction of ops with this spec depends on the number of uses of their operands.
const fn depends_on_uses(spec: VisitSpec) -> bool {
    matches!(spec.class, OpClass::PassThrough | OpClass::DynamicSlice)
}

/// Whether ops of `kind` are data-flow edges, all of whose operands are sources of the edge.
pub const fn is_edge(kind: OpKind) -> bool {
    matches!(kind, OpKind::DataFlowEdge | OpKind::FuncDataFlowEdge)
}

/// The distinct specs of a program.
#[derive(Clone, Default)]
pub struct VisitSpecs {
    rows: Vec<VisitSpec>,
    ids: FxHashMap<VisitSpec, SpecId>,
    /// For each signature how its ops are visited if an operand has several uses, and if none has;
    /// only if this is a function of the signature.
    by_signature: Vec<[OpVisit; 2]>,
    identities: FxHashMap<(TypeId, usize), Option<RuleId>>,
    /// How data-flow edges are visited, by type and number of sources.
    edges: FxHashMap<(TypeId, usize), [OpVisit; 2]>,
}

impl VisitSpecs {
    /// The spec with this id.
    #[inline]
    pub fn get(&self, id: SpecId) -> VisitSpec {
        self.rows[id.0 as usize]
    }
    /// Updates how `op` is visited after the number of uses of its operands has changed.
    pub fn recount_uses(&mut self, visit: OpVisit, program: &Program, op: OpId) -> OpVisit {
        let Some(id) = visit.spec() else { return visit };
        let mut spec = self.get(id);
        spec.has_single_uses = depends_on_uses(spec) && has_single_uses(program, op);
        OpVisit(self.intern(spec).0 | visit.0 & (OpVisit::PLAIN | OpVisit::DISTINCT))
    }

    fn intern(&mut self, spec: VisitSpec) -> OpVisit {
        let next = SpecId(self.rows.len() as u32);
        let id = *self.ids.entry(spec).or_insert(next);
        if id == next {
            self.rows.push(spec);
        }
        OpVisit(id.0)
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
    ) -> OpVisit {
        let signature = program.signature(op);
        let has_own_rule = !program.op_rules().is_empty() && program.op_rules().get(op).is_some();
        if signature.is_none() && !has_own_rule && !has_rule_by_kind(program.kind(op)) {
            return OpVisit::NEVER;
        }
        let known = if has_own_rule { None } else { self.by_signature.get(signature.index()) };
        let pair = match known {
            Some(&pair) if pair[0] != OpVisit::UNKNOWN => pair,
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

    /// How `op` is visited if an operand has several uses, and if none has. Stored for `signature`
    /// if all ops of that signature are visited like that.
    #[cold]
    fn find(
        &mut self,
        program: &mut Program,
        source: &dyn RuleSource,
        edges: &Edges,
        op: OpId,
        signature: SignatureId,
        is_conservative: bool,
    ) -> [OpVisit; 2] {
        let mut spec = VisitSpec {
            rule: RuleId::NONE,
            class: OpClass::PassThrough,
            has_single_uses: false,
            is_elementwise: false,
            is_conservative: false,
        };
        let mut edge = None;
        let mut follows_from_signature = false;
        match program.kind(op) {
            OpKind::DataFlowEdge | OpKind::FuncDataFlowEdge => {
                let num_sources = edges.sources(op).len();
                if num_sources == 0 {
                    return NEVER;
                }
                let result = program.op_results(op).next();
                edge = result.map(|result| (program.type_of(result), num_sources));
                if let Some(&pair) = edge.and_then(|edge| self.edges.get(&edge)) {
                    return pair;
                }
                spec.rule = self.identity(program, op, num_sources);
            }
            OpKind::PropagationBarrier => {
                let Some(&Payload::PropagationBarrier(direction)) = program.payload(op) else {
                    return NEVER;
                };
                spec.rule = self.identity(program, op, 1);
                spec.class = OpClass::Fixed(direction);
                spec.is_elementwise = true;
            }
            kind => {
                spec.rule = source.rule(program, op);
                if spec.rule.is_none() && kind == OpKind::ShardingConstraint {
                    spec.rule = self.identity(program, op, 1);
                }
                spec.is_elementwise = is_elementwise(program, op);
                spec.class = class(program, op, spec.is_elementwise);
                spec.is_conservative = is_conservative;
                follows_from_signature =
                    signature.is_some() && source.follows_from_signature(program, signature);
            }
        }
        let pair = if spec.rule.is_none() {
            NEVER
        } else {
            let single = VisitSpec { has_single_uses: depends_on_uses(spec), ..spec };
            [self.intern(spec), self.intern(single)]
        };
        if let Some(edge) = edge {
            self.edges.insert(edge, pair);
        }
        if follows_from_signature {
            if self.by_signature.len() <= signature.index() {
                let len = program.signatures().len();
                self.by_signature.resize(len, [OpVisit::UNKNOWN; 2]);
            }
            self.by_signature[signature.index()] = pair;
        }
        pair
    }

    fn identity(&mut self, program: &mut Program, op: OpId, operands: usize) -> RuleId {
        let Some(result) = program.op_results(op).next() else { return RuleId::NONE };
        let ty = program.type_of(result);
        let make = || identity_rule(program, ty, operands);
        self.identities.entry((ty, operands)).or_insert_with(make).unwrap_or(RuleId::NONE)
    }
}

/// The rule of a data-flow edge, a barrier or a result of a function: one factor for each dim.
pub fn identity_rule(program: &mut Program, ty: TypeId, num_operands: usize) -> Option<RuleId> {
    let shape = program.types()[ty].static_shape()?;
    Some(program.intern_rule(OpShardingRule::identity(&shape, num_operands, 1)))
}

/// Whether ops of `kind` have rules that depend neither on a signature nor on an attribute.
#[inline]
pub const fn has_rule_by_kind(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::DataFlowEdge
            | OpKind::FuncDataFlowEdge
            | OpKind::PropagationBarrier
            | OpKind::ShardingConstraint
    )
}

/// Whether each operand that is not a scalar is used by `op` only, once.
fn has_single_uses(program: &Program, op: OpId) -> bool {
    program.operands(op).all(|value| {
        program.has_one_use(value) || program.types().is_scalar(program.type_of(value))
    })
}

fn is_elementwise(program: &Program, op: OpId) -> bool {
    match program.kind(op) {
        OpKind::ShardingConstraint | OpKind::Reshard => true,
        OpKind::BitcastConvert => {
            let shape = |value| match program.value_type(value) {
                Type::RankedTensor { shape, .. } => Some(shape),
                _ => None,
            };
            let operand = program.operands(op).next();
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

/// Whether `op`, a custom call, moves its operand between device and host memory.
fn is_offload(program: &Program, op: OpId) -> bool {
    let is_offload = |target: &str| matches!(target, "MoveToDevice" | "MoveToHost");
    if let Some(target) = program.attr(op, "call_target_name") {
        return is_offload(target.trim_matches('"'));
    }
    let Some(signature) = program.signature(op).get() else { return false };
    let syntax = program.text().get(program.signatures()[signature].syntax);
    let target = syntax.trim_start().strip_prefix('@').unwrap_or_default();
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$' | '-');
    is_offload(target.split(|c| !is_word(c)).next().unwrap_or_default())
}
