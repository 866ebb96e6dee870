//! Dead ops: the greedy driver erases those that it pops.

use super::effects::is_trivially_dead;
use super::engine::Engine;
use super::plan::Visit;
use super::queue::RunMask;
use crate::index::{OpId, RuleId, ValueId};

impl Engine<'_> {
    /// Erases the op in hand if nothing needs it; true if so.
    pub(super) fn erase_if_dead(&mut self, op: OpId) -> bool {
        if !is_trivially_dead(self.program, op) {
            return false;
        }
        let inside: Vec<OpId> = self.program.pre_order(op).collect();
        for &dead in inside.iter().rev() {
            self.queue_operands(dead);
            let at = self.plan.positions[dead];
            self.plan.visits[at as usize] = Visit::NEVER;
            self.queue.settle(at, RunMask::MAX);
            self.program.op_rules.set(dead, RuleId::NONE);
            self.program.erase_op(dead);
        }
        true
    }

    /// Queues the ops that define the operands of `op`, which is about to go, if each has at most
    /// one other user: they may be dead then. What depends on the number of uses is marked too.
    fn queue_operands(&mut self, op: OpId) {
        let operands: Vec<ValueId> =
            self.program.op_operands(op).iter().map(|slot| slot.value).collect();
        for value in operands {
            if value.is_none() {
                continue;
            }
            let users = self.program.uses(value).map(|slot| self.program.operands[slot].owner);
            let mut other = OpId::NONE;
            let mut has_more = false;
            for user in users.filter(|&user| user != op) {
                if other.is_none() {
                    other = user;
                } else if user != other {
                    has_more = true;
                    break;
                }
            }
            if has_more {
                continue;
            }
            if let Some(other) = other.get() {
                let at = self.plan.positions[other];
                if self.plan.visits[at as usize].is_some() {
                    self.queue.touch(at);
                }
            }
            if let Some(def) = self.program.defining_op(value) {
                let at = self.plan.positions[def];
                self.queue.touch(at);
                self.queue.push(at);
                let mut inner = def;
                while let Some(parent) = self.program.parent_op(inner) {
                    let at = self.plan.positions[parent];
                    if self.plan.visits.get(at as usize).is_some_and(|visit| visit.is_some()) {
                        self.queue.push(at);
                    }
                    inner = parent;
                }
            }
        }
    }
}
