//! Pads reductions.

use super::conversion::{Conversion, Padding};
use super::mask::with_padding;
use super::shapes::{ints, padded_results};
use super::windows::constant_padding;
use crate::index::OpId;
use crate::ir::{OpKind, Program};

impl Conversion {
    /// Pads the reduction `op`, with its initial values in the padding of its operands. Returns
    /// false and does nothing if it depends on how often it reduces the initial values.
    pub(super) fn pad_reduce(&mut self, program: &mut Program, op: OpId) -> bool {
        let Some(dims) = ints(program, op, "dimensions") else { return false };
        let mut operands = self.adapted_operands(program, op);
        let Some(types) = padded_results(program, op, &operands) else { return false };
        let num_inputs = operands.len() / 2;
        let is_reduced = |dim: usize| dims.contains(&(dim as i64));
        let is_padded = (0..num_inputs).any(|index| {
            let old = self.original_type(program, program.operand(op, index));
            let shapes = (
                program.types()[old].static_shape(),
                program.value_type(operands[index]).static_shape(),
            );
            let (Some(old), Some(new)) = shapes else { return true };
            (0..old.len()).any(|dim| is_reduced(dim) && old[dim] != new[dim])
        });
        let known: Vec<Option<Padding>> =
            operands[num_inputs..].iter().map(|&init| constant_padding(program, init)).collect();
        if is_padded && !is_neutral(program, op, &known) {
            return false;
        }
        for index in 0..num_inputs {
            let (value, init) = (operands[index], operands[num_inputs + index]);
            if known[index].is_none() || self.padding_of(value) != known[index] {
                let old = self.original_type(program, program.operand(op, index));
                operands[index] = with_padding(program, op, (value, old), Some(init), is_reduced);
            }
        }
        self.set_padded(program, op, &operands, &types);
        true
    }
}

/// Whether the result of the reduction `op` does not change if it reduces its initial values, which
/// are `known`, repeatedly.
fn is_neutral(program: &Program, op: OpId, known: &[Option<Padding>]) -> bool {
    let blocks = program.op_regions(op).flat_map(|region| program.region_blocks(region));
    let ops: Vec<OpId> = blocks.flat_map(|block| program.block_ops(block)).collect();
    let [reducer, _] = ops[..] else {
        // A reduction of several operands (such as an argmax) compares them, and initial values
        // never win.
        return known.len() > 1;
    };
    let neutral = match program.op_name(reducer) {
        "stablehlo.maximum" | "stablehlo.minimum" | "stablehlo.and" | "stablehlo.or" => {
            return true
        }
        "stablehlo.add" | "stablehlo.xor" => Padding::Zeros,
        "stablehlo.multiply" => Padding::Ones,
        _ => return program.kind(reducer) == OpKind::StablehloReturn,
    };
    known == [Some(neutral)]
}
