//! Dead ops: the greedy driver erases those that it pops.

use super::effects::is_trivially_dead;
use crate::index::{OpId, RuleId, ValueId};
use crate::propagation::engine::Engine;
use rustc_hash::FxHashSet;

impl Engine<'_> {
    /// Erases the op in hand if nothing needs it; true if so.
    pub fn erase_if_dead(&mut self, position: u32) -> bool {
        let op = self.plan.op(position);
        if !is_trivially_dead(self.program, op) {
            return false;
        }
        let inside: Vec<OpId> = self.program.pre_order(op).collect();
        for &dead in inside.iter().rev() {
            let others = self.queue_operands(dead);
            self.queue.remove(self.plan.facts.position(dead));
            self.plan.remove(dead);
            self.program.op_rules.set(dead, RuleId::NONE);
            self.program.erase_op(dead);
            for other in others {
                self.plan.recount_uses(self.program, other);
            }
        }
        true
    }

    /// Queues the ops that define the operands of `op`, which is about to go, if each has at most
    /// one other user: they may be dead then. What depends on the number of uses is marked too; returns
    /// it.
    fn queue_operands(&mut self, op: OpId) -> Vec<OpId> {
        let mut others = Vec::new();
        let operands: Vec<ValueId> =
            self.program.op_operands(op).iter().map(|slot| slot.value).collect();
        let mut seen = FxHashSet::default();
        for value in operands {
            if value.is_none() || !seen.insert(value) {
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
                if self.plan.is_visited(other) {
                    self.queue.mark(self.plan.facts.position(other));
                    others.push(other);
                }
            }
            if let Some(def) = self.program.defining_op(value) {
                let at = self.plan.facts.position(def);
                self.queue.mark(at);
                self.queue.push(at);
                let mut inner = def;
                while let Some(parent) = self.program.parent_op(inner) {
                    if self.plan.is_visited(parent) {
                        self.queue.push(self.plan.facts.position(parent));
                    }
                    inner = parent;
                }
            }
        }
        others
    }
}
