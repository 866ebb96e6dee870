//! The plan of a propagation: the position of each op in the order of visits, the spec of its
//! visits, and its tensors.
//!
//! It consists of dense arrays by position, filled in one walk over the program. Visits read these
//! instead of the tables of the program: an op takes 16 bytes, and 4 more for each tensor.

pub mod calls;
pub mod edges;
pub mod effects;
pub mod groups;
pub mod op_facts;
pub mod preconditions;
pub mod specs;

use crate::bitset::BitSet;
use crate::context::RuleSource;
use crate::error::{Code, Diagnostic, Result};
use crate::index::{BlockId, Id, OpId, RuleId, ValueId};
use crate::ir::{OpKind, Program};
use crate::propagation::visit::VisitSpec;
use edges::Edges;
use effects::is_trivially_dead;
use op_facts::{OpFacts, OpFactsTable};
use rustc_hash::FxHashMap;
use specs::{is_edge, OpVisit, VisitSpecs};

/// Ops with more tensors than this are wide: see [`crate::propagation::wide`].
pub const WIDE: usize = 16;

#[derive(Clone, Copy)]
struct Row {
    first_tensor: u32,
    visit: OpVisit,
}

/// The row of an op: the spec of its visits, and its tensors.
#[derive(Clone, Copy)]
pub struct OpRow<'a> {
    /// How it is visited.
    pub visit: OpVisit,
    /// Operands (or the sources of an edge) and results.
    pub tensors: &'a [ValueId],
}

/// The facts about a program that propagation reads.
#[derive(Clone)]
pub struct Plan {
    /// The ops in pre-order, without the module.
    order: Vec<OpId>,
    /// The position of each op, and facts to find the dependents of a value.
    pub facts: OpFactsTable,
    /// For each position; an additional row at the end bounds the tensors of the last op.
    rows: Vec<Row>,
    tensors: Vec<ValueId>,
    /// The specs of visits.
    pub specs: VisitSpecs,
    /// Data-flow edges, and the holder of each value's sharding.
    pub edges: Edges,
    /// Values that get shardings together with others: results of an op with several results.
    pub has_siblings: BitSet<ValueId>,
    /// The positions, in order, of ops that are trivially dead at the start.
    pub unused: Vec<u32>,
    /// The positions of erased ops, and how they were visited.
    erased: FxHashMap<OpId, (u32, OpVisit)>,
}

