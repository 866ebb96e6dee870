//! Merges equal ops.
//!
//! Source: XLA's `HloCSE`.

use crate::compilers::xla_cpu::passes::common_subexpressions::Equal;
use crate::index::OpId;
use crate::ir::Program;
use crate::work::cached::Works;
use crate::work::execution::Execution;

/// Replaces values by the first values of the same blocks that equal them. The ops have signatures.
pub fn run(program: &mut Program) {
    let mut works = Works::new(program);
    let execution = Execution::new(program, &mut works);
    let functions: Vec<OpId> =
        execution.functions.iter().map(|&func| program.func_op(func)).collect();
    let equal = Equal::new(program, &mut works, &functions, false);
    let ops: Vec<OpId> =
        functions.iter().flat_map(|&func| works.ops_inside(func).to_vec()).collect();
    drop(works);
    for op in ops.into_iter().rev() {
        if program.is_erased(op) || !equal.is_repeated(program, op) {
            continue;
        }
        let value = program.result(op, 0);
        let (first, sharding) = (equal.first(value), program.sharding(value));
        if sharding.is_none() || sharding == program.sharding(first) {
            program.replace_all_uses(value, first);
            program.erase_op(op);
        }
    }
}
