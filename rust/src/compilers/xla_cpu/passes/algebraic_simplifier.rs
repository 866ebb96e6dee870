//! Ops that equal one of their operands, because another one is a constant: `x - 0`, `x * 1`, `max(x, -inf)`, and what is selected by
//! a known condition. What is computed from constants alone is known, as the degrees of freedom of a variance are.
//!
//! Source: XLA's `AlgebraicSimplifier` and `HloConstantFolding`.

use crate::index::{OpId, StrId, ValueId};
use crate::ir::{ConstantValue, OpTraits, Program};
use crate::mlir::op_attribute;

/// The ops that may equal an operand.
const NAMES: [&str; 6] = [
    "stablehlo.select",
    "stablehlo.add",
    "stablehlo.subtract",
    "stablehlo.multiply",
    "stablehlo.divide",
    "stablehlo.maximum",
];
/// The most ops from a constant to what is computed from it.
const MAX_DEPTH: u32 = 8;

/// Finds ops that equal an operand.
pub struct AlgebraicSimplifier {
    names: [Option<StrId>; NAMES.len()],
}

impl AlgebraicSimplifier {
    /// For the ops of `program`.
    pub fn new(program: &Program) -> Self {
        Self { names: NAMES.map(|name| program.strings().find(name)) }
    }
    /// The operand that the result of `op` equals.
    #[inline]
    pub fn same_as(&self, program: &Program, op: OpId) -> Option<ValueId> {
        let name = program.op_name_id(op);
        let at = self.names.iter().position(|&known| known == Some(name))?;
        let same = equal_operand(program, op, NAMES[at])?;
        (program.type_of(same) == program.type_of(program.result(op, 0))).then_some(same)
    }
}

/// The operand that the result of `op`, of this name, equals.
fn equal_operand(program: &Program, op: OpId, name: &str) -> Option<ValueId> {
    let operand = |index| program.operands(op).nth(index);
    let is = |index: usize, number: f64| {
        operand(index).and_then(|value| known(program, value, 0)) == Some(number)
    };
    let either = |number| match is(1, number) {
        true => operand(0),
        false if is(0, number) => operand(1),
        false => None,
    };
    match name {
        "stablehlo.select" => match known(program, operand(0)?, 0) {
            Some(condition) => operand(if condition == 0.0 { 2 } else { 1 }),
            None if is(1, 1.0) && is(2, 0.0) => operand(0),
            None => None,
        },
        "stablehlo.add" => either(0.0),
        "stablehlo.subtract" if is(1, 0.0) => operand(0),
        "stablehlo.multiply" => either(1.0),
        "stablehlo.divide" if is(1, 1.0) => operand(0),
        "stablehlo.maximum" => either(f64::NEG_INFINITY),
        _ => None,
    }
}

/// The number that all elements of `value` are, if it is computed from constants.
fn known(program: &Program, value: ValueId, depth: u32) -> Option<f64> {
    if depth > MAX_DEPTH {
        return None;
    }
    let op = program.defining_op(value)?;
    if program.has_traits(op, OpTraits::CONSTANT_LIKE) {
        return match program.constant_value(op) {
            ConstantValue::Splat(bits) => Some(f64::from_bits(bits)),
            ConstantValue::Element("true") => Some(1.0),
            ConstantValue::Element("false") => Some(0.0),
            // Infinities are written as their bits.
            ConstantValue::Element("0xFF800000" | "0xFF80" | "0xFC00" | "0xFFF0000000000000") => {
                Some(f64::NEG_INFINITY)
            }
            ConstantValue::Element(text) => text.parse().ok(),
            ConstantValue::Text(_) => None,
        };
    }
    let of = |index| known(program, program.operands(op).nth(index)?, depth + 1);
    match program.op_name(op) {
        "stablehlo.broadcast_in_dim" | "stablehlo.reshape" | "stablehlo.convert" => of(0),
        "stablehlo.subtract" => Some(of(0)? - of(1)?),
        "stablehlo.add" => Some(of(0)? + of(1)?),
        "stablehlo.compare" => {
            let order = of(0)?.partial_cmp(&of(1)?)?;
            let is_so = match op_attribute(program, op, "comparison_direction")?.as_str()? {
                "EQ" => order.is_eq(),
                "NE" => order.is_ne(),
                "GT" => order.is_gt(),
                "GE" => order.is_ge(),
                "LT" => order.is_lt(),
                "LE" => order.is_le(),
                _ => return None,
            };
            Some(f64::from(u8::from(is_so)))
        }
        _ => None,
    }
}
