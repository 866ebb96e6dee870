//! `add(scatter(0, ...), x)`, which XLA rewrites to a scatter into `x`.
//!
//! Source: `HandleAdd` of XLA's `AlgebraicSimplifier`.

use crate::compilers::xla_cpu::fusion::instruction_fusion::splat;
use crate::compilers::xla_cpu::passes::common_subexpressions::only_op;
use crate::index::{OpId, ValueId};
use crate::ir::{InsertPoint, NewOp, OpKind, Place, Program};
use std::borrow::Cow;

/// The name of additions.
const SUM: &str = "stablehlo.add";

/// `program` with the adds after scatters folded into these.
pub fn scattered(program: Cow<'_, Program>) -> Cow<'_, Program> {
    let scatters = added(&program);
    if scatters.is_empty() {
        return program;
    }
    let mut program = program.into_owned();
    fold(&mut program, scatters);
    Cow::Owned(program)
}

/// Folds the adds after scatters into these.
pub fn run(program: &mut Program) {
    let scatters = added(program);
    fold(program, scatters);
}

fn fold(program: &mut Program, scatters: Vec<OpId>) {
    for scatter in scatters {
        // Of a sum of two scatters the other one may stand for the sum by now.
        if let Some(sum) = sum_of(program, scatter) {
            scatter_into(program, scatter, sum);
        }
    }
}

/// The adds that are folded into a scatter into zeros.
pub fn dropped(program: &Program) -> Vec<OpId> {
    let is_of_zeros = |&scatter: &OpId| is_zero(program, program.operand(scatter, 0));
    let sums = added(program).into_iter().filter(is_of_zeros);
    let mut sums: Vec<OpId> = sums.filter_map(|scatter| sum_of(program, scatter)).collect();
    sums.sort_unstable();
    sums.dedup();
    sums
}

/// The scatters whose results are added to another value.
fn added(program: &Program) -> Vec<OpId> {
    if !program.has_any(&[OpKind::Scatter]) {
        return Vec::new();
    }
    let mut scatters = program.ops_of(&[OpKind::Scatter]);
    scatters.retain(|&op| sum_of(program, op).is_some());
    scatters.sort_unstable();
    scatters
}

/// The add that is the only user of the result of `scatter`, if that accumulates by addition.
fn sum_of(program: &Program, scatter: OpId) -> Option<OpId> {
    let is_one =
        program.num_results(scatter) == 1 && program.has_one_use(program.result(scatter, 0));
    if !is_one || only_op(program, scatter).map(|name| program.str(name)) != Some(SUM) {
        return None;
    }
    let user = program.users(program.result(scatter, 0)).next()?;
    let is_near = program.parent_block(user) == program.parent_block(scatter);
    (is_near && program.op_name(user) == SUM).then_some(user)
}

/// Makes `scatter` accumulate into the other operand of `sum`, and replaces `sum` by it.
fn scatter_into(program: &mut Program, scatter: OpId, sum: OpId) {
    let result = program.result(scatter, 0);
    let Some(other) = program.operands(sum).find(|&value| value != result) else { return };
    program.move_op(scatter, Place::Before(sum));
    let base = program.operand(scatter, 0);
    let mut onto = other;
    if !is_zero(program, base) {
        let new = NewOp::new(SUM, &[base, other], &[program.type_of(result)]);
        let at = InsertPoint::at(Place::Before(scatter)).with_loc(program.loc(sum));
        let new = program.build(new, at);
        program.sign_op(new);
        onto = program.result(new, 0);
    }
    if let Some(slot) = program.op_uses(scatter).next() {
        program.set_operand(slot, onto);
    }
    program.replace_all_uses(program.result(sum, 0), result);
    program.erase_op(sum);
}

/// Whether all elements of `value` are zero.
fn is_zero(program: &Program, value: ValueId) -> bool {
    splat(program, value).is_some_and(|op| program.constant_value(op).is_zero())
}
