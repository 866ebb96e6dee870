//! Notifications for values with data-flow edges, for calls and returns, and where enclosing ops
//! are visited.

use super::notice::{Action, Notice};
use crate::index::{OpId, UseId, ValueId};
use crate::ir::{OpKind, Program, ValueDef};
use crate::propagation::plan::edges::Edges;
use crate::propagation::plan::op_facts::OpFacts;
use crate::propagation::plan::Plan;
use rustc_hash::FxHashSet;

/// Lists ops.
pub struct Walk<'a> {
    program: &'a Program,
    plan: &'a Plan,
    out: &'a mut Vec<Notice>,
    /// Whether ops are only marked at present, not queued.
    is_marking: bool,
}

impl<'a> Walk<'a> {
    pub fn new(program: &'a Program, plan: &'a Plan, out: &'a mut Vec<Notice>) -> Self {
        Self { program, plan, out, is_marking: false }
    }
    /// Lists the ops that depend on the sharding that `value` holds.
    pub fn sharding_changed(&mut self, value: ValueId) {
        match self.program.def(value) {
            ValueDef::Result(op) => {
                if self.facts(op).has_any(OpFacts::EDGE) {
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
            self.followers(value);
        }
    }

    /// Marks the users of values that share the sharding of `value` without an edge op; the
    /// reference does not notify these.
    fn followers(&mut self, value: ValueId) {
        let was_marking = std::mem::replace(&mut self.is_marking, true);
        for &follower in self.edges().followers(value) {
            self.users(follower);
        }
        self.is_marking = was_marking;
    }

    #[inline]
    fn edges(&self) -> &'a Edges {
        &self.plan.edges
    }
    #[inline]
    fn facts(&self, op: OpId) -> OpFacts {
        self.plan.facts.of(op)
    }

    /// Marks and queues `op`.
    #[inline]
    fn op(&mut self, op: OpId) {
        let facts = self.facts(op);
        let is_visited = facts.has_any(OpFacts::VISITED);
        if is_visited {
            let action = if self.is_marking { Action::Mark } else { Action::MarkAndQueue };
            self.out.push(Notice { position: facts.position(), action });
        }
        if facts.has_any(OpFacts::IN_VISITED_OP) && !self.is_marking {
            self.parents(op, if is_visited { Action::QueueWithPrevious } else { Action::Queue });
        }
    }

    /// Queues the ops around `op`, innermost first.
    fn parents(&mut self, op: OpId, action: Action) {
        let mut op = op;
        while let Some(parent) = self.program.parent_op(op) {
            let facts = self.facts(parent);
            if facts.has_any(OpFacts::VISITED) {
                self.out.push(Notice { position: facts.position(), action });
            }
            if !facts.has_any(OpFacts::IN_VISITED_OP) {
                return;
            }
            op = parent;
        }
    }

    /// Lists the users of `value`.
    fn users(&mut self, value: ValueId) {
        let mut next = self.program.newest_use(value);
        while next.is_some() {
            let slot = next;
            next = self.program.next_use(slot);
            let user = self.program.user(slot);
            if !self.facts(user).has_any(OpFacts::FORWARDS_OPERANDS) {
                self.op(user);
            } else if let Some(inner) = self.special_use(slot, next) {
                self.cross(inner);
                return;
            }
        }
    }

    /// Lists the users on the other side of calls and returns, then the remaining users on this
    /// side.
    ///
    /// Uses a stack of uses to continue with instead of recursion. Each crossing is made once: with
    /// a function that passes its argument on to another call of itself, a value would cross the
    /// same call without end, and notify the same ops again.
    fn cross(&mut self, first: Continuation) {
        let mut crossed = FxHashSet::default();
        crossed.insert((first.func, first.index, first.is_return));
        let mut outer = vec![first];
        let mut next = UseId::NONE;
        loop {
            let Some(slot) = next.get() else {
                let Some(inner) = outer.last_mut() else { return };
                match inner.next(self.program, self.edges()) {
                    Some(use_list) => next = use_list,
                    None => next = outer.pop().map_or(UseId::NONE, |inner| inner.after),
                }
                continue;
            };
            next = self.program.next_use(slot);
            if let Some(inner) = self.special_use(slot, next) {
                if crossed.insert((inner.func, inner.index, inner.is_return)) {
                    outer.push(inner);
                    next = UseId::NONE;
                }
            }
        }
    }

    /// Lists the user of `slot`, unless the value enters or leaves a function there; then returns
    /// where to continue.
    fn special_use(&mut self, slot: UseId, after: UseId) -> Option<Continuation> {
        let program = self.program;
        let user = program.user(slot);
        if let Some(source) = self.edges().edge_of_source(slot) {
            if source.is_notified {
                self.op(source.edge);
                self.mark(user);
                return None;
            }
            self.mark(source.edge);
        }
        match program.kind(user) {
            OpKind::FuncReturn => {
                let func = program.parent_op(user)?;
                let callers = self.edges().calls.callers(program.function_of(func));
                if callers.is_empty() {
                    self.op(func);
                    return None;
                }
                let index = program.operand_index(slot);
                Some(Continuation { func, index, caller: 0, is_return: true, after })
            }
            OpKind::SdyReturn | OpKind::StablehloReturn => {
                if let Some(parent) = program.parent_op(user) {
                    self.op(parent);
                }
                None
            }
            OpKind::Call => {
                let callee = self.edges().calls.callee(user)?;
                let func = program.func_op(callee);
                let index = program.operand_index(slot);
                Some(Continuation { func, index, caller: 0, is_return: false, after })
            }
            _ => {
                self.op(user);
                None
            }
        }
    }

    fn mark(&mut self, op: OpId) {
        let facts = self.facts(op);
        if facts.has_any(OpFacts::VISITED) {
            self.out.push(Notice { position: facts.position(), action: Action::Mark });
        }
    }
}

/// The uses on the other side of a call or return, and the use to continue with afterwards.
struct Continuation {
    func: OpId,
    index: usize,
    caller: usize,
    is_return: bool,
    after: UseId,
}

impl Continuation {
    /// The first use of the next value on the other side.
    fn next(&mut self, program: &Program, edges: &Edges) -> Option<UseId> {
        let func = program.function_of(self.func);
        let caller = self.caller;
        self.caller += 1;
        if self.is_return {
            let &call = edges.calls.callers(func).get(caller)?;
            let result = program.op_results(call).nth(self.index);
            return Some(result.map_or(UseId::NONE, |result| program.newest_use(result)));
        }
        if caller > 0 {
            return None;
        }
        let body = program.func_body(func).get()?;
        let arg = program.block_args(body).nth(self.index)?;
        Some(program.newest_use(arg))
    }
}
