//! Who has to look again when the sharding of a value changes.
//!
//! Two things follow from a change. Every op whose visit reads the sharding becomes dirty. And the
//! ops that the reference notifies are queued, in its order, for that order is part of the result:
//! the users of the other targets of an edge, the defining op, the users of the value, with edges in
//! the place of ops that only let values flow. Of users the one added last comes first.

use super::edges::Edges;
use super::plan::Plan;
use super::queue::Queue;
use crate::index::{OpId, UseId, ValueId};
use crate::ir::{OpKind, Program, ValueDef};
use rustc_hash::FxHashSet;

/// Marks and queues ops.
pub(super) struct Notifier<'a> {
    pub program: &'a Program,
    pub plan: &'a Plan,
    pub queue: &'a mut Queue,
    /// The op in hand, which is not queued by its own updates.
    pub current: OpId,
    /// Whether ops are queued at all, or only marked.
    pub is_queueing: bool,
}

impl<'a> Notifier<'a> {
    /// The sharding kept on `value` has changed.
    pub fn value_changed(&mut self, value: ValueId) {
        match self.program.values[value].def {
            ValueDef::Result(op) => {
                if self.program.kind(op) == OpKind::DataFlowEdge {
                    for &target in self.edges().targets(op) {
                        self.users(target);
                    }
                }
                self.op(op);
            }
            ValueDef::Arg(block) => self.op(self.program.block_parent_op(block)),
        }
        self.users(value);
        if !self.edges().followers(value).is_empty() {
            self.touch_followers(value);
        }
    }

    /// Values without an edge op follow `value`: the reference notifies nobody of them.
    fn touch_followers(&mut self, value: ValueId) {
        let was_queueing = std::mem::replace(&mut self.is_queueing, false);
        for &follower in self.edges().followers(value) {
            self.users(follower);
        }
        self.is_queueing = was_queueing;
    }

    fn edges(&self) -> &'a Edges {
        &self.plan.edges
    }

    /// `op` is to be visited again.
    #[inline]
    fn op(&mut self, op: OpId) {
        let position = self.plan.positions[op];
        let is_visited =
            self.plan.visits.get(position as usize).is_some_and(|visit| visit.is_some());
        if is_visited {
            self.queue.touch(position);
        }
        if !self.is_queueing || op == self.current {
            return;
        }
        if is_visited {
            self.queue.push(position);
        }
        if self.plan.has_visited_parent {
            self.parents(op);
        }
    }

    /// Queues the ops around `op`, innermost first.
    fn parents(&mut self, op: OpId) {
        let mut op = op;
        while let Some(parent) = self.program.parent_op(op) {
            let position = self.plan.positions[parent];
            if self.plan.visits.get(position as usize).is_some_and(|visit| visit.is_some()) {
                self.queue.push(position);
            }
            op = parent;
        }
    }

    /// The users of `value` are to be visited again.
    ///
    /// Calls and returns lead to the users of the argument or the result on the other side; that is
    /// done without recursion, on a stack of uses to go on from. A value may come back to where it
    /// crossed before, by a function that hands its argument on to the next call of itself: crossing
    /// there again would notify the same ops again, which changes nothing, without end.
    fn users(&mut self, value: ValueId) {
        let mut next = self.program.values[value].first_use;
        let mut outer: Vec<Continuation> = Vec::new();
        let mut crossed = FxHashSet::default();
        loop {
            let Some(slot) = next.get() else {
                match outer
                    .last_mut()
                    .map(|continuation| continuation.next(self.program, self.plan))
                {
                    None => return,
                    Some(Some(use_list)) => next = use_list,
                    Some(None) => {
                        next = outer.pop().map_or(UseId::NONE, |continuation| continuation.after);
                    }
                }
                continue;
            };
            next = self.program.operands[slot].next_use;
            if let Some(inner) = self.one_use(slot, next) {
                if crossed.insert((inner.func, inner.index, inner.is_return)) {
                    outer.push(inner);
                    next = UseId::NONE;
                }
            }
        }
    }

    /// Notifies the user of one slot, unless the value goes into or out of a function there: then
    /// says where.
    #[inline]
    fn one_use(&mut self, slot: UseId, after: UseId) -> Option<Continuation> {
        let user = self.program.operands[slot].owner;
        if let Some(source) = self.edges().edge_of_source(slot) {
            if source.is_notified {
                self.op(source.edge);
                self.touch(user);
                return None;
            }
            self.touch(source.edge);
        }
        match self.program.kind(user) {
            OpKind::FuncReturn => {
                let func = self.program.parent_op(user)?;
                let callers = self.edges().calls.callers(self.program.function_of(func));
                if callers.is_empty() {
                    self.op(func);
                    return None;
                }
                let index = self.program.operand_index(slot);
                Some(Continuation { func, index, caller: 0, is_return: true, after })
            }
            OpKind::SdyReturn | OpKind::StablehloReturn => {
                if let Some(parent) = self.program.parent_op(user) {
                    self.op(parent);
                }
                None
            }
            OpKind::Call => {
                let callee = self.edges().calls.callee(user)?;
                let func = self.program.functions[callee].op;
                let index = self.program.operand_index(slot);
                Some(Continuation { func, index, caller: 0, is_return: false, after })
            }
            _ => {
                self.op(user);
                None
            }
        }
    }

    fn touch(&mut self, op: OpId) {
        let position = self.plan.positions[op];
        if self.plan.visits.get(position as usize).is_some_and(|visit| visit.is_some()) {
            self.queue.touch(position);
        }
    }
}

/// Uses on the other side of a call or return, and the use to go on with after them.
struct Continuation {
    func: OpId,
    index: usize,
    caller: usize,
    is_return: bool,
    after: UseId,
}

impl Continuation {
    /// The first use of the next value on the other side.
    fn next(&mut self, program: &Program, plan: &Plan) -> Option<UseId> {
        let func = program.function_of(self.func);
        let caller = self.caller;
        self.caller += 1;
        if self.is_return {
            let &call = plan.edges.calls.callers(func).get(caller)?;
            let result = program.op_results(call).nth(self.index);
            return Some(result.map_or(UseId::NONE, |result| program.values[result].first_use));
        }
        if caller > 0 {
            return None;
        }
        let body = program.functions[func].body.get()?;
        let arg = program.block_args(body).nth(self.index)?;
        Some(program.values[arg].first_use)
    }
}
