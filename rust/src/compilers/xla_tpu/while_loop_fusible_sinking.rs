//! Fusible sinking: what a loop only reads, and broadcasts of it, are computed in the body, in the kernels that read them.
//!
//! Source: XLA's `WhileLoopFusibleSinking` and `WhileLoopConstantSinking`.

use crate::compilers::accelerator::fusion::is_only_read;
use crate::compilers::target::Compiler;
use crate::compilers::xla_cpu::fusion::op_facts::{Fact, Facts};
use crate::index::{OpId, ValueId};
use crate::ir::{OpKind, Program};

/// Whether `compiler` moves `value`, operand `index` of `op`, into the body of `op`, a loop.
pub fn is_sunk(
    program: &Program,
    facts: &Facts,
    compiler: Compiler,
    (op, index, value): (OpId, usize, ValueId),
) -> bool {
    program.kind(op) == OpKind::While
        && is_broadcast(program, facts, compiler, value)
        && is_only_read(program, op, index)
}

/// Whether `compiler` computes `value` wherever it is read in a loop.
pub fn is_broadcast(program: &Program, facts: &Facts, compiler: Compiler, value: ValueId) -> bool {
    compiler.sinks_into_loops()
        && program.defining_op(value).is_some_and(|made_by| facts.has(made_by, Fact::EXPAND))
}
