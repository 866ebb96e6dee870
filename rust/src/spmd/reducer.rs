//! Reducers: the op, add, maximum or another, that combines the partial results (terms) of devices.

use super::emit::{one, zero, Emitter};
use crate::index::{OpId, RegionId, TypeId, ValueId};
use crate::ir::{InsertPoint, NewOp, OpKind, Place, Program};

/// An associative and commutative op that combines two elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reducer {
    /// `stablehlo.add`
    Add,
    /// `stablehlo.multiply`
    Multiply,
    /// `stablehlo.maximum`
    Max,
    /// `stablehlo.minimum`
    Min,
    /// `stablehlo.and`
    And,
    /// `stablehlo.or`
    Or,
    /// `stablehlo.xor`
    Xor,
}

impl Reducer {
    const ALL: [Self; 7] =
        [Self::Add, Self::Multiply, Self::Max, Self::Min, Self::And, Self::Or, Self::Xor];

    /// The op that combines two elements.
    pub const fn op_name(self) -> &'static str {
        match self {
            Self::Add => "stablehlo.add",
            Self::Multiply => "stablehlo.multiply",
            Self::Max => "stablehlo.maximum",
            Self::Min => "stablehlo.minimum",
            Self::And => "stablehlo.and",
            Self::Or => "stablehlo.or",
            Self::Xor => "stablehlo.xor",
        }
    }
    /// The reducer in the region of `op`, if that is one op on both arguments.
    pub fn of_region(program: &Program, op: OpId) -> Option<Self> {
        match Self::each_of_region(program, op)?[..] {
            [only] => Some(only),
            _ => None,
        }
    }
    /// For each tensor that `op` reduces its reducer, if the region is one op of two arguments for each of them.
    pub fn each_of_region(program: &Program, op: OpId) -> Option<Vec<Self>> {
        Self::each_of(program, program.op_regions(op).next()?)
    }
    /// The reducer of a `select_and_scatter`: its second region.
    pub fn of_selection(program: &Program, op: OpId) -> Option<Self> {
        match Self::each_of(program, program.op_regions(op).nth(1)?)?[..] {
            [only] => Some(only),
            _ => None,
        }
    }
    fn each_of(program: &Program, region: RegionId) -> Option<Vec<Self>> {
        let block = program.region_entry(region).get()?;
        let end = program.last_op(block);
        let count = program.num_operands(end);
        if program.kind(end) != OpKind::StablehloReturn
            || program.num_block_args(block) != 2 * count
            || program.block_ops(block).take(count + 2).count() != count + 1
        {
            return None;
        }
        let reducer = |index: usize| {
            let inner = program.defining_op(program.operand(end, index))?;
            let args = [index, count + index].map(|index| program.block_arg(block, index));
            let is_own = program.operands(inner).eq(args)
                || program.operands(inner).eq(args.into_iter().rev());
            let name = program.op_name(inner);
            Self::ALL.into_iter().find(|reducer| is_own && reducer.op_name() == name)
        };
        let mut all = Vec::with_capacity(count);
        for index in 0..count {
            all.push(reducer(index)?);
        }
        Some(all)
    }
    /// Whether reducing the same element again changes nothing.
    pub const fn is_idempotent(self) -> bool {
        matches!(self, Self::Max | Self::Min | Self::And | Self::Or)
    }
    /// Whether XLA's runtimes support collectives with this reducer for elements of type `element`.
    pub fn is_of_collectives(self, element: &str) -> bool {
        match self {
            Self::Add | Self::Multiply | Self::Max | Self::Min => true,
            Self::And | Self::Or => element == "i1",
            Self::Xor => false,
        }
    }
    /// The text of the identity, for elements of type `element`; `None` where that is not known.
    pub fn identity(self, element: &str) -> Option<String> {
        let is_bool = element == "i1";
        let text = match self {
            Self::Add | Self::Xor => zero(element).to_owned(),
            Self::Or if is_integer(element) => zero(element).to_owned(),
            Self::Multiply => one(element).to_owned(),
            Self::And if is_bool => "true".to_owned(),
            Self::And if is_integer(element) => all_ones(element)?,
            Self::Max => extreme(element, true)?,
            Self::Min => extreme(element, false)?,
            Self::And | Self::Or => return None,
        };
        Some(text)
    }
    /// Adds the region to `op`, a collective on elements of the type of `like`.
    pub fn add_body(self, emit: &mut Emitter<'_>, op: OpId, like: TypeId) {
        let scalar = emit.like(&[], like);
        let program = &mut *emit.program;
        program.add_regions(op, 1);
        let block = program.add_block(program.region(op, 0), &[scalar, scalar]);
        let inside = InsertPoint::at(Place::End(block));
        let args: Vec<ValueId> = program.block_args(block).collect();
        let inner = program.build_value(NewOp::new(self.op_name(), &args, &[scalar]), inside);
        program.build(NewOp::of_kind(OpKind::StablehloReturn, &[inner], &[]), inside);
    }
}

fn is_integer(element: &str) -> bool {
    element == "i1" || bits(element).is_some()
}

/// Whether an integer type is signed, and its number of bits.
fn bits(element: &str) -> Option<(bool, u32)> {
    if let Some(digits) = element.strip_prefix("ui") {
        return Some((false, digits.parse().ok()?));
    }
    Some((true, element.strip_prefix('i')?.parse().ok()?))
}

fn all_ones(element: &str) -> Option<String> {
    let (is_signed, bits) = bits(element)?;
    let unsigned = || 1u128.checked_shl(bits).map(|end| (end - 1).to_string());
    if is_signed {
        Some("-1".to_owned())
    } else {
        unsigned()
    }
}

/// The text of the largest (`is_max`) or smallest number of type `element`.
fn extreme(element: &str, is_max: bool) -> Option<String> {
    if element == "i1" {
        return Some(if is_max { "false" } else { "true" }.to_owned());
    }
    if let Some((is_signed, bits)) = bits(element) {
        let half = 1i128.checked_shl(bits.checked_sub(1)?)?;
        let value = match (is_signed, is_max) {
            (true, true) => -half,
            (true, false) => half - 1,
            (false, true) => 0,
            (false, false) => 2 * half - 1,
        };
        return Some(value.to_string());
    }
    let infinity = match element {
        "f64" => ["0xFFF0000000000000", "0x7FF0000000000000"],
        "f32" => ["0xFF800000", "0x7F800000"],
        "f16" => ["0xFC00", "0x7C00"],
        "bf16" => ["0xFF80", "0x7F80"],
        _ => return None,
    };
    Some(infinity[usize::from(!is_max)].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_change_nothing() {
        let of = |reducer: Reducer, element| reducer.identity(element);
        assert_eq!(of(Reducer::Max, "i8").as_deref(), Some("-128"));
        assert_eq!(of(Reducer::Min, "ui8").as_deref(), Some("255"));
        assert_eq!(of(Reducer::Min, "i64").as_deref(), Some("9223372036854775807"));
        assert_eq!(of(Reducer::And, "ui32").as_deref(), Some("4294967295"));
        assert_eq!(of(Reducer::Max, "bf16").as_deref(), Some("0xFF80"));
        assert_eq!(of(Reducer::Max, "f8E4M3FN"), None);
        assert_eq!(
            of(Reducer::Add, "complex<f32>").as_deref(),
            Some("(0.000000e+00,0.000000e+00)")
        );
    }
}
