//! What a library computes: a reduction with what it takes in, elementwise ops, products, convolutions and other reductions.
//!
//! Source: XLA's `LibraryRewriter` and `YnnMatcher`.

use super::super::work::Movement;
use super::super::works::Works;
use super::fused::{is_for_sums, is_sum};
use super::layouts::Layouts;
use super::storage::Storage;
use crate::index::{Id, OpId, ValueId};
use crate::ir::{OpKind, Program};

/// The most ops in a row that are looked at.
const MAX_STEPS: usize = 16;

/// More than one reduction.
const MIXED: u32 = u32::MAX;

impl Storage {
    /// Counts a use of the value at `at` by the reduction `sum`.
    pub(super) fn note_sum(&mut self, at: usize, sum: u32) {
        let is_first = self.sums[at] == 0;
        self.sum_of[at] = if is_first || self.sum_of[at] == sum { sum } else { MIXED };
        self.sums[at] = self.sums[at].saturating_add(1);
    }
    /// Whether a reduction that a library computes takes in `op`, which has one result.
    pub(super) fn is_taken_in(
        &self,
        program: &Program,
        works: &mut Works<'_>,
        layouts: &mut Layouts,
        op: OpId,
    ) -> bool {
        let at = program.result(op, 0).index();
        self.sums[at] > 0
            && !self.is_read_whole[at]
            && (is_for_sums(program, works, op)
                || is_sum(program, works, op)
                || layouts.is_of_library(program, works, op))
            && (self.uses[at] == self.sums[at] && self.sum_of[at] != MIXED
                || self.is_shifted(program, op) && self.is_of_product(program, works, layouts, op))
    }
    /// Whether `op` is a product that a library computes, or computed of one that nothing else reads.
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
            if !is_for_sums(program, works, op) {
                return false;
            }
            // Products are written before biases.
            let made = program.operands(op).next().map(|value| self.equal.first(value));
            let is_single = |value: &ValueId| program.users(*value).nth(1).is_none();
            at = made.filter(is_single).and_then(|value| program.defining_op(value));
        }
        false
    }
    /// Whether the kernel of a reduction that `op` is in has the only use of its result, too.
    pub(super) fn continues(&self, program: &Program, works: &mut Works<'_>, op: OpId) -> bool {
        let value = program.result(op, 0);
        let mut users = program.users(value);
        let user = users.next().filter(|_| users.next().is_none());
        !self.is_read_whole[value.index()]
            && self.uses[value.index()] == 1
            && user.is_some_and(|user| {
                works.movement(user) == Movement::Pointwise && is_for_sums(program, works, user)
            })
    }
    /// Whether the result of `op` is only reduced, and combined with that reduction, as for a softmax.
    fn is_shifted(&self, program: &Program, op: OpId) -> bool {
        let value = program.result(op, 0);
        if self.uses[value.index()] != 2 || self.sums[value.index()] != 1 {
            return false;
        }
        let is_sum = |user: &OpId| program.kind(*user) == OpKind::Reduce;
        let Some(sum) = program.users(value).find(is_sum) else { return false };
        let mut reduced = program.result(sum, 0);
        while self.uses[reduced.index()] == 1 {
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
