//! The context of a collective: the tensors of the op that required it, and the arguments of the program that reach them.

use super::source::Source;
use super::tensors::Tensors;
use crate::index::{OpId, ValueId};
use crate::ir::{OpKind, Program, ValueDef};
use rustc_hash::FxHashSet;

/// The most values that are visited in search of arguments.
const MOST: usize = 256;

/// The operands and results of an op of the given program.
#[derive(Clone, Debug)]
pub struct CollectiveContext {
    /// Its operands.
    pub operands: Vec<ValueId>,
    /// Its results; none for a `func.return`.
    pub results: Vec<ValueId>,
    /// Whether it is the `return` of the entry function.
    pub returns: bool,
    /// The indices of the arguments of the entry function from which its operands are computed, the nearest first.
    pub arguments: Vec<usize>,
}

impl Tensors {
    /// The operands and results of the op of the given program that `op` of `program` is or was cloned from; `None` if there is
    /// none.
    pub(super) fn around(&self, program: &Program, op: OpId) -> Option<CollectiveContext> {
        let given = &*self.given;
        let op = self.names.given_op(given, program, op)?;
        let operands: Vec<ValueId> = given.operands(op).collect();
        let entry = given.entry_function().map(|func| given.func_op(func));
        let returns = given.kind(op) == OpKind::FuncReturn && given.parent_op(op) == entry;
        let arguments = arguments_before(given, &operands);
        Some(CollectiveContext {
            operands,
            results: given.op_results(op).collect(),
            returns,
            arguments,
        })
    }
    /// The annotation on `value` itself in the given program, if there is one.
    pub(super) fn annotation(&self, value: ValueId) -> Option<Source> {
        let value = self.names.given_value(&self.given, &self.done, value)?;
        let sharding = self.given.sharding(value).get()?;
        let slot = self.explanation.slot_of(value)?;
        Some(self.own(slot, value, sharding))
    }
}

/// The arguments of the entry function of `program` from which `values` are computed, the nearest first.
fn arguments_before(program: &Program, values: &[ValueId]) -> Vec<usize> {
    let entry = program.entry_function();
    let mut found = Vec::new();
    let mut next = 0;
    let mut reached: Vec<ValueId> = values.to_vec();
    let mut known: FxHashSet<ValueId> = values.iter().copied().collect();
    while let Some(&value) = reached.get(next).filter(|_| next < MOST) {
        next += 1;
        let owner = match program.def(value) {
            ValueDef::Result(op) => op,
            ValueDef::Arg(block) => program.block_parent_op(block),
        };
        if program.kind(owner) == OpKind::Func {
            if program.function_of_value(value).get() == entry {
                found.push(program.value_index(value));
            }
            continue;
        }
        reached.extend(program.operands(owner).filter(|&operand| known.insert(operand)));
    }
    found
}
