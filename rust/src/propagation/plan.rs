//! What propagation knows about a program before it starts: where each op stands in the order of
//! visits, which values share a sharding, and which ops nothing needs.
//!
//! How an op is visited is found out at its first visit, since many have none: half of the ops of a
//! model are never reached by an axis that could move.

use super::edges::Edges;
use super::effects::is_trivially_dead;
use super::kinds::{KindId, Kinds, Role};
use super::spots::{Spot, Spots};
use crate::context::RuleSource;
use crate::error::{Code, Diagnostic, Result};
use crate::index::{OpId, RuleId, ValueId};
use crate::ir::Program;

/// Ops with more tensors than this are visited by the kinds of tensors they have.
pub(super) const WIDE: usize = 16;

/// What is known of the ops and values of a program.
pub(super) struct Plan {
    /// Where ops stand.
    pub spots: Spots,
    /// By position: how the op is visited, once that is known.
    kinds_of: Vec<KindId>,
    /// The kinds of visits.
    pub kinds: Kinds,
    /// Data-flow edges and where shardings are kept.
    pub edges: Edges,
    /// By position, in order: ops that nothing uses and that may go.
    pub unused: Vec<u32>,
    is_conservative: bool,
}

impl Plan {
    /// Looks at every op of `program`, whose rules `source` has prepared.
    pub fn new(
        program: &mut Program,
        source: &dyn RuleSource,
        is_conservative: bool,
    ) -> Result<Self> {
        if program.ops.len() >= Spot::MAX {
            let message = format!("propagation takes programs of less than {} ops", Spot::MAX);
            return Err(Diagnostic::new(Code::ProgramTooLarge, message).into());
        }
        let mut spots = Spots::new(program);
        let edges = Edges::new(program, source, &mut spots);
        let mut plan = Self {
            kinds_of: vec![KindId::UNKNOWN; spots.order.len()],
            spots,
            kinds: Kinds::default(),
            unused: Vec::new(),
            edges,
            is_conservative,
        };
        plan.look_inside(program, source);
        plan.find_unused(program);
        if !plan.unused.is_empty() {
            // Rules may depend on uses, and count those that are there now.
            plan.find_all_kinds(program, source);
        }
        Ok(plan)
    }
    /// The ops in order of their positions.
    pub fn order(&self) -> &[OpId] {
        &self.spots.order
    }
    /// The op at `position`.
    #[inline]
    pub fn op(&self, position: u32) -> OpId {
        self.spots.order[position as usize]
    }
    /// The kind of visit of the op at `position`, which was visited.
    #[inline]
    pub fn kind(&self, position: u32) -> KindId {
        self.kinds_of[position as usize]
    }
    /// The kind of visit of the op at `position`.
    #[inline(always)]
    pub fn find_kind(
        &mut self,
        program: &mut Program,
        source: &dyn RuleSource,
        position: u32,
    ) -> KindId {
        let known = self.kinds_of[position as usize];
        if known == KindId::UNKNOWN {
            self.find_first(program, source, position)
        } else {
            known
        }
    }
    #[inline(never)]
    fn find_first(
        &mut self,
        program: &mut Program,
        source: &dyn RuleSource,
        position: u32,
    ) -> KindId {
        let op = self.spots.order[position as usize];
        let kind = self.kinds.of_op(program, source, &self.edges, op, self.is_conservative);
        self.kinds_of[position as usize] = kind;
        kind
    }
    /// The rule that the op at `position` is visited with, `NONE` if that is none of its own.
    pub fn rule(
        &mut self,
        program: &mut Program,
        source: &dyn RuleSource,
        position: u32,
    ) -> RuleId {
        let mut kind = self.kinds_of[position as usize];
        if kind == KindId::UNKNOWN {
            let (op, conservative) = (self.spots.order[position as usize], self.is_conservative);
            [kind, _] = self.kinds.pair_of_op(program, source, &self.edges, op, conservative);
        }
        if !kind.is_some() {
            return RuleId::NONE;
        }
        let kind = self.kinds.row(kind);
        if kind.role == Role::Op {
            kind.visit.rule
        } else {
            RuleId::NONE
        }
    }
    /// Finds out how each op is visited.
    fn find_all_kinds(&mut self, program: &mut Program, source: &dyn RuleSource) {
        for position in 0..self.spots.order.len() as u32 {
            self.find_kind(program, source, position);
        }
    }
    /// Looks at the number of uses of the operands of `op` again.
    pub fn recount_uses(&mut self, program: &Program, op: OpId) {
        let kind = &mut self.kinds_of[self.spots.position(op) as usize];
        *kind = self.kinds.with_single_uses(*kind, program, op);
    }
    /// Takes out `op`, which is erased.
    pub fn remove(&mut self, op: OpId) {
        self.kinds_of[self.spots.position(op) as usize] = KindId::NEVER;
        self.spots.remove(op);
    }
    /// Whether a visit of `op` may do something.
    #[inline]
    pub fn is_visited(&self, op: OpId) -> bool {
        self.spots.of(op).has_any(Spot::VISITED)
    }
    /// The values that a visit of `op`, which is of `kind`, is about: operands (or the sources of an
    /// edge) and results.
    pub fn tensors(&self, program: &Program, op: OpId, kind: KindId) -> Vec<ValueId> {
        let mut tensors = if kind.is_edge() {
            self.edges.sources(op).to_vec()
        } else {
            program.op_operands(op).iter().map(|slot| slot.value).collect()
        };
        tensors.extend(program.op_results(op));
        tensors
    }
    /// How many those are.
    #[inline]
    pub fn num_tensors(&self, program: &Program, op: OpId, kind: KindId) -> usize {
        let row = &program.ops[op];
        self.num_operands(program, op, kind) + row.num_results as usize
    }
    /// The `index`-th of them.
    pub fn tensor(&self, program: &Program, op: OpId, kind: KindId, index: usize) -> ValueId {
        match index.checked_sub(self.num_operands(program, op, kind)) {
            Some(result) => program.result(op, result),
            None if kind.is_edge() => self.edges.sources(op)[index],
            None => program.operand(op, index),
        }
    }
    #[inline]
    fn num_operands(&self, program: &Program, op: OpId, kind: KindId) -> usize {
        if kind.is_edge() {
            self.edges.sources(op).len()
        } else {
            program.ops[op].num_operands as usize
        }
    }

    /// Says of ops inside others that are visited that they are, and of the others whether they are.
    fn look_inside(&mut self, program: &mut Program, source: &dyn RuleSource) {
        for index in 0..self.spots.special.len() {
            let op = self.spots.special[index];
            if program.ops[op].num_regions == 0 {
                continue;
            }
            let kind = self.find_kind(program, source, self.spots.position(op));
            if !kind.is_some() {
                self.spots.take(op, Spot::VISITED);
                if !self.spots.of(op).has_any(Spot::INSIDE) {
                    continue;
                }
            }
            for region in program.op_regions(op) {
                for block in program.region_blocks(region) {
                    program.block_ops(block).for_each(|op| self.spots.add(op, Spot::INSIDE));
                }
            }
        }
    }

    fn find_unused(&mut self, program: &Program) {
        for (position, &op) in self.spots.order.iter().enumerate() {
            let first = program.ops[op].first_result.get();
            let is_unused = first.is_none_or(|result| program.values[result].first_use.is_none());
            if is_unused && is_trivially_dead(program, op) {
                self.unused.push(position as u32);
            }
        }
    }
}
