//! Tells who has to look again when the sharding of a value changes.
//!
//! Two things follow from a change. Every op whose visit reads the sharding becomes dirty. And the
//! ops that the reference notifies are queued, in its order, for that order is part of the result:
//! the users of the other targets of an edge, the defining op, the users of the value, with edges in
//! the place of ops that only let values flow. Of users the one added last comes first.

use super::edges::Edges;
use super::queue::Queue;
use super::spots::{Spot, Spots};
use crate::index::{OpId, UseId, ValueId};
use crate::ir::{OpKind, Program, ValueDef};
use rustc_hash::FxHashSet;

/// A change on its way to those who read it.
pub(super) struct Notice<'a> {
    pub program: &'a Program,
    pub edges: &'a Edges,
    pub spots: &'a Spots,
    pub queue: &'a mut Queue,
    /// The op in hand, which changed the value and is not queued by that.
    pub current: u32,
    /// Whether ops are queued, or only marked.
    pub is_queueing: bool,
}

impl Notice<'_> {
    /// Tells those who depend on the sharding kept on `value`.
    #[inline]
    pub fn value_changed(&mut self, value: ValueId) {
        match self.program.values[value].def {
            ValueDef::Result(op) => {
                if self.spots.of(op).has_any(Spot::EDGE) {
                    self.targets(op);
                }
                self.op(op);
            }
            ValueDef::Arg(block) => self.op(self.program.block_parent_op(block)),
        }
        self.users(value);
        if self.edges.has_followers() {
            self.followers(value);
        }
    }

    /// The users of the targets of edge `op` beside its owner.
    #[inline(never)]
    fn targets(&mut self, op: OpId) {
        let edges = self.edges;
        edges.targets(op).iter().for_each(|&target| self.all_users(target));
    }

    /// Values without an edge op follow `value`: the reference notifies nobody of them.
    #[inline(never)]
    fn followers(&mut self, value: ValueId) {
        let was_queueing = std::mem::replace(&mut self.is_queueing, false);
        let edges = self.edges;
        edges.followers(value).iter().for_each(|&follower| self.all_users(follower));
        self.is_queueing = was_queueing;
    }

    /// `op` is to be visited again.
    #[inline(always)]
    fn op(&mut self, op: OpId) {
        let spot = self.spots.of(op);
        let is_visited = spot.has_any(Spot::VISITED);
        let position = spot.position();
        if is_visited {
            self.queue.touch(position);
        }
        if self.is_queueing && position != self.current {
            if is_visited {
                self.queue.push(position);
            }
            if spot.has_any(Spot::INSIDE) {
                self.parents(op);
            }
        }
    }

    /// Queues the ops around `op`, innermost first.
    #[inline(never)]
    fn parents(&mut self, op: OpId) {
        let mut op = op;
        while let Some(parent) = self.program.parent_op(op) {
            let spot = self.spots.of(parent);
            if spot.has_any(Spot::VISITED) {
                self.queue.push(spot.position());
            }
            if !spot.has_any(Spot::INSIDE) {
                return;
            }
            op = parent;
        }
    }

    /// The users of `value`.
    #[inline(always)]
    fn users(&mut self, value: ValueId) {
        let program = self.program;
        let mut next = program.values[value].first_use;
        while next.is_some() {
            let row = &program.operands[next];
            let slot = std::mem::replace(&mut next, row.next_use);
            if !self.spots.of(row.owner).has_any(Spot::HANDS_ON) {
                self.op(row.owner);
            } else if let Some(inner) = self.special_use(slot, next) {
                return self.cross(inner);
            }
        }
    }

    #[inline(never)]
    fn all_users(&mut self, value: ValueId) {
        self.users(value);
    }

    /// The users on the other side of calls and returns, then those that are left on this one.
    ///
    /// That is done without recursion, on a stack of uses to go on from. A value may come back to
    /// where it crossed before, by a function that hands its argument on to the next call of itself:
    /// crossing there again would notify the same ops again, which changes nothing, without end.
    #[cold]
    fn cross(&mut self, first: Continuation) {
        let mut crossed = FxHashSet::default();
        crossed.insert((first.func, first.index, first.is_return));
        let mut outer = vec![first];
        let mut next = UseId::NONE;
        loop {
            let Some(slot) = next.get() else {
                let Some(inner) = outer.last_mut() else { return };
                match inner.next(self.program, self.edges) {
                    Some(use_list) => next = use_list,
                    None => next = outer.pop().map_or(UseId::NONE, |inner| inner.after),
                }
                continue;
            };
            next = self.program.operands[slot].next_use;
            if let Some(inner) = self.special_use(slot, next) {
                if crossed.insert((inner.func, inner.index, inner.is_return)) {
                    outer.push(inner);
                    next = UseId::NONE;
                }
            }
        }
    }

    /// The user of one slot, unless the value goes into or out of a function there: then says where.
    #[inline(never)]
    fn special_use(&mut self, slot: UseId, after: UseId) -> Option<Continuation> {
        let program = self.program;
        let user = program.operands[slot].owner;
        if let Some(source) = self.edges.edge_of_source(slot) {
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
                let callers = self.edges.calls.callers(program.function_of(func));
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
                let callee = self.edges.calls.callee(user)?;
                let func = program.functions[callee].op;
                let index = program.operand_index(slot);
                Some(Continuation { func, index, caller: 0, is_return: false, after })
            }
            _ => {
                self.op(user);
                None
            }
        }
    }

    /// `op` is only marked.
    fn mark(&mut self, op: OpId) {
        let spot = self.spots.of(op);
        if spot.has_any(Spot::VISITED) {
            self.queue.touch(spot.position());
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
    fn next(&mut self, program: &Program, edges: &Edges) -> Option<UseId> {
        let func = program.function_of(self.func);
        let caller = self.caller;
        self.caller += 1;
        if self.is_return {
            let &call = edges.calls.callers(func).get(caller)?;
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
