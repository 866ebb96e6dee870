//! Library fusions: a reduction that a library computes, with the elementwise ops, dots, convolutions and reductions that are fused
//! into it.
//!
//! Source: XLA's `LibraryRewriter` and `YnnMatcher`.

use crate::compilers::xla_cpu::fusion::materialization::{Row, Storage};
use crate::compilers::xla_cpu::fusion::op_facts::Fact;
use crate::compilers::xla_cpu::layout_assignment::operand_copies::Layouts;
use crate::index::{Id, OpId, ValueId};
use crate::ir::{OpKind, Program};
use crate::work::cached::Works;
use crate::work::ops::Movement;

/// The longest chain of ops that is searched.
const MAX_STEPS: usize = 16;

/// More than one reduction.
const MIXED: u32 = u32::MAX;

impl Row {
    /// Counts a use of the value by the reduction `sum`.
    pub(in crate::compilers::xla_cpu) fn note_sum(&mut self, sum: u32) {
        let is_first = self.sums == 0;
        self.sum_of = if is_first || self.sum_of == sum { sum } else { MIXED };
        self.sums = self.sums.saturating_add(1);
    }
}

impl Storage {
    /// Whether `op`, which has one result, is fused into a library reduction.
    pub(in crate::compilers::xla_cpu) fn is_taken_in(
        &self,
        program: &Program,
        works: &mut Works<'_>,
        layouts: &mut Layouts,
        op: OpId,
    ) -> bool {
        let row = &self.rows[program.result(op, 0).index()];
        row.sums > 0
            && !row.is_read_whole
            && (self.facts.has(op, Fact::FOR_SUMS)
                || self.facts.has(op, Fact::SUM)
                || layouts.is_of_library(program, works, op))
            && (row.uses == row.sums && row.sum_of != MIXED
                || self.is_shifted(program, op) && self.is_of_product(program, works, layouts, op))
    }
    /// Whether `op` is a dot or convolution that a library computes, or is computed from one without other uses.
    fn is_of_product(
        &self,
        program: &Program,
        works: &mut Works<'_>,
        layouts: &mut Layouts,
        op: OpId,
    ) -> bool {
        let mut at = Some(op);
        for _ in 0..MAX_STEPS {
            let Some(op) = at else { return false };
            if layouts.is_of_library(program, works, op) {
                return true;
            }
            if !self.facts.has(op, Fact::FOR_SUMS) {
                return false;
            }
            // Products are written before biases.
            let made = program.operands(op).next().map(|value| self.equal.first(value));
            let is_single = |value: &ValueId| program.users(*value).nth(1).is_none();
            at = made.filter(is_single).and_then(|value| program.defining_op(value));
        }
        false
    }
    /// Whether the only use of the result of `op`, stored as `row` says, belongs to the same library fusion.
    pub(in crate::compilers::xla_cpu) fn continues(
        &self,
        program: &Program,
        works: &mut Works<'_>,
        (op, row): (OpId, &Row),
    ) -> bool {
        let mut users = program.users(program.result(op, 0));
        let user = users.next().filter(|_| users.next().is_none());
        !row.is_read_whole
            && row.uses == 1
            && user.is_some_and(|user| {
                works.movement(user) == Movement::Pointwise && self.facts.has(user, Fact::FOR_SUMS)
            })
    }
    /// Whether the result of `op` is only reduced and then combined with the result of that reduction, as in a softmax.
    fn is_shifted(&self, program: &Program, op: OpId) -> bool {
        let value = program.result(op, 0);
        if self.rows[value.index()].uses != 2 || self.rows[value.index()].sums != 1 {
            return false;
        }
        let is_sum = |user: &OpId| program.kind(*user) == OpKind::Reduce;
        let Some(sum) = program.users(value).find(is_sum) else { return false };
        let mut reduced = program.result(sum, 0);
        while self.rows[reduced.index()].uses == 1 {
            let Some(user) = program.users(reduced).next() else { return false };
            if program.operands(user).any(|operand| operand == value) {
                return true;
            }
            let is_spread = matches!(
                program.op_name(user),
                "stablehlo.broadcast_in_dim" | "stablehlo.reshape" | "stablehlo.maximum"
            );
            if !is_spread {
                return false;
            }
            reduced = program.result(user, 0);
        }
        false
    }
}
