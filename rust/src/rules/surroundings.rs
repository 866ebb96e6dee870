//! Conditions on the ops around an op, on which its rule depends in addition to its signature.
//!
//! A family has at most one such condition, so that a signature has at most two rules.

use crate::index::{BlockId, OpId, ValueId};
use crate::ir::{OpInfo, OpKind, OpTraits, Program, Type, ValueDef};
use crate::mlir::{function_around, topology, MeshTensor};

/// The operand of the slice that defines `value`, or `value` itself.
fn before_slice(program: &Program, value: ValueId) -> ValueId {
    match slice_of(program, value) {
        Some(slice) if program.num_operands(slice) > 0 => program.operand(slice, 0),
        _ => value,
    }
}

fn slice_of(program: &Program, value: ValueId) -> Option<OpId> {
    program.defining_op(value).filter(|&op| program.kind(op) == OpKind::Slice)
}

/// Whether a concatenate joins slices: each operand is a slice, or one common value or a slice of
/// it, and at least one is a slice.
pub fn concatenates_slices(program: &Program, op: OpId) -> bool {
    let values = || program.operands(op);
    if values().all(|value| slice_of(program, value).is_some()) {
        return true;
    }
    let Some(first) = values().next().map(|value| before_slice(program, value)) else {
        return false;
    };
    values().all(|value| before_slice(program, value) == first)
        && values().any(|value| slice_of(program, value).is_some())
}

/// Whether all start indices of a dynamic update slice are constants.
pub fn has_constant_starts(program: &Program, op: OpId) -> bool {
    let starts = program.operands(op).skip(2);
    starts.map(|operand| program.defining_op(operand)).all(|op| is_constant(program, op))
}

fn is_constant(program: &Program, op: Option<OpId>) -> bool {
    let Some(op) = op else { return false };
    match program.kind(op) {
        OpKind::Constant | OpKind::SdyConstant => true,
        OpKind::Other => OpInfo::by_name(program.op_name(op))
            .is_some_and(|info| info.traits.has(OpTraits::CONSTANT_LIKE)),
        _ => false,
    }
}

/// Whether a transfer is between meshes with the same axes.
pub fn is_between_equal_meshes(program: &Program, op: OpId) -> bool {
    let type_of = |value: ValueId| MeshTensor::of(program, program.type_of(value));
    let from = program.operands(op).next().and_then(type_of);
    let to = program.op_results(op).next().and_then(type_of);
    let Some((from, to)) = from.zip(to) else { return false };
    if from.mesh == to.mesh {
        return true;
    }
    let meshes = function_around(program, op).and_then(|function| topology(program, function));
    let mesh = |name: &str| meshes.iter().flatten().find(|(other, _)| *other == name);
    mesh(from.mesh).zip(mesh(to.mesh)).is_some_and(|((_, from), (_, to))| from == to)
}

/// Whether a result of `op` is an operand of a random bit generator.
pub fn feeds_random_bits(program: &Program, op: OpId) -> bool {
    let mut uses = program.op_results(op).flat_map(|value| program.uses(value));
    uses.any(|slot| program.op_name(program.user(slot)) == "stablehlo.rng_bit_generator")
}

/// Whether the update computation of a scatter combines the old value and the update by an
/// associative and commutative op, the same for all inputs.
pub fn scatter_reduces(program: &Program, op: OpId) -> bool {
    scatter_reduction(program, op).is_some()
}

fn scatter_reduction(program: &Program, op: OpId) -> Option<OpId> {
    let block = program.region_entry(program.op_regions(op).next()?).get()?;
    let num_inputs = program.num_operands(op) / 2;
    let terminator = program.last_op(block).get()?;
    let returned: Vec<ValueId> = program.operands(terminator).collect();
    if program.num_block_args(block) != 2 * num_inputs
        || program.kind(terminator) != OpKind::StablehloReturn
        || returned.len() != num_inputs
    {
        return None;
    }
    let mut reduction: Option<OpId> = None;
    for (index, &value) in returned.iter().enumerate() {
        let current = program.defining_op(value)?;
        let name = program.op_name_id(current);
        if !is_reduction(program, value, current)
            || reduction.is_some_and(|first| program.op_name_id(first) != name)
            || !combines_args(program, current, block, [index, index + num_inputs])
        {
            return None;
        }
        reduction = Some(current);
    }
    reduction
}

/// Whether `op` is a reduction on elements of the type of `value`; `and` and `or` are reductions on
/// booleans only.
fn is_reduction(program: &Program, value: ValueId, op: OpId) -> bool {
    let Type::RankedTensor { element, .. } = program.value_type(value) else { return false };
    match program.op_name(op) {
        "stablehlo.add" | "stablehlo.multiply" | "stablehlo.maximum" | "stablehlo.minimum" => true,
        "stablehlo.and" | "stablehlo.or" => program.str(element.text) == "i1",
        _ => false,
    }
}

/// Whether the operands of `op` are these two arguments of `block`, in any order.
fn combines_args(program: &Program, op: OpId, block: BlockId, args: [usize; 2]) -> bool {
    let is_arg = |value: ValueId, index: usize| {
        program.def(value) == ValueDef::Arg(block) && program.value_index(value) == index
    };
    if program.num_operands(op) != 2 {
        return false;
    }
    let (lhs, rhs) = (program.operand(op, 0), program.operand(op, 1));
    let [first, second] = args;
    (is_arg(lhs, first) && is_arg(rhs, second)) || (is_arg(lhs, second) && is_arg(rhs, first))
}
