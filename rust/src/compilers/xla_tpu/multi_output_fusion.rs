//! Multi-output fusion: what is written and reduced as well is reduced by the kernel that writes it. That kernel has several results, and
//! writes none of them over an operand.

use crate::compilers::xla_cpu::fusion::materialization::Storage;
use crate::compilers::xla_cpu::fusion::op_facts::Fact;
use crate::index::OpId;
use crate::ir::{OpKind, Program};

/// The most elementwise ops between a result and its reduction.
const MAX_STEPS: usize = 16;

/// Whether a reduction of the result of `op`, or of what is computed of it alone, is in the kernel of `op`.
pub fn is_reduced(program: &Program, storage: &Storage, op: OpId) -> bool {
    let block = program.parent_block(op);
    let mut values: Vec<_> = program.op_results(op).collect();
    let mut steps = 0;
    while let Some(value) = values.pop() {
        for user in program.users(value) {
            let facts = storage.facts.of(user);
            if program.parent_block(user) != block || !facts.has(Fact::FUSES) {
                continue;
            }
            if program.kind(user) == OpKind::Reduce {
                return true;
            }
            let result = program.result(user, 0);
            let is_alone = program.num_operands(user) == 1 || facts.has(Fact::NAME);
            if is_alone
                && facts.has(Fact::SINGLE)
                && !storage.is_written(result)
                && steps < MAX_STEPS
            {
                steps += 1;
                values.push(result);
            }
        }
    }
    false
}