impl Plan {
    /// Plans the propagation of `program`, whose rules `source` has prepared.
    pub fn new(
        program: &mut Program,
        source: &dyn RuleSource,
        is_conservative: bool,
    ) -> Result<Self> {
        if program.num_op_ids() >= OpFacts::MAX {
            let message = format!("propagation takes programs of less than {} ops", OpFacts::MAX);
            return Err(Diagnostic::new(Code::ProgramTooLarge, message).into());
        }
        let edges = Edges::new(program, source);
        let len = program.num_op_ids();
        let mut plan = Self {
            order: Vec::with_capacity(len),
            facts: OpFactsTable::new(len),
            rows: Vec::with_capacity(len + 1),
            tensors: Vec::with_capacity(program.num_use_ids() + program.num_value_ids()),
            specs: VisitSpecs::default(),
            has_siblings: BitSet::new(program.num_value_ids()),
            unused: Vec::new(),
            erased: FxHashMap::default(),
            edges,
        };
        plan.look_at_ops(program, source, is_conservative);
        for op in std::mem::take(&mut plan.edges.forwarding) {
            plan.facts.add(op, OpFacts::FORWARDS_OPERANDS);
        }
        Ok(plan)
    }
    /// The ops in order of their positions.
    pub fn order(&self) -> &[OpId] {
        &self.order
    }
    /// The op at `position`.
    #[inline]
    pub fn op(&self, position: u32) -> OpId {
        self.order[position as usize]
    }
    /// How the op at `position` is visited.
    #[inline]
    pub fn visit(&self, position: u32) -> OpVisit {
        self.rows[position as usize].visit
    }
    /// The spec of visits of the op at `position`; `None` if it is not visited.
    pub fn spec(&self, position: u32) -> Option<VisitSpec> {
        self.visit(position).spec().map(|id| self.specs.get(id))
    }
    /// The position of `op`, and the spec of its visits, also if it was erased.
    pub fn position_and_spec(&self, op: OpId) -> Option<(u32, VisitSpec)> {
        let (position, visit) = self.erased.get(&op).copied().unwrap_or_else(|| {
            let position = self.facts.position(op);
            (position, self.visit(position))
        });
        Some((position, self.specs.get(visit.spec()?)))
    }
    /// The rule that the op at `position` is visited with; `NONE` if it does not belong to the op,
    /// such as the identity rule of a data-flow edge or barrier.
    fn rule(&self, program: &Program, position: u32) -> RuleId {
        let kind = program.kind(self.op(position));
        match self.spec(position) {
            Some(spec) if !is_edge(kind) && kind != OpKind::PropagationBarrier => spec.rule,
            _ => RuleId::NONE,
        }
    }
    /// Sets the rules that ops were visited with, if `keeps_rules`; otherwise keeps only those that
    /// users wrote.
    pub fn leave_rules(&self, program: &mut Program, keeps_rules: bool) {
        if !keeps_rules {
            program.drop_rules();
            return;
        }
        let mut rules = vec![RuleId::NONE; program.num_op_ids()];
        for position in 0..self.order.len() as u32 {
            let (op, rule) = (self.op(position), self.rule(program, position));
            if rule.is_none() || program.op_rules().is_own(op) {
                continue;
            }
            if program.rules()[rule].is_custom {
                program.set_op_rule(op, rule);
                program.mark_attrs_changed(op);
            } else {
                rules[op.index()] = rule;
            }
        }
        program.leave_op_rules(rules);
    }
    /// Updates how `op` is visited after the number of uses of its operands has changed.
    pub fn recount_uses(&mut self, program: &Program, op: OpId) {
        let visit = &mut self.rows[self.facts.position(op) as usize].visit;
        *visit = self.specs.recount_uses(*visit, program, op);
    }
    /// Removes `op`, which is erased.
    pub fn remove(&mut self, op: OpId) {
        let position = self.facts.position(op);
        let visit = std::mem::replace(&mut self.rows[position as usize].visit, OpVisit::NEVER);
        self.erased.insert(op, (position, visit));
        self.facts.remove(op);
    }
    /// Whether `op` is visited.
    #[inline]
    pub fn is_visited(&self, op: OpId) -> bool {
        self.facts.of(op).has_any(OpFacts::VISITED)
    }
    /// The row of the op at `position`.
    #[inline]
    pub fn row(&self, position: u32) -> OpRow<'_> {
        match self.rows.get(position as usize..position as usize + 2) {
            Some([row, next]) => OpRow {
                visit: row.visit,
                tensors: &self.tensors[row.first_tensor as usize..next.first_tensor as usize],
            },
            _ => OpRow { visit: OpVisit::NEVER, tensors: &[] },
        }
    }
    /// The tensor at `index` of the op at `position`.
    #[inline]
    pub fn tensor(&self, position: u32, index: usize) -> ValueId {
        self.tensors[self.rows[position as usize].first_tensor as usize + index]
    }

    fn look_at_ops(&mut self, program: &mut Program, source: &dyn RuleSource, conservative: bool) {
        let mut last_block = BlockId::NONE;
        let mut inside = 0;
        let mut next = program.next_in_pre_order(program.module_op(), program.module_op());
        while let Some(op) = next {
            let position = self.order.len() as u32;
            self.order.push(op);
            let mut visit = self.specs.of_op(program, source, &self.edges, op, conservative);
            let first_tensor = self.tensors.len() as u32;
            let (block, kind) = (program.parent_block(op), program.kind(op));
            if block != last_block {
                last_block = block;
                inside = self.region_facts(program, last_block);
            }
            if program.num_results(op) > 1 {
                program.op_results(op).for_each(|result| self.add_siblings(program, result));
            }
            if matches!(kind, OpKind::NamedComputation | OpKind::Fragment) {
                let body = program.op_regions(op).next().map(|body| program.region_entry(body));
                let args = body.and_then(BlockId::get).map(|body| program.block_args(body));
                args.into_iter().flatten().for_each(|arg| self.add_siblings(program, arg));
            }
            let is_unused =
                program.num_results(op) == 0 || !program.has_uses(program.result(op, 0));
            if is_unused && is_trivially_dead(program, op) {
                self.unused.push(position);
            }
            let visited = if visit.is_some() { OpFacts::VISITED } else { 0 };
            self.facts.put(op, position, visited | inside | kind_facts(kind));
            if visited != 0 && self.add_tensors(program, op) {
                visit = visit.plain();
                if are_distinct(&self.tensors[first_tensor as usize..]) {
                    visit = visit.distinct();
                }
            }
            self.rows.push(Row { first_tensor, visit });
            next = program.next_in_pre_order(op, program.module_op());
        }
        self.rows.push(Row { first_tensor: self.tensors.len() as u32, visit: OpVisit::NEVER });
    }

    fn add_siblings(&mut self, program: &Program, value: ValueId) {
        if program.siblings(value).len() > 1 {
            self.has_siblings.insert(value);
        }
    }

    fn region_facts(&self, program: &Program, block: BlockId) -> u32 {
        let around = self.facts.of(program.block_parent_op(block));
        if around.has_any(OpFacts::VISITED | OpFacts::IN_VISITED_OP) {
            OpFacts::IN_VISITED_OP
        } else {
            0
        }
    }

    /// Adds the tensors of `op`; true if they are plain: at most [`WIDE`] values, each of which
    /// holds its own sharding.
    #[inline]
    fn add_tensors(&mut self, program: &Program, op: OpId) -> bool {
        let start = self.tensors.len();
        let edges = &self.edges;
        let mut is_plain = true;
        if is_edge(program.kind(op)) {
            self.tensors.extend_from_slice(edges.sources(op));
            is_plain = edges.manual_end(op).is_none();
        } else {
            self.tensors.extend(program.operands(op));
        }
        if program.num_results(op) == 1 {
            self.tensors.push(program.result(op, 0));
        } else {
            self.tensors.extend(program.op_results(op));
        }
        let tensors = &mut self.tensors[start..];
        if !is_plain || tensors.len() > WIDE {
            return false;
        }
        edges.replace_by_holders(tensors)
    }
}

/// The facts that hold of every op of `kind`.
#[inline]
fn kind_facts(kind: OpKind) -> u32 {
    match kind {
        OpKind::FuncReturn
        | OpKind::SdyReturn
        | OpKind::StablehloReturn
        | OpKind::MpmdReturn
        | OpKind::Call => OpFacts::FORWARDS_OPERANDS,
        OpKind::DataFlowEdge => OpFacts::EDGE,
        _ => 0,
    }
}

/// Whether no value occurs twice in `tensors`, a short list.
#[inline]
fn are_distinct(tensors: &[ValueId]) -> bool {
    match *tensors {
        [a, b] => a != b,
        [a, b, c] => a != b && a != c && b != c,
        _ => (1..tensors.len()).all(|index| !tensors[..index].contains(&tensors[index])),
    }
}
