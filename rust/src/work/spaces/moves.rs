//! The copies between host and device memory, given the memory space of each value.

use super::flow::{is_collective, is_of_nothing, Flow};
use super::{Move, Space};
use crate::index::{OpId, ValueId};
use crate::ir::{OpKind, OpTraits};
use rustc_hash::FxHashSet;

/// The copies that were found.
#[derive(Default)]
pub(super) struct Found {
    /// In the order of the program.
    pub moves: Vec<Move>,
    /// Placements of values that are already there.
    pub idle: Vec<OpId>,
    /// The values that have memory on the host and on the device.
    pub copied: Vec<ValueId>,
    /// The values that were copied for some op, and need not be copied again.
    moved: FxHashSet<ValueId>,
}

impl Found {
    fn add(&mut self, op: OpId, value: ValueId, to: Space) {
        self.moves.push(Move { op, value, to });
    }
    /// Copies `value` for `op`, unless that was done for another op; the original stays, too.
    fn copy(&mut self, op: OpId, value: ValueId, to: Space) {
        if self.moved.insert(value) {
            self.add(op, value, to);
            self.copied.push(value);
        }
    }
}

impl Flow<'_> {
    /// Finds the copies.
    pub fn moves(&self) -> Found {
        let program = self.program;
        let mut found = Found::default();
        let entry = program.func_op(self.marks.entry);
        let last = program.func_body(self.marks.entry);
        let last = last.get().and_then(|body| program.last_op(body).get());
        for op in program.pre_order(program.module_op()).filter(|&op| op != entry) {
            if let Some(&to) = self.marks.placements.get(&op) {
                self.place(op, to, &mut found);
            } else if Some(op) == last {
                self.return_results(op, &mut found);
            } else if self.computed.contains(op) {
                self.compute(op, &mut found);
            } else if is_collective(program, op) {
                for value in program.operands(op).filter(|&value| self.host.contains(value)) {
                    found.copy(op, value, Space::Device);
                }
            } else {
                self.update(op, &mut found);
            }
        }
        found
    }
    fn place(&self, op: OpId, to: Space, found: &mut Found) {
        let value = self.program.operand(op, 0);
        let is_host = self.host.contains(value);
        if is_host != (to == Space::Host) {
            found.add(op, value, to);
        } else if !self.is_asked(value) {
            found.idle.push(op);
        }
    }
    /// Whether the program marks the op that defines `value` for the host.
    fn is_asked(&self, value: ValueId) -> bool {
        self.program.defining_op(value).is_some_and(|op| self.marks.computed.contains(op))
    }
    /// Copies the operands that the host needs to compute `op`, and the results of it that the device needs.
    fn compute(&self, op: OpId, found: &mut Found) {
        let program = self.program;
        let is_moved =
            |&value: &ValueId| !self.host.contains(value) && !is_of_nothing(program, value);
        for value in program.operands(op).filter(is_moved) {
            // The host has it while it computes.
            if found.moved.insert(value) {
                found.add(op, value, Space::Host);
            }
        }
        if !self.marks.computed.contains(op) {
            return;
        }
        for value in program.op_results(op) {
            let is_elsewhere = |(user, index): (OpId, usize)| {
                let is_on_host = self.computed.contains(user)
                    || self.marks.placements.contains_key(&user)
                    || self.is_result_of_host(user, index)
                    || self.within.contains(value);
                !is_on_host
            };
            if self.uses(value).any(is_elsewhere) {
                found.copy(op, value, Space::Device);
            }
        }
    }
    /// Whether operand `index` of `user`, a terminator, becomes a value that stays on the host.
    fn is_result_of_host(&self, user: OpId, index: usize) -> bool {
        let program = self.program;
        if !program.has_traits(user, OpTraits::TERMINATOR) {
            return false;
        }
        let Some(owner) = program.parent_op(user) else { return false };
        if owner == program.func_op(self.marks.entry) {
            return self.marks.results.get(index) == Some(&true);
        }
        let mut results = program.op_results(owner);
        self.computed.contains(owner)
            || results.nth(index).is_some_and(|result| self.host.contains(result))
    }
    /// Copies the updates of buffers on the host, and the initial values of loops that carry them there.
    fn update(&self, op: OpId, found: &mut Found) {
        let program = self.program;
        let is_moved =
            |value: ValueId| !self.host.contains(value) && !is_of_nothing(program, value);
        match program.kind(op) {
            OpKind::DynamicUpdateSlice if self.host.contains(program.result(op, 0)) => {
                let values = [program.operand(op, 0), program.operand(op, 1)];
                for value in values.into_iter().filter(|&value| is_moved(value)) {
                    found.add(op, value, Space::Host);
                }
            }
            OpKind::While => {
                for (value, result) in program.operands(op).zip(program.op_results(op)) {
                    if self.host.contains(result) && is_moved(value) {
                        found.add(op, value, Space::Host);
                    }
                }
            }
            _ => {}
        }
    }
    /// Copies the results of the entry function that are to be in the other memory space.
    fn return_results(&self, last: OpId, found: &mut Found) {
        for (index, value) in self.program.operands(last).enumerate() {
            let to_host = self.marks.results.get(index) == Some(&true);
            if to_host != self.host.contains(value) {
                found.copy(last, value, if to_host { Space::Host } else { Space::Device });
            }
        }
    }
}
