//! Dead ops, which MLIR's greedy driver erases when it takes them from the worklist.

use super::network::Network;
use crate::index::{OpId, ValueId};
use crate::propagation::plan::effects::is_trivially_dead;
use rustc_hash::FxHashSet;

impl Network<'_> {
    /// Erases the op at `position` if it is trivially dead; returns whether it was.
    pub fn erase_if_dead(&mut self, position: u32) -> bool {
        let op = self.state.plan.op(position);
        if !is_trivially_dead(self.state.program(), op) {
            return false;
        }
        let inside: Vec<OpId> = self.state.program().pre_order(op).collect();
        for &dead in inside.iter().rev() {
            let others = self.queue_operands(dead);
            self.queue.remove(self.state.plan.facts.position(dead));
            self.state.erase(dead);
            for other in others {
                self.state.recount_uses(other);
            }
        }
        true
    }

    /// Queues the ops that define the operands of `op`, which will be erased, if these have at most
    /// one other user: they may become dead. Also marks the users whose direction depends on the
    /// number of uses, and returns them.
    fn queue_operands(&mut self, op: OpId) -> Vec<OpId> {
        let Self { state, queue, .. } = self;
        let (program, plan) = (state.program(), &state.plan);
        let mut others = Vec::new();
        let operands: Vec<ValueId> = program.operands(op).collect();
        let mut seen = FxHashSet::default();
        for value in operands {
            if value.is_none() || !seen.insert(value) {
                continue;
            }
            let users = program.users(value);
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
                if plan.is_visited(other) {
                    queue.mark(plan.facts.position(other));
                    others.push(other);
                }
            }
            if let Some(def) = program.defining_op(value) {
                let at = plan.facts.position(def);
                queue.mark(at);
                queue.push(at);
                let mut inner = def;
                while let Some(parent) = program.parent_op(inner) {
                    if plan.is_visited(parent) {
                        queue.push(plan.facts.position(parent));
                    }
                    inner = parent;
                }
            }
        }
        others
    }
}
