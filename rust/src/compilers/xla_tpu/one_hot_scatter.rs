//! Scatters of one element into each row of a constant, as in gradients of cross-entropies: the compiler for TPUs selects that element by
//! its index, and fuses the selection into what reads it.

use crate::compilers::xla_cpu::fusion::instruction_fusion::splat;
use crate::index::OpId;
use crate::ir::{OpKind, Program};
use crate::mlir::op_attribute;
use crate::stablehlo::dims::{IndexingDims, SCATTER};

/// Whether `op` scatters one element into each row of a constant.
pub fn is_one_hot(program: &Program, op: OpId) -> bool {
    if program.kind(op) != OpKind::Scatter
        || program.num_operands(op) != 3
        || splat(program, program.operand(op, 0)).is_none()
    {
        return false;
    }
    let numbers = op_attribute(program, op, SCATTER.attribute);
    let dims: Option<IndexingDims> = numbers.and_then(|it| IndexingDims::read(&it, &SCATTER));
    dims.is_some_and(|dims| {
        dims.window.is_empty() && dims.index_map.len() == 1 && !dims.input_batching.is_empty()
    })
}
