//! Evaluates, for each device, scalars that are computed from `partition_id`, such as offsets of slices.

use crate::index::{OpId, ValueId};
use crate::ir::{OpKind, Program};
use crate::mlir::AttrValue;
use rustc_hash::FxHashMap;

/// The values of the scalars evaluated so far.
#[derive(Debug, Default)]
pub(super) struct Offsets {
    known: FxHashMap<ValueId, Option<Vec<i64>>>,
}

/// The longest chain of ops that is followed.
const MAX_DEPTH: usize = 64;

impl Offsets {
    /// The value of `value` on each of `count` devices; `None` if it cannot be evaluated.
    pub(super) fn of(
        &mut self,
        program: &Program,
        value: ValueId,
        count: usize,
    ) -> Option<Vec<i64>> {
        self.at_depth(program, value, count, 0)
    }
    fn at_depth(
        &mut self,
        program: &Program,
        value: ValueId,
        count: usize,
        depth: usize,
    ) -> Option<Vec<i64>> {
        if let Some(known) = self.known.get(&value) {
            return known.clone();
        }
        let op = program.defining_op(value)?;
        if depth > MAX_DEPTH {
            return None;
        }
        let found = self.compute(program, op, count, depth);
        self.known.insert(value, found.clone());
        found
    }
    fn compute(
        &mut self,
        program: &Program,
        op: OpId,
        count: usize,
        depth: usize,
    ) -> Option<Vec<i64>> {
        let mut operand = |index| {
            let value = program.operand(op, index);
            self.at_depth(program, value, count, depth + 1)
        };
        match program.op_name(op) {
            "stablehlo.partition_id" => Some((0..count as i64).collect()),
            "stablehlo.constant" => Some(vec![*elements(program, op)?.first()?; count])
                .filter(|_| num_elements(program, op) == Some(1)),
            "stablehlo.convert" | "stablehlo.reshape" => operand(0),
            "stablehlo.add" => combine(&operand(0)?, &operand(1)?, i64::checked_add),
            "stablehlo.subtract" => combine(&operand(0)?, &operand(1)?, i64::checked_sub),
            "stablehlo.multiply" => combine(&operand(0)?, &operand(1)?, i64::checked_mul),
            "stablehlo.divide" => combine(&operand(0)?, &operand(1)?, i64::checked_div),
            "stablehlo.remainder" => combine(&operand(0)?, &operand(1)?, i64::checked_rem),
            "stablehlo.clamp" => {
                let low = combine(&operand(0)?, &operand(1)?, |low, at| Some(at.max(low)))?;
                combine(&low, &operand(2)?, |at, high| Some(at.min(high)))
            }
            "stablehlo.dynamic_slice" if program.num_operands(op) == 2 => {
                let table = program.defining_op(program.operand(op, 0))?;
                let is_scalar = num_elements(program, op) == Some(1);
                if program.kind(table) != OpKind::Constant || !is_scalar {
                    return None;
                }
                let rows = elements(program, table)?;
                let len = num_elements(program, table)?;
                let last = (len - 1) as i64;
                let at = |index: i64| {
                    let place = usize::try_from(index.clamp(0, last)).ok()?;
                    rows.get(if rows.len() == 1 { 0 } else { place }).copied()
                };
                operand(1)?.into_iter().map(at).collect()
            }
            _ => None,
        }
    }
}

fn combine(a: &[i64], b: &[i64], op: fn(i64, i64) -> Option<i64>) -> Option<Vec<i64>> {
    a.iter().zip(b).map(|(&a, &b)| op(a, b)).collect()
}

/// The elements of a constant; one element for a splat.
fn elements(program: &Program, op: OpId) -> Option<Vec<i64>> {
    let value = AttrValue::parse(program.constant_text(op));
    match &value {
        AttrValue::Int(value) => Some(vec![*value]),
        _ => value.as_ints(),
    }
}

/// The number of elements of the result of `op`.
fn num_elements(program: &Program, op: OpId) -> Option<usize> {
    let shape = program.value_type(program.result(op, 0)).static_shape()?;
    let count = shape.iter().try_fold(1i64, |count, &size| count.checked_mul(size))?;
    usize::try_from(count).ok()
}
